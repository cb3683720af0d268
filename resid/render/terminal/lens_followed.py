"""The followed tokens of the lens in the terminal: a line over depth for each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from resid.render.lens_words import leading_stretches
from resid.render.terminal import cells
from resid.render.terminal.columns import GAP, Column, column, print_columns, total_width
from resid.render.terminal.console import is_unbounded, pick, safe, say, shorten
from resid.results import Floats, LogitLens
from resid.tokens import quote

_BLOCKS, _PLAIN = "▁▂▃▄▅▆▇█", ".:-=+*#@"
_WIDEST_TOKEN = 24
_CHOICES: tuple[tuple[str, ...], ...] = (
    ("peak", "where each leads"),
    ("where each leads",),
    ("peak",),
)
_LEAST_LEADS = 9
"""Cells below which the names of points are left out rather than cut."""


def print_many_followed(console: Console, lens: LogitLens, indices: Sequence[int]) -> None:
    """Print the lists of several positions, each with its position's name; none if not asked."""
    if lens.followed is None:
        return
    for index in indices:
        position = lens.positions[index]
        token = safe(console, quote(lens.source.tokens[position]))
        print_followed(console, lens, index, f" after position {position}, {token},")
        say(console, "")


def print_followed(console: Console, lens: LogitLens, index: int, where: str = "") -> None:
    """Print one line for every token that leads somewhere at the position.

    Args:
        console: where to.
        lens: with followed tokens.
        index: of the position, along the lens's `pos` axis.
        where: names the position where it is not named above.
    """
    assert lens.followed is not None
    say(console, f"every token that leads somewhere{where} with its probability over depth")
    if not lens.followed.at(index):
        say(console, "none: no point is finite", cells.LOUD)
        return
    say(console, "")
    columns, missing, grouped = _fit(console, lens, index)
    print_columns(console, columns)
    say(console, "")
    each = f", one sign for {grouped} points" if grouped > 1 else ""
    say(console, f"depth: {_ends(lens)}, each line from 0 to its own peak{each}", cells.QUIET)
    if missing:
        say(console, f"not shown at this width: {', '.join(missing)}", cells.QUIET)


def spark(console: Console, probabilities: Floats) -> str:
    """A sign for each, from 0 to the largest of them; a question mark where it is not finite."""
    signs = pick(console, _BLOCKS, _PLAIN)
    peak = max([p for p in probabilities if p > 0], default=1.0)
    return "".join(
        signs[min(int(p / peak * len(signs)), len(signs) - 1)] if math.isfinite(p) else "?"
        for p in probabilities
    )


def _fit(console: Console, lens: LogitLens, index: int) -> tuple[list[Column], list[str], int]:
    """The columns, the names of those that do not fit, and how many points a sign stands for."""
    assert lens.followed is not None
    which = lens.followed.at(index)
    cap = None if is_unbounded(console) else min(_WIDEST_TOKEN, max(5, console.width // 3))
    numbers = [_probabilities(lens, i) for i in which]
    token = column("token", [cells.token(console, lens.followed.tokens[i], cap) for i in which])
    last = column("last", (cells.probability(float(each[-1])) for each in numbers), right=True)
    room = console.width - total_width([token, last]) - GAP
    grouped = math.ceil(len(lens.points) / max(min(room, console.width // 3), 1))
    depth = column("depth", [Text(spark(console, _largest(each, grouped))) for each in numbers])
    peaks = (cells.probability(float(np.nanmax(each))) for each in numbers)
    peak = column("peak", peaks, right=True)
    room -= depth.width + GAP
    stretches = [leading_stretches(lens.points, lens.followed.leads[:, i]) for i in which]
    least = min(_LEAST_LEADS, max(map(cell_len, stretches)))
    needs = {"peak": peak.width + GAP, "where each leads": least + GAP}
    # As much as fits; of the two rather where a token leads than how high it comes.
    fitting = (names for names in _CHOICES if sum(needs[name] for name in names) <= room)
    kept = next(fitting, ())
    columns = [token, depth]
    if "peak" in kept:
        columns.append(peak)
        room -= needs["peak"]
    if "where each leads" in kept:
        leads = (Text(shorten(console, stretch, room - GAP)) for stretch in stretches)
        columns.append(column("leads", leads))
    return [*columns, last], [name for name in needs if name not in kept], grouped


def _probabilities(lens: LogitLens, i: int) -> Floats:
    assert lens.followed is not None
    return np.exp(lens.followed.logprob[:, i])


def _largest(values: Floats, grouped: int) -> Floats:
    """The largest of every `grouped` neighbours, so that no lead is lost."""
    starts = range(0, len(values), grouped)
    return np.array([np.fmax.reduce(values[start : start + grouped]) for start in starts])


def _ends(lens: LogitLens) -> str:
    first, last = lens.points[0], lens.points[-1]
    return first if first == last else f"{first} to {last}"
