"""The console: its colours, its width, and the characters that its encoding has."""

from __future__ import annotations

import os
import shutil
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from resid.render.escapes import cut, escape_unless

_UNBOUNDED = 1_000_000


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command line to end; rich would exit with status 1."""
        raise  # The BrokenPipeError that rich is handling.


def make_console(file: IO[str]) -> Console:
    """A console that writes to the file as the file's reader wants it.

    Colour where there is a terminal, unless NO_COLOR is set. The width is the terminal's, or what
    COLUMNS says; in a pipe or a file without COLUMNS there is no limit and nothing is cut.
    """
    columns = os.environ.get("COLUMNS", "")
    # Neither for Python nor for a terminal is every string of digits a width.
    if columns.isdecimal() and len(columns) < 10 and int(columns) > 0:
        width = int(columns)
    else:
        width = shutil.get_terminal_size().columns if file.isatty() else _UNBOUNDED
    plain = bool(os.environ.get("NO_COLOR"))
    return _Console(
        file=file,
        width=width,
        height=25,  # Of no account; rich would take LINES for a number.
        color_system=None if plain else "auto",
        force_jupyter=False,
        highlight=False,
    )


def is_unbounded(console: Console) -> bool:
    """Whether lines may be as long as they need to be."""
    return console.width >= _UNBOUNDED


def has_colour(console: Console) -> bool:
    """Whether styles reach the reader."""
    return console.color_system is not None


def safe(console: Console, text: str) -> str:
    """The text with everything escaped that the console cannot print."""
    return escape_unless(lambda sign: sign.isprintable() and _encodes(console, sign), text)


def pick(console: Console, sign: str, plain: str) -> str:
    """The sign where the console's encoding has it, else its plain substitute."""
    return sign if _encodes(console, sign) else plain


def plain(console: Console, sentence: str) -> str:
    """The sentence with plain substitutes for the signs that the console's encoding lacks."""
    for sign, substitute in (("×", "x"), ("±", "+-"), ("²", "^2")):
        sentence = sentence.replace(sign, pick(console, sign, substitute))
    return sentence


def shorten(console: Console, text: str, room: int) -> str:
    """The text, safe, in at most `room` cells of the terminal."""
    return cut(safe(console, text), room, cell_len, pick(console, "…", "..."))


def put(console: Console, text: Text) -> None:
    """Print one line of a table, neither wrapped nor cut."""
    text.rstrip()
    console.print(text, soft_wrap=True)


def say(console: Console, text: Text | str, style: str = "") -> None:
    """Print a sentence, wrapped at the console's width."""
    if isinstance(text, str):
        text = Text(safe(console, text), style=style)
    console.print(text, overflow="fold")


def _encodes(console: Console, sign: str) -> bool:
    try:
        sign.encode(console.encoding)
    except UnicodeEncodeError:
        return False
    return True
