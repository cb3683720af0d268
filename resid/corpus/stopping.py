"""Ctrl-C and SIGTERM, held back until what was read so far can be saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def held_back(on_signal: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """A function that says whether the process was asked to end; obeyed behind the block.

    A second signal is obeyed at once. One that the process ignores, or that ends it without
    running any Python, is let be. Only the main thread may decide on signals; elsewhere the
    function is never true.

    Args:
        on_signal: is called when the process is asked to end, between any two lines of the block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before: dict[int, Callable[[int, FrameType | None], object]] = {}
    for one in (signal.SIGINT, signal.SIGTERM):
        if callable(handler := signal.getsignal(one)):
            before[one] = handler
    asked: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        asked.append((number, frame))
        if len(asked) == 1:
            on_signal()
        else:
            before[number](number, frame)

    for held in before:
        signal.signal(held, hold)
    try:
        yield lambda: bool(asked)
    finally:
        for held, usual in before.items():
            signal.signal(held, usual)
    for number, frame in asked:
        before[number](number, frame)
