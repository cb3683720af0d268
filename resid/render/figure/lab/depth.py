"""Deep stacks as a figure: residual and norm switched on and off, and what depth does."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from resid.render.figure import style
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.figure.lab.panels import legend, log_scale
from resid.render.lab_words import IDENTITIES, digits
from resid.results import Floats
from resid.results.lab import LabDepth

FORWARD, BACKWARD = "#08519c", style.MARK
# By row and column: residual off above, on below; norm off on the left, on at the right.
SWITCHES = (("neither", "no residual"), ("no norm", "pre-LN"))
_COLOURS = ("#08519c", "#009e73", "#aa4499", "#8c6d1f", "#666666")
_MARKERS = ("o", "s", "^", "D", "v")
_DASHED = (0, (4, 2))
# In inches.
_MARGIN = 0.2
_TITLE = 0.75
_LEFT, _PANEL, _APART, _BETWEEN, _SIDE, _RIGHT = 0.95, 2.35, 0.15, 0.95, 3.1, 0.25
_HEIGHT, _GAP = 1.95, 0.35
_BAR = 0.34
_BELOW = 0.5


def depth_figure(depth: LabDepth) -> Figure:
    """Residual and norm on and off on the left; on the right depth, and what a block consists of.

    Args:
        depth: what to draw.
    """
    width = _LEFT + 2 * _PANEL + _APART + _BETWEEN + _SIDE + _RIGHT
    lines = caption_lines(depth, [depth.finding, *_notes(depth)], IDENTITIES, width - 2 * _MARGIN)
    bottom = _MARGIN + LINE * len(lines) + _BELOW
    height = bottom + 2 * _HEIGHT + _GAP + _TITLE
    beside = _LEFT + 2 * _PANEL + _APART + _BETWEEN
    with style.styled():
        figure = Figure(figsize=(width, height))

        def place(left: float, lowest: float, across: float, upward: float) -> Axes:
            inches = (left / width, lowest / height, across / width, upward / height)
            return figure.add_axes(inches)

        top = bottom + _BAR + 0.95
        upward = 2 * _HEIGHT + _GAP - _BAR - 0.95 - 0.45
        draw_depth(depth, place(beside, top, _SIDE, upward))
        for row, wirings in enumerate(SWITCHES):
            for col, wiring in enumerate(wirings):
                left = _LEFT + col * (_PANEL + _APART)
                ax = place(left, bottom + (1 - row) * (_HEIGHT + _GAP), _PANEL, _HEIGHT)
                _draw_switch(depth, wiring, ax)
                _label_switch(ax, row, col)
        _draw_parameters(depth, place(beside, bottom, _SIDE, _BAR))
        title = f"{depth.layers} layers at initialisation: residual and LayerNorm, on and off"
        write_frame(figure, title, lines, _MARGIN, bottom - _BELOW)
    return figure


def draw_depth(depth: LabDepth, ax: Axes) -> Axes:
    """Draw the last layer's gradient by the number of layers, under pre-LN and post-LN.

    Args:
        depth: what to draw.
        ax: where to.

    Returns:
        `ax`.
    """
    with style.styled():
        _draw_trend(depth, ax)
    return ax


def _draw_switch(depth: LabDepth, wiring: str, ax: Axes) -> None:
    """Size of the stream, and of the gradient in units of that at the end, point by point."""
    j = depth.wirings.index(wiring)
    ends = depth.stream_gradient[0, j, :, -1:]
    gradients = depth.stream_gradient[0, j] / np.where(ends > 0, ends, np.nan)
    xs = np.arange(len(depth.points))
    style.plain_axes(ax)
    for values, colour, line in ((depth.rms[0, j], FORWARD, "-"), (gradients, BACKWARD, _DASHED)):
        shown = np.where(values > 0, values, np.nan)
        low, middle, high = shown.min(0), np.median(shown, axis=0), shown.max(0)
        ax.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(xs, middle, color=colour, linewidth=1.6, linestyle=line)
    log_scale(ax, _all_sizes(depth))
    low, high = ax.get_ylim()
    ax.set_ylim(low, high * (high / low) ** 0.35)  # Room for what is written there.
    cosine = float(np.median(depth.cosine[0, j, :, -1]))
    for high, text, colour in (
        (0.97, f"stream at the end {digits(float(np.median(depth.rms[0, j, :, -1])))}", FORWARD),
        (0.88, f"gradient at the input ×{digits(depth.came_through(0, wiring))}", BACKWARD),
        (0.79, f"cosine of its tokens {cosine:.2f}", style.FAINT),
    ):
        ax.text(
            0.03,
            high,
            text,
            transform=ax.transAxes,
            va="top",
            color=colour,
            size=7.5,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8},
            **style.PLAIN_TEXT,
        )
    ticks = sorted({0, depth.layers // 2, depth.layers})
    ax.set_xticks(ticks, [str(tick) for tick in ticks], **style.LABEL)


def _all_sizes(depth: LabDepth) -> Floats:
    """Everything that the four panels show, so that they have one scale."""
    every = [np.array([1.0])]
    for wiring in (wiring for row in SWITCHES for wiring in row):
        j = depth.wirings.index(wiring)
        ends = depth.stream_gradient[0, j, :, -1:]
        gradients = depth.stream_gradient[0, j] / np.where(ends > 0, ends, np.nan)
        every += [depth.rms[0, j].ravel(), gradients.ravel()]
    return np.concatenate(every)


def _label_switch(ax: Axes, row: int, col: int) -> None:
    if row == 0:
        name = ("without LayerNorm", "with LayerNorm, before the sublayer")[col]
        ax.set_title(name, size=8, color=style.INK, pad=5, **style.PLAIN_TEXT)
        ax.tick_params(labelbottom=False)
    else:
        ax.set_xlabel("blocks passed", color=style.FAINT, **style.LABEL)
    if col == 0:
        name = ("without residual", "with residual")[row]
        ax.set_ylabel(f"{name}\n", color=style.INK, **style.LABEL)
    else:
        ax.tick_params(labelleft=False)


def _draw_trend(depth: LabDepth, ax: Axes) -> None:
    """The last layer's gradient by the number of layers: solid pre-LN, dashed post-LN."""
    style.plain_axes(ax)
    every = []
    for i, init in enumerate(depth.inits):
        colour, marker = _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]
        for wiring, line in (("pre-LN", "-"), ("post-LN", _DASHED)):
            values = depth.last_gradient[i, depth.wirings.index(wiring)]
            every.append(values.ravel())
            ax.fill_between(
                depth.depths, values.min(0), values.max(0), color=colour, alpha=0.13, linewidth=0
            )
            ax.plot(
                depth.depths,
                np.median(values, axis=0),
                color=colour,
                linewidth=1.4,
                linestyle=line,
                marker=marker,
                markersize=3.5,
                label=f"{init}, {wiring}",
            )
    log_scale(ax, np.concatenate(every))
    if len(depth.depths) > 1:
        ax.set_xscale("log", base=2)
    ax.set_xticks(depth.depths, [str(layers) for layers in depth.depths], **style.LABEL)
    ax.minorticks_off()
    ax.set_xlabel("layers of the stack", color=style.FAINT, **style.LABEL)
    ax.set_ylabel("gradient of the last layer's W_out", color=style.FAINT, **style.LABEL)
    legend(ax, above=True)


