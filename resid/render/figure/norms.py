"""The stream's norm as it passes through the blocks, and what every block writes to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes

from resid.render import norm_summary as summary
from resid.render.figure import style, ticks
from resid.results import Floats, StreamNorms
from resid.tokens import mark_spaces

Legend = Literal["inside", "above", "none"]
LEGEND_COLUMNS = 2
STREAM = "#08519c"
WRITERS = (("attn_out", "attention", "#009e73", "o"), ("mlp_out", "MLP", "#aa4499", "s"))
"""Sublayer, its name, its colour and its marker: told apart without colour too."""

_MOST_MARKERS = 26
_APART_MARKERS = "DvX^P"


def draw_norms(norms: StreamNorms, ax: Axes, legend: Legend = "inside") -> Axes:
    """Draw the L2 norm at every point: median and spread over positions, what is apart, the fit.

    Args:
        norms: what to draw.
        ax: where to.
        legend: inside, where it hides least; above the Axes; or none.

    Returns:
        `ax`.
    """
    with style.styled():
        over = summary.spread(norms, norms.l2)
        xs = ticks.depths(norms.points)
        _draw_spread(norms, over, xs, ax)
        _draw_apart(norms, xs, ax)
        _draw_fit(norms, ax)
        shown = norms.l2[:, summary.shown(norms) + summary.apart(norms)]
        style.plain_axes(ax)
        ticks.log_scale(ax, np.concatenate([shown.ravel(), norms.growth.fitted_l2]))
        ticks.label_points(ax, norms.source.n_layers)
        ax.set_ylabel("L2 norm of the residual stream", color=style.FAINT, **style.LABEL)
        _draw_legend(ax, legend)
    return ax


def draw_writes(norms: StreamNorms, ax: Axes, what: str, legend: Legend = "inside") -> Axes:
    """Draw how much attention and MLP wrote in every block: medians over positions.

    Args:
        norms: what to draw.
        ax: where to.
        what: "l2", the norm of the write, or "ratio", that norm beside the stream's.
        legend: as for `draw_norms`.
    """
    with style.styled():
        every = []
        for i, (sublayer, name, colour, marker) in enumerate(WRITERS):
            medians = summary.spread(norms, getattr(norms, f"{sublayer}_{what}")).median
            every.append(medians)
            ax.plot(
                np.asarray(norms.layers) + 0.25 + 0.5 * i,
                _positive(medians),
                color=colour,
                label=name,
                linewidth=1.2,
                marker=marker,
                markersize=3,
                markevery=math.ceil(len(medians) / _MOST_MARKERS),
            )
        values = np.concatenate(every)
        if what == "ratio":
            ax.axhline(1, color=style.FAINT, linewidth=0.6, linestyle=(0, (1, 2)), zorder=0)
            values = np.append(values, 1.0)
        style.plain_axes(ax)
        ticks.log_scale(ax, values)
        ticks.label_points(ax, norms.source.n_layers)
        label = {"l2": "L2 norm of the write", "ratio": "write / stream it is added to"}[what]
        ax.set_ylabel(label, color=style.FAINT, **style.LABEL)
        _draw_legend(ax, legend)
    return ax


def legend_entries(norms: StreamNorms) -> int:
    """How many lines the legend of `draw_norms` has."""
    over = 3 if len(summary.shown(norms)) > 1 else 1
    fit = norms.growth.reason is None
    return over + min(len(summary.apart(norms)), len(_APART_MARKERS)) + fit


def _draw_spread(norms: StreamNorms, over: summary.Spread, xs: Sequence[float], ax: Axes) -> None:
    positions = [norms.positions[i] for i in summary.shown(norms)]
    several = len(positions) > 1
    if several:
        for low, high, opacity, label in (
            (over.low, over.high, 0.13, "smallest to largest"),
            (over.lower, over.upper, 0.25, "middle half"),
        ):
            ax.fill_between(
                xs,
                _positive(low),
                _positive(high),
                color=STREAM,
                alpha=opacity,
                linewidth=0,
                label=label,
            )
    ax.plot(
        xs,
        _positive(over.median),
        color=STREAM,
        linewidth=1.6,
        marker="o",
        markevery=math.ceil(len(xs) / _MOST_MARKERS),
        markersize=3,
        label="median over positions" if several else _name(norms, positions[0]),
    )


def _draw_apart(norms: StreamNorms, xs: Sequence[float], ax: Axes) -> None:
    indices = summary.apart(norms)
    for n, i in enumerate(indices[: len(_APART_MARKERS)]):
        ax.plot(
            xs,
            _positive(norms.l2[:, i]),
            color=style.MARK,
            linewidth=1.2,
            linestyle=(0, (4, 1.2, 1, 1.2)),
            marker=_APART_MARKERS[n],
            markevery=math.ceil(len(xs) / _MOST_MARKERS),
            markersize=3,
            label=_name(norms, norms.positions[i]),
        )


def _name(norms: StreamNorms, position: int) -> str:
    token = mark_spaces(norms.source.tokens[position])
    label = style.printable(f"position {position}, {token}")
    return style.shorten(label, 150, style.SIZE)


def _draw_fit(norms: StreamNorms, ax: Axes) -> None:
    growth = norms.growth
    if growth.reason is not None:
        return
    fit = f", R² {summary.share(growth.r_squared)}" if math.isfinite(growth.r_squared) else ""
    ax.plot(
        np.asarray(norms.layers) + 1,
        growth.fitted_l2,
        color=style.INK,
        linewidth=1.1,
        linestyle=(0, (5, 2.5)),
        label=f"×{growth.per_layer:.3f} per layer{fit}",
        zorder=3,
    )


def _draw_legend(ax: Axes, where: Legend) -> None:
    if where == "none":
        return
    above = where == "above"
    place = {"loc": "lower left", "bbox_to_anchor": (-0.015, 1.0)} if above else {"loc": "best"}
    style.plain_legend(
        ax,
        **place,
        ncols=LEGEND_COLUMNS if above else 1,
        handlelength=2.6,
        columnspacing=1.6,
    )


def _positive(values: Floats) -> Floats:
    """The values, with a gap where a log scale has no place for one."""
    return np.where(values > 0, values, np.nan)
