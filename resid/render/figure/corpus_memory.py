"""Neurons over text as figures: Geva's agreement by layer, and how many neurons fire."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.figure import corpus_panels as panels
from resid.render.figure import ticks
from resid.render.figure.style import FAINT, styled
from resid.render.words import describe_projection
from resid.results import CorpusMemory

_SHARES = (5, 25, 50, 75, 95)


def corpus_memory_figure(memory: CorpusMemory) -> Figure:
    """Agreement by layer on the left, the share of tokens that fire a neuron on the right.

    Args:
        memory: what to draw.
    """
    notes = []
    if memory.projection is not None:
        told = describe_projection(memory.projection)
        notes = [
            "Agreement (Geva et al. 2021): neurons whose value's top token follows their strongest "
            "trigger; bands: standard error by document.",
            f"{told[0].upper()}{told[1:]}.",
        ]
    notes.append("A token fires a neuron whose coefficient is above 0.")
    return panels.two_panels(
        memory,
        memory.source,
        f"Neurons of {memory.source.model} over text",
        [lambda ax: draw_corpus_memory(memory, ax), lambda ax: draw_fires(memory, ax)],
        notes,
        legend_lines=2,
    )


def draw_corpus_memory(memory: CorpusMemory, ax: Axes) -> Axes:
    """Draw Geva's agreement by layer beside what chance gives.

    Args:
        memory: what to draw.
        ax: where to.

    Returns:
        `ax`.
    """
    with styled():
        xs = np.asarray(memory.layers, dtype=float)
        look: dict[str, Any] = {"color": panels.STREAM, "marker": "o"}
        agreement, error = 100 * memory.agreement, 100 * memory.agreement_se
        panels.band(ax, xs, agreement, error, "agreement", **look)
        chance: dict[str, Any] = {"color": FAINT, "linestyle": (0, (5, 2.5)), "linewidth": 1.1}
        ax.plot(xs, 100 * memory.agreement_chance, label="chance", **chance)
        panels.plain_axes(ax, "% of the layer's neurons")
        ax.set_ylim(bottom=0)
        ticks.label_layers(ax, len(xs))
        panels.legend(ax)
    return ax


def draw_fires(memory: CorpusMemory, ax: Axes) -> Axes:
    """Draw how often the neurons of each layer fire: mean, half and nine tenths of them."""
    with styled():
        xs = np.asarray(memory.layers, dtype=float)
        bands = 100 * np.percentile(memory.fires, _SHARES, axis=1)
        for low, high, opacity in ((0, 4, 0.13), (1, 3, 0.25)):
            name = f"{_SHARES[low]} to {_SHARES[high]}% of neurons"
            look: dict[str, Any] = {"color": panels.STREAM, "alpha": opacity, "linewidth": 0}
            ax.fill_between(xs, bands[low], bands[high], label=name, **look)
        ax.plot(xs, bands[2], color=panels.STREAM, linewidth=1.6, label="median neuron")
        mean: dict[str, Any] = {"color": panels.THIRD, "marker": "s", "markersize": 3}
        ax.plot(xs, 100 * memory.active, label="mean", **mean)
        panels.plain_axes(ax, "% of tokens that fire the neuron")
        ax.set_ylim(bottom=0)
        ticks.label_layers(ax, len(xs))
        panels.legend(ax, columns=2)
    return ax
