"""What is said beside the results, on standard error."""

from __future__ import annotations

import os
import sys
from typing import IO, Any

from resid.tokens import escape_text


def tell(text: str) -> None:
    """Print on standard error, with nothing in it that a terminal would obey."""
    say_beside("\n".join(map(printable, text.split("\n"))))


def printable(line: str) -> str:
    """The line with signs that no terminal shows as escapes; what is an escape already stays."""
    return "".join(sign if sign.isprintable() else escape_text(sign) for sign in line)


def say_beside(text: str, file: IO[Any] | None = None) -> None:
    """Print on standard error; where that takes nothing there is nobody to be told.

    Not by click, which takes ASCII for a mistake and writes UTF-8 instead.

    Args:
        text: what to print.
        file: a stream in place of standard error.
    """
    stream = sys.stderr if file is None else file
    if stream is None:
        return
    try:
        stream.write(text + "\n")
        stream.flush()
    except OSError:
        discard(stream)


def discard(stream: IO[Any]) -> None:
    """Point a stream at nothing, or Python would complain once more at its exit."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        return  # Not a real file, as under a test runner.
