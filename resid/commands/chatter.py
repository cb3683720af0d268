"""What libraries print of their own accord: standard output is for results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nothing_printed() -> Iterator[None]:
    """Nothing reaches standard output for the time of the block, whatever writes to it, and how.

    The library that reads tokenizers prints names out of their files past Python, as they are: not
    only in the middle of JSON, but also commands to a terminal.
    """
    try:
        sys.stdout.flush()
        kept = os.dup(1)
    except (OSError, ValueError):
        yield  # Standard output is closed.
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)
