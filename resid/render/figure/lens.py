"""The logit lens as the field draws it: depth upward, the prompt to the right."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import MaxNLocator

from resid.render.figure import style
from resid.render.quantities import Quantity, lens_quantity
from resid.render.words import NOT_FINITE
from resid.results import Floats, LogitLens

Bools = npt.NDArray[np.bool_]

MOST_TEXT_COLUMNS = 64
"""Columns beyond which cells have colours only."""
MOST_SETTLED = 128
"""Columns beyond which the line of settled points hides what is below it."""
"""Font size of labels and, where they fit, of cells, in points."""
PAD = 5.0
"""Points between a cell's text and its edges, both sides together."""
UPRIGHT = 62.0
"""Points that a column's label may take where columns are too narrow to lay it down."""

_SMALLER = (7.0, 6.0)
_SMALLEST_LEGIBLE = 4.5
_NARROWEST_TEXT = 20.0
_MOST_VECTOR_CELLS = 4096


def draw_lens(
    lens: LogitLens, ax: Axes, show: str = "prob", colour_bar: Axes | None = None
) -> Axes:
    """Draw the lens on the Axes as they are: cells, their top tokens, both rows of the prompt.

    Args:
        lens: what to draw.
        ax: where to; its size decides how much text there is.
        show: what the colour means: prob, entropy, kl, margin, or the target's rank.
        colour_bar: Axes for the colour bar; None takes the room from `ax`.

    Returns:
        `ax`.
    """
    quantity = lens_quantity(lens, show)
    with style.styled():
        mesh = _draw_cells(quantity, ax)
        _draw_colour_bar(quantity, mesh, ax, colour_bar)
        _draw_points(lens, ax)
        _draw_prompt(lens, ax)
        _draw_settled(lens, ax)
        _draw_tokens(lens, np.isfinite(quantity.values), mesh.to_rgba(quantity.values), ax)
    return ax


def _draw_cells(quantity: Quantity, ax: Axes) -> QuadMesh:
    values = np.ma.masked_invalid(quantity.values)
    n_points, n_pos = values.shape
    norm = (LogNorm if quantity.scale == "log" else Normalize)(*quantity.limits)
    few = values.size <= _MOST_VECTOR_CELLS
    if values.mask.any():
        # Cells without a value let the background through.
        ax.patch.set(facecolor="#f2f2f2", edgecolor="#c4c4c4", hatch="////", linewidth=0)
    mesh = ax.pcolormesh(
        np.arange(n_pos + 1) - 0.5,
        np.arange(n_points + 1) - 0.5,
        values,
        cmap=style.surer_is_darker(quantity.more_is_surer),
        norm=norm,
        edgecolors="white" if few else "none",
        linewidth=0.6 if few else 0,
        rasterized=not few,
    )
    ax.set(xlim=(-0.5, n_pos - 0.5), ylim=(-0.5, n_points - 0.5))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return mesh


def _draw_colour_bar(quantity: Quantity, mesh: QuadMesh, ax: Axes, bar: Axes | None) -> None:
    colour_bar = ax.figure.colorbar(mesh, cax=bar, ax=None if bar else ax, pad=0.03)
    low, high = quantity.limits
    if quantity.scale == "log":
        ticks = [10.0**i for i in range(int(math.log10(high)) + 1)]
    else:
        ticks = [t for t in MaxNLocator(5).tick_values(low, high) if low <= t <= high]
    colour_bar.ax.minorticks_off()
    colour_bar.set_ticks(ticks, labels=[f"{t:,.6g}" for t in ticks], **style.LABEL)
    of = "" if quantity.token is None else f" of {style.mark_token(quantity.token)}"
    room = colour_bar.ax.get_window_extent().height * 72 / ax.figure.dpi
    colour_bar.set_label(style.shorten(quantity.name + of, room, style.SIZE), **style.LABEL)
    if not quantity.more_is_surer:  # dark is on top in every figure
        colour_bar.ax.invert_yaxis()
    colour_bar.outline.set_visible(False)
    colour_bar.ax.tick_params(length=2, color=style.FAINT)


