"""What the figures of corpus readings have in common: two panels, points or layers below them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.corpus_words import IDENTITIES, describe_left_out, describe_windows
from resid.render.figure import style
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.results import Floats, Result
from resid.results.corpus_source import CorpusSource

STREAM, SECOND, THIRD = "#08519c", "#009e73", "#aa4499"

# In inches.
_MARGIN, _TITLE, _LEGEND = 0.2, 0.42, 0.19
_LEFT, _PANEL, _BETWEEN, _RIGHT = 0.75, 3.7, 0.8, 0.2
_HEIGHT, _BELOW = 2.7, 0.5
_MOST_TICKS = 8


def two_panels(
    result: Result,
    source: CorpusSource,
    title: str,
    panels: Sequence[Callable[[Axes], Any]],
    notes: Sequence[str],
    legend_lines: int = 1,
) -> Figure:
    """The panels side by side under a title, above a caption.

    Args:
        result: named in the caption, with its checks.
        source: where it comes from.
        title: a few words.
        panels: what draws each.
        notes: how to read it, a sentence each.
        legend_lines: of the panel that has most.
    """
    width = _LEFT + 2 * _PANEL + _BETWEEN + _RIGHT
    about = [describe_windows(source), *describe_left_out(source)]
    told = [*notes, *(f"{line[0].upper()}{line[1:]}." for line in about)]
    lines = caption_lines(result, told, IDENTITIES, width - 2 * _MARGIN)
    bottom = _MARGIN + LINE * len(lines) + _BELOW
    height = bottom + _HEIGHT + _LEGEND * legend_lines + _TITLE
    with style.styled():
        figure = Figure(figsize=(width, height))
        for i, draw in enumerate(panels):
            left = _LEFT + i * (_PANEL + _BETWEEN)
            inches = (left / width, bottom / height, _PANEL / width, _HEIGHT / height)
            draw(figure.add_axes(inches))
        write_frame(figure, title, lines, _MARGIN, bottom - _BELOW)
    return figure


def plain_axes(ax: Axes, label: str) -> None:
    """Two spines, a faint grid behind what is drawn, and what the y axis says."""
    style.plain_axes(ax)
    ax.set_ylabel(label, color=style.FAINT, **style.LABEL)


def band(ax: Axes, xs: Any, mean: Floats, error: Floats, name: str, **look: Any) -> None:
    """A line with its standard error around it."""
    error = np.nan_to_num(error)
    ax.fill_between(xs, mean - error, mean + error, color=look["color"], alpha=0.22, linewidth=0)
    few = math.ceil(len(mean) / 26)
    ax.plot(xs, mean, label=name, linewidth=1.6, markersize=3, markevery=few, **look)


def depths(points: Sequence[str]) -> list[float]:
    """Where points lie along the blocks: block L reaches from L to L + 1."""
    found = []
    for point in points:
        layer, _, kind = point.partition(".")
        found.append(0.0 if point == "embed" else int(layer) + (1.0 if kind == "post" else 0.5))
    return found


def label_points(ax: Axes, n_layers: int) -> None:
    """Names of embed and of every L.post below the Axes, as many as there is room for."""
    ax.set_xlim(-0.02 * n_layers - 0.1, 1.02 * n_layers + 0.1)
    names = {0.0: "embed"} | {layer + 1.0: f"{layer}.post" for layer in range(n_layers)}
    _label(ax, names, 1.04 * n_layers + 0.2, "point of the residual stream")


def label_layers(ax: Axes, n_layers: int) -> None:
    """Numbers of the layers below the Axes, as many as there is room for."""
    ax.set_xlim(-0.6, n_layers - 0.4)
    _label(ax, {float(layer): str(layer) for layer in range(n_layers)}, n_layers + 0.2, "layer")


def _label(ax: Axes, names: Mapping[float, str], span: float, title: str) -> None:
    room = ax.get_window_extent().width * 72 / ax.figure.dpi / span
    wanted = max(style.text_width(name, style.SIZE) for name in names.values()) + 8
    rounds = (factor * 10**power for power in range(6) for factor in (1, 2, 5))
    step = next(distance for distance in rounds if distance * room >= wanted)
    shown = {at: name for i, (at, name) in enumerate(names.items()) if i % step == 0}
    ax.set_xticks([*shown], [*shown.values()], **style.LABEL)
    ax.set_xlabel(title, color=style.FAINT, **style.LABEL)


def legend(ax: Axes, columns: int = 3) -> None:
    """Name what is drawn, above the Axes; text is taken as it is."""
    style.plain_legend(
        ax,
        loc="lower left",
        bbox_to_anchor=(-0.02, 0.99),
        ncols=columns,
        handlelength=2.2,
        columnspacing=1.4,
    )


def log_scale(ax: Axes, values: Floats) -> None:
    """A log scale around the values, its ticks written out; linear where none is positive."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not len(positive):
        return
    low, high = float(positive.min()), float(positive.max())
    room = max(math.log(2) - math.log(high / low), 0.08 * math.log(high / low)) / 2
    low, high = low * math.exp(-room), high * math.exp(room)
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for factors in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 5), (1, 3), (1,)):
        found = [float(f"{f}e{decade}") for decade in decades for f in factors]
        ticks = [tick for tick in found if low <= tick <= high]
        if len(ticks) <= _MOST_TICKS:
            break
    ax.set_yticks(ticks, [f"{tick:,.6g}" for tick in ticks], **style.LABEL)
    ax.minorticks_off()