def _draw_parameters(depth: LabDepth, ax: Axes) -> None:
    """The weights of one block, attention beside MLP."""
    ax.set_axis_off()
    total = depth.attention_weights + depth.mlp_weights
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    left = 0.0
    for name, n, colour, ink in (
        ("attention 4d²", depth.attention_weights, "#009e73", "white"),
        ("MLP 8d²", depth.mlp_weights, "#aa4499", "white"),
    ):
        share = n / total
        ax.add_patch(Rectangle((left, 0), share, 1, facecolor=colour, edgecolor="white"))
        for high, text in ((0.68, name), (0.28, f"{n:,}")):
            place: dict[str, Any] = {"ha": "center", "va": "center", "size": 7.5, "color": ink}
            ax.text(left + share / 2, high, text, **place, **style.PLAIN_TEXT)
        left += share
    head = "weights of one block, without biases"
    ax.text(0, 1.12, head, size=8, color=style.FAINT, va="bottom", **style.PLAIN_TEXT)


def _notes(depth: LabDepth) -> list[str]:
    n = len(depth.seeds)
    over = "one seed" if n == 1 else f"medians and spread over {n} seeds"
    return [
        f"Left, {depth.inits[0]} weights: blue, root mean square of the stream; orange, dashed, "
        f"norm of the loss's gradient there, in units of that at the end; {over}.",
        "Right: a colour for what the weights are drawn from; numbers are standard deviations.",
    ]
