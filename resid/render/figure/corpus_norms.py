"""Norms over text as figures: bands over tokens, and what attention and MLP write."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.corpus_words import describe_growth, describe_steps
from resid.render.figure import corpus_panels as panels
from resid.render.figure import ticks
from resid.render.figure.style import INK, MARK, styled
from resid.render.words import count
from resid.results import CorpusNorms, Floats


def corpus_norms_figure(norms: CorpusNorms) -> Figure:
    """The norm at every point on the left, what was written in every layer on the right.

    Args:
        norms: what to draw.
    """
    rest = norms.tokens - norms.not_finite - norms.tokens_at_start
    notes = [
        f"Over {count(rest, 'token')}; {norms.tokens_at_start:,} at position 0 are drawn apart.",
        *(
            f"{line[0].upper()}{line[1:]}."
            for line in (describe_growth(norms), describe_steps(norms))
        ),
    ]
    return panels.two_panels(
        norms,
        norms.source,
        f"Stream norms of {norms.source.model} over text",
        [lambda ax: draw_corpus_norms(norms, ax), lambda ax: draw_written(norms, ax)],
        notes,
        legend_lines=2,
    )


def draw_corpus_norms(norms: CorpusNorms, ax: Axes) -> Axes:
    """Draw the mean norm at every point, and bands that hold half and nine tenths of the tokens.

    Args:
        norms: what to draw.
        ax: where to.

    Returns:
        `ax`.
    """
    with styled():
        xs = ticks.depths(norms.points)
        quantiles, first = norms.l2.quantiles, norms.l2.mean_at_start
        for low, high, opacity in ((0, -1, 0.13), (1, -2, 0.25)):
            shares = norms.quantile_shares
            name = f"{100 * shares[low]:.0f} to {100 * shares[high]:.0f}% of tokens"
            ax.fill_between(
                xs,
                quantiles[:, low],
                quantiles[:, high],
                color=panels.STREAM,
                alpha=opacity,
                linewidth=0,
                label=name,
            )
        ax.plot(xs, norms.l2.mean, "o-", color=panels.STREAM, markersize=3, label="mean")
        if np.isfinite(first).any():
            look: dict[str, Any] = {
                "color": MARK,
                "linestyle": (0, (4, 1.2, 1, 1.2)),
                "marker": "D",
            }
            ax.plot(xs, first, markersize=3, linewidth=1.2, label="position 0, mean", **look)
        growth = norms.growth
        if np.isfinite(growth.per_layer):
            depth = np.asarray(norms.layers) + 1
            name = f"×{growth.per_layer:.3f} per layer"
            line: dict[str, Any] = {"color": INK, "linewidth": 1.1, "linestyle": (0, (5, 2.5))}
            ax.plot(depth, growth.fitted_l2, label=name, **line)
        shown = [quantiles.ravel(), norms.l2.mean, first]
        panels.plain_axes(ax, "L2 norm of the residual stream")
        ticks.log_scale(ax, np.concatenate(shown))
        ticks.label_points(ax, norms.source.n_layers)
        panels.legend(ax)
    return ax


def draw_written(norms: CorpusNorms, ax: Axes) -> Axes:
    """Draw the norm of what attention and MLP write in every layer."""
    with styled():
        xs = np.asarray(norms.layers, dtype=float)
        shown: list[Floats] = []
        for name, spread, colour, marker in (
            ("attention", norms.attn_out, panels.SECOND, "o"),
            ("MLP", norms.mlp_out, panels.THIRD, "s"),
        ):
            low, high = spread.quantiles[:, 1], spread.quantiles[:, -2]
            ax.fill_between(xs, low, high, color=colour, alpha=0.18, linewidth=0)
            look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3}
            ax.plot(xs, spread.mean, label=f"{name}, mean and middle half", **look)
            shown += [low, high, spread.mean]
        panels.plain_axes(ax, "L2 norm of the write")
        ticks.log_scale(ax, np.concatenate(shown))
        ticks.label_layers(ax, len(xs))
        panels.legend(ax, columns=1)
    return ax
