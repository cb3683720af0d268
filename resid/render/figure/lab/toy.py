"""The five-layer net as a figure: gradients by layer, many seeds, slopes and their products."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.figure import style
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.figure.lab.panels import legend, log_scale
from resid.render.lab_words import IDENTITIES
from resid.results.lab import LabToy

_COLOURS = ("#9ecae1", "#08519c", "#aa4499")
_SLOPE_COLOURS = ("#009e73", "#08519c", "#aa4499")
_MARKERS = ("o", "s", "^")
# The two GELUs lie on each other: the first shows as a rim around the second.
_WIDTHS = (3.6, 1.1, 1.1)
_DASHED = (0, (4, 2))
# In inches.
_MARGIN = 0.2
_TITLE = 0.85
_LEFT, _WIDE, _BETWEEN, _NARROW, _RIGHT = 0.75, 3.3, 0.8, 2.6, 0.2
_HEIGHT = 2.9
_BELOW = 0.5


def toy_figure(toy: LabToy) -> Figure:
    """Gradients by layer; beside them the slopes of f and x + f(x), and what 48 layers make of it.

    Args:
        toy: what to draw.
    """
    width = _LEFT + _WIDE + 2 * (_BETWEEN + _NARROW) + _RIGHT
    lines = caption_lines(toy, [toy.finding, *_notes(toy)], IDENTITIES, width - 2 * _MARGIN)
    bottom = _MARGIN + LINE * len(lines) + _BELOW
    height = bottom + _HEIGHT + _TITLE
    with style.styled():
        figure = Figure(figsize=(width, height))

        def place(left: float, across: float) -> Axes:
            inches = (left / width, bottom / height, across / width, _HEIGHT / height)
            return figure.add_axes(inches)

        draw_toy(toy, place(_LEFT, _WIDE))
        _draw_slopes(toy, place(_LEFT + _WIDE + _BETWEEN, _NARROW))
        _draw_products(toy, place(_LEFT + _WIDE + 2 * _BETWEEN + _NARROW, _NARROW))
        title = "A net of five layers, with and without shortcuts"
        write_frame(figure, title, lines, _MARGIN, bottom - _BELOW)
    return figure


def draw_toy(toy: LabToy, ax: Axes) -> Axes:
    """Draw the mean gradient of each layer, solid with shortcuts, dashed without.

    Args:
        toy: what to draw.
        ax: where to.

    Returns:
        `ax`.
    """
    with style.styled():
        style.plain_axes(ax)
        for name, nets, colour, marker, width in zip(
            toy.activations, toy.gradients, _COLOURS, _MARKERS, _WIDTHS, strict=False
        ):
            for net, (line, how) in enumerate(((_DASHED, "plain"), ("-", "shortcuts"))):
                ax.plot(
                    toy.layers,
                    np.where(nets[net] > 0, nets[net], np.nan),
                    color=colour,
                    marker=marker,
                    markersize=4,
                    markerfacecolor="white" if net == 0 else colour,
                    linewidth=width,
                    linestyle=line,
                    label=f"{name}, {how}",
                )
        log_scale(ax, toy.gradients)
        ax.set_xticks(toy.layers, [str(layer) for layer in toy.layers], **style.LABEL)
        ax.set_xlabel("layer, 0 reads the input", color=style.FAINT, **style.LABEL)
        ax.set_ylabel("mean absolute gradient of the weights", color=style.FAINT, **style.LABEL)
        legend(ax, above=True)
    return ax


def _draw_slopes(toy: LabToy, ax: Axes) -> None:
    """The derivative of f, and that of x + f(x): the same, one higher."""
    style.plain_axes(ax)
    for name, slope, higher, colour, width in zip(
        toy.activations, toy.slope, toy.slope_shortcut, _COLOURS, _WIDTHS, strict=False
    ):
        ax.plot(toy.x, slope, color=colour, linewidth=width, linestyle=_DASHED)
        ax.plot(toy.x, higher, color=colour, linewidth=width, label=name)
    for level in (0, 1):
        ax.axhline(level, color=style.FAINT, linewidth=0.6, linestyle=(0, (1, 2)), zorder=0)
    ax.set_xlabel("x", color=style.FAINT, **style.LABEL)
    ax.set_ylabel("slope: dashed of f, solid of x + f(x)", color=style.FAINT, **style.LABEL)
    legend(ax, above=True, columns=1)


def _draw_products(toy: LabToy, ax: Axes) -> None:
    """Powers of a slope, layer by layer."""
    style.plain_axes(ax)
    depths = np.arange(toy.depth + 1)
    chosen = (toy.slopes[0], toy.slopes[-2], toy.slopes[-1])
    every = []
    for slope, colour, marker in zip(chosen, _SLOPE_COLOURS, _MARKERS, strict=True):
        for base, line, first in ((abs(slope), _DASHED, 6), (1 + slope, "-", 0)):
            powers = base**depths
            every.append(powers)
            ax.plot(
                depths,
                powers,
                color=colour,
                linewidth=1.1,
                linestyle=line,
                marker=marker,
                markevery=(first, 12),
                markersize=4,
                markerfacecolor=colour if first == 0 else "white",
                label=f"{slope}, {'plain' if first else 'shortcut'}",
            )
    log_scale(ax, np.concatenate(every), low=1e-6, high=1e6)
    ax.set_xticks([0, 12, 24, 36, 48], ["0", "12", "24", "36", "48"], **style.LABEL)
    ax.set_xlabel("layers", color=style.FAINT, **style.LABEL)
    ax.set_ylabel("gradient that comes through, for f of a slope", color=style.FAINT, **style.LABEL)
    legend(ax, above=True)


def _notes(toy: LabToy) -> list[str]:
    sides = []
    for name, (plain, shortcuts) in zip(toy.activations, toy.silent, strict=True):
        if plain or shortcuts:
            sides.append(
                f"With {name} no gradient at all reaches layer 0 in {plain:.0%} of the nets "
                f"without shortcuts, and in {shortcuts:.0%} of those with."
            )
    notes = [
        "Dashed: without shortcuts.",
        f"Right: {toy.slopes[0]} plain and {toy.slopes[-1]} with a shortcut lie on each other, as "
        "each layer multiplies by the same; sizes, cut at 1e-6 and 1e6.",
    ]
    return [*notes, *sides]
