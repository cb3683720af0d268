"""Curves in plain characters, aligned in whatever width there is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.text import Text

from resid.render.terminal.console import is_unbounded, put
from resid.results import Floats

_UNBOUNDED_WIDTH = 92
_LEAST_WIDTH = 24
_MOST_WIDTH = 110
_TICKS = 4


@dataclass(frozen=True)
class Curve:
    """One curve, drawn with a sign of its own."""

    sign: str
    """One ASCII character: it has to be in every encoding, and as wide as every other."""
    y: Floats
    """[x] with gaps where it is not finite."""
    style: str = ""


def plot_curves(
    console: Console,
    x: Floats,
    curves: Sequence[Curve],
    *,
    height: int,
    low: float | None = None,
    high: float | None = None,
) -> None:
    """Print the curves in one frame with its scales; where two meet the earlier one is seen.

    Args:
        console: where to; its width is the plot's, within reason.
        x: ascending.
        curves: the first lies on top.
        height: lines of the frame.
        low: of the vertical scale; the least value if not given.
        high: of the vertical scale; the largest value if not given.
    """
    finite = np.concatenate([curve.y[np.isfinite(curve.y)] for curve in curves])
    low = float(finite.min(initial=math.inf)) if low is None else low
    high = float(finite.max(initial=-math.inf)) if high is None else high
    if not (math.isfinite(low) and math.isfinite(high)):
        low, high = 0.0, 1.0
    if high <= low:
        low, high = low - 0.5, high + 0.5
    step = (high - low) / (height - 1)
    labels = {row: _label(high - row * step, high - low) for row in _every(height)}
    margin = max(map(len, labels.values())) + 1
    room = _UNBOUNDED_WIDTH if is_unbounded(console) else console.width
    width = max(_LEAST_WIDTH, min(room, _MOST_WIDTH) - margin - 1)
    grid = _drawn(x, curves, width, height, low, high)
    for row, cells in enumerate(grid):
        line = Text(labels.get(row, "").rjust(margin - 1) + " |", style="dim")
        for sign, style in cells:
            line.append(sign, style=style or "none")
        put(console, line)
    put(console, Text(" " * margin + "+" + "-" * width, style="dim"))
    put(console, Text(" " * (margin + 1) + _scale(float(x[0]), float(x[-1]), width), style="dim"))


def _drawn(
    x: Floats, curves: Sequence[Curve], width: int, height: int, low: float, high: float
) -> list[list[tuple[str, str]]]:
    """The cells of the frame, row by row from the top."""
    grid = [[(" ", "")] * width for _ in range(height)]
    if low < 0 < high:
        zero = round(high / (high - low) * (height - 1))
        grid[zero] = [(".", "dim")] * width
    at = np.linspace(float(x[0]), float(x[-1]), width)
    for curve in reversed(curves):
        known = np.isfinite(curve.y)
        if not known.any():
            continue
        y = np.interp(at, x[known], curve.y[known], left=np.nan, right=np.nan)
        with np.errstate(invalid="ignore"):
            rows = np.round((high - y) / (high - low) * (height - 1))
        before: int | None = None
        for column, row in enumerate(rows):
            if not (math.isfinite(row) and 0 <= row < height):
                before = None
                continue
            # A steep curve is a line, not a scatter of signs.
            here = int(row)
            first, last = here, here
            if before is not None and abs(here - before) > 1:
                first, last = (before + 1, here) if here > before else (here, before - 1)
            for each in range(first, last + 1):
                grid[each][column] = (curve.sign, curve.style)
            before = here
    return grid


def _every(height: int) -> list[int]:
    """The rows that get a label: the first, the last, and some between."""
    return sorted({round(i * (height - 1) / _TICKS) for i in range(_TICKS + 1)})


def _label(value: float, span: float) -> str:
    """A value with as many decimals as the span of the scale asks for."""
    decimals = min(max(0, 2 - math.floor(math.log10(span))), 6)
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _scale(first: float, last: float, width: int) -> str:
    """The ends and the middle of the horizontal scale, each under its place."""
    texts = [f"{value:g}" for value in (first, (first + last) / 2, last)]
    if sum(map(len, texts)) + 2 > width:
        texts[1] = ""
    middle = (width - len(texts[1])) // 2 - len(texts[0])
    rest = width - len(texts[0]) - middle - len(texts[1]) - len(texts[2])
    return texts[0] + " " * middle + texts[1] + " " * rest + texts[2]