def _draw_points(lens: LogitLens, ax: Axes) -> None:
    _, height = _cell(lens, ax)
    shown = _thinned(len(lens.points), 9 / height)
    labels = [style.printable(lens.points[i]) for i in shown]
    ax.set_yticks(shown, labels, **style.LABEL)
    ax.set_ylabel("point of the residual stream", color=style.FAINT, **style.LABEL)


def input_labels(lens: LogitLens) -> list[str]:
    """Position and token of every column; the position tells equal tokens apart."""
    return [f"{p} {style.mark_token(lens.source.tokens[p])}" for p in lens.positions]


def _next_labels(lens: LogitLens) -> list[str]:
    following = [*map(style.mark_token, lens.source.tokens[1:]), "?"]
    return [following[p] for p in lens.positions]


def _draw_prompt(lens: LogitLens, ax: Axes) -> None:
    """The tokens read below the cells, the tokens that really follow above them."""
    width, _ = _cell(lens, ax)
    inputs, following = input_labels(lens), _next_labels(lens)
    upright = width < min(max(style.text_width(label, style.SIZE) for label in inputs), 40)
    shown = _thinned(len(lens.positions), 11 / width if upright else 1)
    room = UPRIGHT if upright else width - PAD

    def labels(texts: Sequence[str]) -> list[str]:
        return [style.shorten(texts[i], room, style.SIZE) for i in shown]

    rotation = 90 if upright else 0
    ax.set_xticks(shown, labels(inputs), rotation=rotation, **style.LABEL)
    ax.set_xlabel("position and input token", color=style.FAINT, **style.LABEL)
    above = ax.secondary_xaxis("top")
    above.spines[:].set_visible(False)
    above.tick_params(length=0, labelcolor=style.FAINT)
    above.set_ticks(shown, labels(following), rotation=rotation, **style.LABEL)
    above.set_xlabel("actual next token", color=style.FAINT, **style.LABEL)


def _draw_settled(lens: LogitLens, ax: Axes) -> None:
    """A staircase below the cells from which on the top token stays."""
    if len(lens.positions) > MOST_SETTLED:
        return
    xs = np.repeat(np.arange(len(lens.positions) + 1) - 0.5, 2)[1:-1]
    starts = [np.nan if at is None else lens.points.index(at) - 0.5 for at in lens.settled_at]
    width = 1.4 if len(starts) <= MOST_TEXT_COLUMNS else 1.0
    ax.plot(xs, np.repeat(starts, 2), color=style.MARK, linewidth=width, clip_on=False)


def _draw_tokens(lens: LogitLens, finite: Bools, colours: Floats, ax: Axes) -> None:
    """The top token of every cell, unless cells are too small for text."""
    width, height = _cell(lens, ax)
    largest = min(style.SIZE, height / 1.4)
    crowded = len(lens.positions) > MOST_TEXT_COLUMNS or width < _NARROWEST_TEXT
    if crowded or largest < _SMALLEST_LEGIBLE:
        return
    sizes = [largest, *(size for size in _SMALLER if size < largest)]
    for i, j in np.ndindex(*lens.top_ids.shape[:2]):
        text = style.mark_token(lens.top_tokens[i, j, 0]) if finite[i, j] else NOT_FINITE
        fits = (s for s in sizes if style.text_width(text, s) <= width - PAD)
        size = next(fits, sizes[-1])
        ax.text(
            j,
            i,
            style.shorten(text, width - PAD, size),
            size=size,
            color=style.ink_on(colours[i, j]) if finite[i, j] else style.FAINT,
            ha="center",
            va="center_baseline",
            **style.PLAIN_TEXT,
        )


def _cell(lens: LogitLens, ax: Axes) -> tuple[float, float]:
    """Width and height of a cell in points."""
    box = ax.get_window_extent()
    scale = 72 / ax.figure.dpi
    return box.width * scale / len(lens.positions), box.height * scale / len(lens.points)


def _thinned(n: int, step: float) -> list[int]:
    """Indices at round distances of at least `step`."""
    rounds = (factor * 10**power for power in range(6) for factor in (1, 2, 5))
    return list(range(0, n, next(distance for distance in rounds if distance >= step)))
