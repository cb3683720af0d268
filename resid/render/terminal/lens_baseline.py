"""The baseline of the lens in the terminal: two quiet rows below the points, and what they mean."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from resid.render.lens_words import describe_baseline
from resid.render.terminal.cells import QUIET
from resid.render.terminal.console import say
from resid.results import LogitLens


def beneath(lens: LogitLens, nothing: Text | str = "", random: Text | str = "") -> list[Text]:
    """A column's cells below the points: a gap and the two rows; none without a baseline."""
    if lens.baseline is None:
        return []
    return [Text(), *(_quiet(cell) for cell in (nothing, random))]


def print_baseline(console: Console, lens: LogitLens, index: int, *, named: bool) -> None:
    """Say what the two rows are, with the band of the random one.

    Args:
        console: where to.
        lens: with or without a baseline; without, nothing is printed.
        index: the position of the divergences, along the lens's `pos` axis.
        named: say which position that is.
    """
    for sentence in describe_baseline(lens, index, named=named):
        say(console, sentence, QUIET)


def _quiet(cell: Text | str) -> Text:
    if isinstance(cell, str):
        return Text(cell, style=QUIET)
    return cell if cell.style and cell.style != QUIET else Text(cell.plain, style=QUIET)
