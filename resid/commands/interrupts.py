"""Ctrl-C, and being asked to end, at moments when libraries or Python would swallow it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130


def obey_termination() -> None:
    """Let SIGTERM end the process as an exception does: what was begun is taken back."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        _decide(signal.SIGTERM, _leave)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        _decide(signal.SIGINT, _interrupt)


def was_interrupted() -> bool:
    """Whether Ctrl-C has been pressed."""
    return bool(_pressed)


_pressed: list[int] = []


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _pressed.append(number)
    raise KeyboardInterrupt


def end_at_once_from_here() -> None:
    """Let signals end the process without another word of Python's, when all is done."""
    for number in (signal.SIGINT, signal.SIGTERM):
        _decide(number, _end)


def _decide(number: int, handler: Callable[[int, FrameType | None], NoReturn]) -> None:
    if _is_ours(number):
        with contextlib.suppress(ValueError):  # Only the main thread may.
            signal.signal(number, handler)


def _is_ours(number: int) -> bool:
    """Whether a signal may be decided on: what the process was started to ignore stays ignored.

    A script's shell does that for what it runs in the background: Ctrl-C is not meant for it.
    """
    return signal.getsignal(number) not in (signal.SIG_IGN, None)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let signals end the process, for as long as libraries are imported and nothing is open.

    Modules that are half imported, and streams that are half changed, catch KeyboardInterrupt and
    go on, or fail in their own ways.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread may decide on signals.
        return
    numbers = filter(_is_ours, (signal.SIGINT, signal.SIGTERM))
    before = {number: signal.signal(number, _end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    if number == signal.SIGINT:
        os.write(2, b"interrupted\n")
    os._exit(128 + number)
