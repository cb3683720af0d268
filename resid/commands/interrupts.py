"""Ctrl-C at a moment when libraries would swallow it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process, for as long as libraries are imported and nothing is open.

    Modules that are half imported catch KeyboardInterrupt, and go on or fail in their own ways.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread may decide on signals.
        return
    before = signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
