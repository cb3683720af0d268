"""What the panels of the lab's figures have in common: plain axes and a legend."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from resid.render.figure import style
from resid.results import Floats

_MOST_TICKS = 7


def legend(ax: Axes, above: bool = False, columns: int = 2) -> None:
    """Name what is drawn, above the Axes or where it hides least; text is taken as it is."""
    place: dict[str, Any] = {"loc": "best"}
    if above:
        place = {"loc": "lower left", "bbox_to_anchor": (-0.02, 0.98)}
    style.plain_legend(
        ax,
        **place,
        ncols=columns if above else 1,
        handlelength=2.2,
        columnspacing=1.4,
    )


def log_scale(
    ax: Axes, values: Floats, low: float | None = None, high: float | None = None
) -> None:
    """A log scale around the values with ticks as powers of ten; without ticks where none is > 0.

    Args:
        ax: whose y axis.
        values: what is drawn there.
        low: the axis begins no lower than here.
        high: the axis ends no higher than here.
    """
    positive = values[np.isfinite(values) & (values > 0)]
    if len(positive) == 0:
        ax.set_yticks([])
        return
    least = math.log10(max(float(positive.min()), low or 0.0))
    most = math.log10(min(float(positive.max()), high or math.inf))
    room = max(0.5 - (most - least), 0.08 * (most - least)) / 2
    ax.set_yscale("log")
    ax.set_ylim(10 ** (least - room), 10 ** (most + room))
    ticks = _ticks(least - room, most + room)
    ax.set_yticks([float(tick) for tick in ticks], ticks, **style.LABEL)
    ax.minorticks_off()


def _ticks(low: float, high: float) -> list[str]:
    """Round numbers between two powers of ten, written short, as many as are read at ease."""
    decades = range(math.floor(low), math.ceil(high) + 1)
    step = max(1, -(-len(decades) // _MOST_TICKS))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [(f, decade) for decade in decades if decade % step == 0 for f in factors]
        inside = [(f, decade) for f, decade in ticks if low <= decade + math.log10(f) <= high]
        if len(inside) <= _MOST_TICKS:
            break
    return [_written(f, decade) for f, decade in inside]


def _written(factor: int, exponent: int) -> str:
    """1e-6, and 0.01 to 5000 written out."""
    written = f"{factor}e{exponent}"
    return f"{float(written):.10g}" if -3 < exponent < 4 else written
