"""The logit lens as a grid in the terminal: points upward, positions to the right."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from resid.render.quantities import Quantity, lens_quantity
from resid.render.terminal import cells
from resid.render.terminal.columns import GAP, Column, beside, print_columns, total_width
from resid.render.terminal.console import has_colour, is_unbounded, say
from resid.render.words import nats
from resid.results import LogitLens
from resid.tokens import quote

_WIDEST_TOKEN = 14
_NUMBER = 6
"""Cells of the terminal for a space and the widest number, a rank."""


def print_grid(console: Console, lens: LogitLens, indices: Sequence[int], show: str) -> None:
    """Print the top token of every point and position, the deepest point on top.

    Args:
        console: where to; as many columns as fit stand side by side, the others follow below.
        lens: what to print.
        indices: along the lens's `pos` axis.
        show: the number beside a token, see `resid.render.quantities`.
    """
    quantity = lens_quantity(lens, show)
    say(console, f"top token at every point and position, with {_describe(quantity)}")
    point = Column((Text("point"),), tuple(map(Text, [*reversed(lens.points), "settled"])))
    room = console.width - point.width - GAP
    cap = None if is_unbounded(console) else max(min(_WIDEST_TOKEN, room - _NUMBER), 5)
    columns = [_position_column(console, lens, index, quantity, cap) for index in indices]
    for group in _groups(columns, room):
        say(console, "")
        print_columns(console, [point, *group])
    say(console, "")
    if has_colour(console):
        say(console, "bold: the token with which the prompt goes on", cells.QUIET)


def _describe(quantity: Quantity) -> str:
    if quantity.scale == "share":
        return "its probability"
    return quantity.name + ("" if quantity.token is None else f" of {quote(quantity.token)}")


def _groups(columns: Sequence[Column], room: int) -> Iterator[list[Column]]:
    """The columns in order, as many at a time as fit, at least one."""
    group: list[Column] = []
    for column in columns:
        if group and total_width([*group, column]) > room:
            yield group
            group = []
        group.append(column)
    if group:
        yield group


def _position_column(
    console: Console, lens: LogitLens, index: int, quantity: Quantity, cap: int | None
) -> Column:
    position = lens.positions[index]
    actual = (*lens.source.ids, None)[position + 1]
    tokens, numbers = [], []
    for i in reversed(range(len(lens.points))):
        if lens.top_ids[i, index, 0] < 0:
            tokens.append(cells.absent())
        else:
            style = "bold" if lens.top_ids[i, index, 0] == actual else ""
            tokens.append(cells.token(console, lens.top_tokens[i, index, 0], cap, style))
        numbers.append(_number(quantity, float(quantity.values[i, index])))
    body = beside([Column((), tuple(tokens)), Column((), tuple(numbers), right=True)])
    settled = Text(lens.settled_at[index] or "", style=cells.QUIET)
    heads = (Text(str(position)), cells.token(console, lens.source.tokens[position], cap))
    return Column(heads, (*body.cells, settled))


def _number(quantity: Quantity, value: float) -> Text:
    if not math.isfinite(value):
        return Text()
    if quantity.scale == "share":
        return Text(f"{value:.2f}".removeprefix("0"), style=cells.probability_style(value))
    return Text(f"{value:.0f}" if quantity.scale == "log" else nats(value), style=cells.QUIET)
