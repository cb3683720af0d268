"""Tables for the terminal: columns of styled text whose width is known before they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from resid.render.terminal.console import pick, put

GAP = 2
"""Cells between neighbouring columns of a table."""


@dataclass(frozen=True)
class Column:
    """One column: lines of a head, and a cell for every row."""

    head: tuple[Text, ...]
    cells: tuple[Text, ...]
    right: bool = False
    """Whether numbers line up at their right end."""

    @property
    def width(self) -> int:
        """Cells of the terminal that the widest line takes."""
        return max((text.cell_len for text in (*self.head, *self.cells)), default=0)


def column(head: str, cells: Iterable[Text], right: bool = False) -> Column:
    """A column with one line of head."""
    return Column((Text(head),), tuple(cells), right)


def beside(columns: Sequence[Column], gap: int = 1) -> Column:
    """One column out of several, aligned within."""
    heads = _lines(columns, "head", gap)
    return Column(tuple(heads), tuple(_lines(columns, "cells", gap)))


def titled(title: Text, under: Column) -> Column:
    """The column with one more line of head above it."""
    head = under.head if any(line.plain.strip() for line in under.head) else ()
    return Column((title, *head), under.cells, under.right)


def total_width(columns: Sequence[Column], gap: int = GAP) -> int:
    """Cells of the terminal that the columns take side by side."""
    return sum(each.width for each in columns) + gap * max(len(columns) - 1, 0)


def print_columns(console: Console, columns: Sequence[Column]) -> None:
    """Print the columns side by side, with a rule between heads and cells."""
    for line in _lines(columns, "head", GAP):
        line.stylize_before("dim")
        put(console, line)
    put(console, Text(pick(console, "─", "-") * total_width(columns), style="dim"))
    for line in _lines(columns, "cells", GAP):
        put(console, line)


def _lines(columns: Sequence[Column], part: str, gap: int) -> list[Text]:
    height = max(len(getattr(each, part)) for each in columns)
    lines = [Text() for _ in range(height)]
    for i, each in enumerate(columns):
        width = each.width
        texts: Sequence[Text] = getattr(each, part)
        for line, text in zip(lines, _bottom_aligned(texts, height), strict=True):
            space = " " * (width - text.cell_len)
            before, after = (space, "") if each.right else ("", space)
            line.append(" " * gap * (i > 0) + before).append_text(text).append(after)
    return lines


def _bottom_aligned(texts: Sequence[Text], height: int) -> list[Text]:
    return [Text()] * (height - len(texts)) + list(texts)
