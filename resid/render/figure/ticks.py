"""Where ticks stand and what they say: points of the stream, layers, log scales."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from resid.render.figure import style
from resid.results import Floats

_MOST_TICKS = 8


def depths(points: Sequence[str]) -> list[float]:
    """Where points lie along the blocks: block L reaches from L to L + 1."""
    found = []
    for point in points:
        layer, _, kind = point.partition(".")
        found.append(0.0 if point == "embed" else int(layer) + (1.0 if kind == "post" else 0.5))
    return found


def label_points(ax: Axes, n_layers: int) -> None:
    """The names of embed, of the last L.post and of as many between as there is room for.

    What has no name has a mark.
    """
    ax.set_xlim(-0.02 * n_layers - 0.1, 1.02 * n_layers + 0.1)
    width = _width(ax) / (1.04 * n_layers + 0.2)
    wanted = style.text_width(f"{n_layers - 1}.post", style.SIZE) + 8
    step = _step(width, wanted)
    last = n_layers - 1
    # Round numbers where there are many, else every second from the last.
    between = range(0, last, step) if step > 2 else range(last % step, last, step)
    # All are as far from both ends as they are from each other.
    room = wanted / width
    layers = [*(layer for layer in between if layer + 1 >= room and last - layer >= room), last]
    ticks = [0, *(layer + 1 for layer in layers)]
    ax.set_xticks(ticks, ["embed", *(f"{layer}.post" for layer in layers)], **style.LABEL)
    ax.set_xticks([depth for depth in range(n_layers + 1) if depth not in ticks], minor=True)
    _describe_x(ax, "point of the residual stream")


def label_layers(ax: Axes, n_layers: int) -> None:
    """Numbers of the layers below the Axes, as many as there is room for."""
    ax.set_xlim(-0.6, n_layers - 0.4)
    wanted = style.text_width(str(n_layers - 1), style.SIZE) + 8
    step = _step(_width(ax) / (n_layers + 0.2), wanted)
    ax.set_xticks(range(0, n_layers, step), map(str, range(0, n_layers, step)), **style.LABEL)
    _describe_x(ax, "layer")


def _width(ax: Axes) -> float:
    """Of the Axes, in points."""
    return float(ax.get_window_extent().width * 72 / ax.figure.dpi)


def _step(room: float, wanted: float) -> int:
    """How many of what has so much room lie from one label to the next, in a round number."""
    rounds = (int(factor * 10**power) for power in range(6) for factor in (1, 2, 5))
    return next(distance for distance in rounds if distance * room >= wanted)


def _describe_x(ax: Axes, what: str) -> None:
    ax.set_xlabel(what, color=style.FAINT, **style.LABEL)
    ax.tick_params(length=2.5, color=style.FAINT)
    ax.tick_params(which="minor", length=1.5, color=style.FAINT)


def log_scale(ax: Axes, values: Floats) -> None:
    """A log scale around the values, ticks written out; no ticks where none is positive."""
    positive = values[np.isfinite(values) & (values > 0)]
    if len(positive) == 0:
        ax.set_yticks([])
        return
    low, high = float(positive.min()), float(positive.max())
    # At least a factor of two, so that a flat stream looks flat.
    room = max(math.log(2) - math.log(high / low), 0.08 * math.log(high / low)) / 2
    low, high = low * math.exp(-room), high * math.exp(room)
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    ticks = _ticks(low, high)
    ax.set_yticks(ticks, labels=[f"{tick:,.6g}" for tick in ticks], **style.LABEL)
    ax.minorticks_off()


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between the two, as many as are read at ease."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    finest: list[float] = []
    for factors in ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 3), (1,)):
        found = [float(f"{f}e{decade}") for decade in decades for f in factors]
        finest = [tick for tick in found if low <= tick <= high]
        if len(finest) <= _MOST_TICKS:
            return finest
    return finest[:: math.ceil(len(finest) / _MOST_TICKS)]
