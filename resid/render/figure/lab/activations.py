"""Activation functions as a figure: curves, slopes, how near GELU's forms are, and what is off."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from resid.render.figure import style
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.figure.lab.panels import legend
from resid.render.lab_activations_words import IDENTITIES, percent
from resid.results import Floats
from resid.results.lab import LabActivations
from resid.results.lab.activations import FLAT, ActivationsInModel

# Colour and line of each function: told apart without colour too.
_LINES = {
    "ReLU": ("#222222", (0, (1, 1.2))),
    "GELU": ("#08519c", "-"),
    "tanh GELU": ("#e8710a", (0, (4, 3))),
    "SiLU": ("#009e73", (0, (5, 1.5, 1, 1.5))),
    "quick GELU": ("#aa4499", (0, (2, 1))),
}
_VALUES_END = 2.0
# In inches.
_MARGIN = 0.2
_TITLE = 0.7
_LEFT, _PANEL, _BETWEEN, _RIGHT = 0.75, 3.7, 0.9, 0.25
_HEIGHT, _GAP = 2.5, 0.85
_BELOW = 0.5


def activations_figure(result: LabActivations) -> Figure:
    """Values and slopes above; below the difference of GELU's forms, and shares that are off.

    Args:
        result: what to draw.
    """
    width = _LEFT + 2 * _PANEL + _BETWEEN + _RIGHT
    notes = [result.finding, *_notes(result)]
    lines = caption_lines(result, notes, IDENTITIES, width - 2 * _MARGIN)
    bottom = _MARGIN + LINE * len(lines) + _BELOW
    height = bottom + 2 * _HEIGHT + _GAP + _TITLE
    with style.styled():
        figure = Figure(figsize=(width, height))

        def place(column: int, row: int) -> Axes:
            left = _LEFT + column * (_PANEL + _BETWEEN)
            lowest = bottom + (1 - row) * (_HEIGHT + _GAP)
            inches = (left / width, lowest / height, _PANEL / width, _HEIGHT / height)
            return figure.add_axes(inches)

        draw_activations(result, place(0, 0))
        _draw_curves(result, place(1, 0), result.slope, "slope at x", -math.inf, math.inf)
        _draw_differences(result, place(0, 1))
        if result.inside is None:
            _draw_shares(result, place(1, 1))
        else:
            _draw_layers(result, result.inside, place(1, 1))
        name = "" if result.inside is None else f", and the neurons of {result.source.subject}"
        write_frame(figure, f"Activation functions{name}", lines, _MARGIN, bottom - _BELOW)
    return figure


def draw_activations(result: LabActivations, ax: Axes) -> Axes:
    """Draw the functions where they bend.

    Args:
        result: what to draw.
        ax: where to.

    Returns:
        `ax`.
    """
    with style.styled():
        _draw_curves(result, ax, result.value, "value at x", -math.inf, _VALUES_END)
        for name, at, lowest in zip(
            result.functions, result.minimum_at, result.minimum, strict=True
        ):
            if math.isfinite(at):
                ax.plot([at], [lowest], "o", color=_LINES[name][0], markersize=4)
        legend(ax, above=True, columns=3)
    return ax


def _draw_curves(
    result: LabActivations, ax: Axes, values: Floats, what: str, first: float, last: float
) -> None:
    style.plain_axes(ax)
    shown = (result.x >= first) & (result.x <= last)
    ax.axhline(0, color=style.FAINT, linewidth=0.6)
    for name, each in zip(result.functions, values, strict=True):
        colour, line = _LINES[name]
        wide = 2.4 if name == "GELU" else 1.4  # Its tanh form lies on it.
        ax.plot(
            result.x[shown], each[shown], color=colour, linestyle=line, linewidth=wide, label=name
        )
    _label(ax, "x", what)


def _draw_differences(result: LabActivations, ax: Axes) -> None:
    """The tanh form minus GELU, in ten-thousandths."""
    style.plain_axes(ax)
    a, b = result.functions.index("tanh GELU"), result.functions.index("GELU")
    ax.axhline(0, color=style.FAINT, linewidth=0.6)
    colour = _LINES["tanh GELU"][0]
    ax.plot(result.x, 1e4 * (result.value[a] - result.value[b]), color=colour, linewidth=1.6)
    for i, pair in enumerate(zip(result.first, result.second, strict=True)):
        if pair != (a, b) or result.apart_at[i] > result.x[-1]:
            continue
        at, by = float(result.apart_at[i]), 1e4 * float(result.apart[i])
        ax.plot([-at, at], [by, by], "o", color=colour, markersize=4)
        ax.annotate(
            f"{by:+.4f} at ±{at:.4f}",
            (0, by),
            xytext=(0, 0 if by > 0 else -11),  # What lies between the lower two is the curve.
            textcoords="offset points",
            ha="center",
            va="center",
            color=style.INK,
            **style.LABEL,
        )
    low, high = ax.get_ylim()
    ax.set_ylim(low - 0.1 * (high - low), high)
    _label(ax, "x", "tanh GELU minus GELU, in 1/10,000")


def _draw_shares(result: LabActivations, ax: Axes) -> None:
    """The share of standard normal inputs for which each function is as good as flat."""
    style.plain_axes(ax)
    rows = np.arange(len(result.functions))
    for row, share in zip(rows, result.normal_flat, strict=True):
        ax.barh(row, 100 * share, height=0.6, color=_LINES[result.functions[row]][0])
        ax.annotate(
            percent(float(share)), (100 * share, row), xytext=(4, 0),
            textcoords="offset points", va="center", color=style.INK, **style.LABEL,
        )  # fmt: skip
    ax.set_yticks(rows, result.functions, **style.LABEL)
    ax.invert_yaxis()
    ax.grid(visible=False)
    ax.set_xlim(0, 100 * max(0.1, 1.15 * float(result.normal_flat.max())))
    _label(ax, f"% of standard normal inputs with a slope below {FLAT} in size", "")


def _draw_layers(result: LabActivations, inside: ActivationsInModel, ax: Axes) -> None:
    """By layer: how much lies at or below 0, which neurons stay there, and what is flat."""
    style.plain_axes(ax)
    lines: list[tuple[str, Floats, str, str, Any]] = [
        ("at or below 0", inside.off, "#222222", "o", "-"),
        ("neurons that stay there", inside.off_throughout, "#08519c", "s", "-"),
    ]
    if inside.own is not None:
        name = result.functions[inside.own]
        colour = _LINES[name][0]
        lines.append(
            (f"flat in {name}, its own", inside.flat[inside.own], colour, "^", (0, (4, 2)))
        )
    many = len(inside.layers) > 24
    for name, shares, colour, marker, line in lines:
        ax.plot(
            inside.layers, 100 * shares, color=colour, linestyle=line, linewidth=1.4,
            marker=None if many else marker, markersize=4, label=name,
        )  # fmt: skip
    ax.set_ylim(0, 104)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(ax, above=True, columns=2)
    _label(ax, "layer", "% of pre-activations, or of neurons")


def _label(ax: Axes, below: str, beside: str) -> None:
    ax.set_xlabel(below, color=style.FAINT, **style.LABEL)
    ax.set_ylabel(beside, color=style.FAINT, **style.LABEL)


def _notes(result: LabActivations) -> list[str]:
    notes = [
        "Dots: where a function is lowest, and where the two forms of GELU are furthest apart."
    ]
    if result.inside is not None:
        positions = result.inside.positions
        notes.append(
            f"Lower right: shares of all pre-activations over {positions} positions; a neuron "
            f"stays there if it is at or below 0 at each of them. Flat: a slope below {FLAT}."
        )
    return notes
