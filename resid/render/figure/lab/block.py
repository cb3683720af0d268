"""The rebuilt block as a figure: its steps, who notices a token, and the straight line."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.figure import style
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.figure.lab.panels import legend
from resid.render.lab_block_words import ON_THE_STREAM, formula, shape
from resid.render.lab_words import IDENTITIES
from resid.render.words import short
from resid.results.lab import LabBlock

WITH = "#08519c"
WITHOUT = style.MARK
STRAIGHT = "#009e73"
BRANCH = "#9a9a9a"
_MOST_TOKENS = 16
# In inches.
_MARGIN = 0.2
_TITLE = 0.45
_STEPS, _BETWEEN, _SIDE, _RIGHT = 5.2, 0.75, 3.3, 0.15
_HEIGHT = 4.7
_BELOW = 0.5
_GAP = 0.85


def block_figure(block: LabBlock) -> Figure:
    """The steps of the block on the left; on the right what attention and activation are for.

    Args:
        block: what to draw.
    """
    width = _MARGIN + _STEPS + _BETWEEN + _SIDE + _RIGHT
    lines = caption_lines(block, [block.finding, *_notes()], IDENTITIES, width - 2 * _MARGIN)
    bottom = _MARGIN + LINE * len(lines) + _BELOW
    height = bottom + _HEIGHT + _TITLE
    half = (_HEIGHT - _GAP) / 2
    beside = _MARGIN + _STEPS + _BETWEEN
    with style.styled():
        figure = Figure(figsize=(width, height))

        def place(left: float, lowest: float, across: float, upward: float) -> Axes:
            inches = (left / width, lowest / height, across / width, upward / height)
            return figure.add_axes(inches)

        draw_block(block, place(beside, bottom + half + _GAP, _SIDE, half - 0.15))
        _draw_line(block, place(beside, bottom, _SIDE, half - 0.15))
        _draw_steps(block, place(_MARGIN, bottom - 0.35, _STEPS, _HEIGHT + 0.35))
        title = f"Block {block.layer} of {block.source.subject}, built from scratch"
        write_frame(figure, title, lines, _MARGIN, bottom - _BELOW)
    return figure


def draw_block(block: LabBlock, ax: Axes) -> Axes:
    """Draw how far a replaced token moves every position, with attention and without.

    Args:
        block: what to draw.
        ax: where to.

    Returns:
        `ax`.
    """
    with style.styled():
        style.plain_axes(ax)
        few = len(block.positions) <= _MOST_TOKENS
        for change, name, colour, marker, size in (
            (block.change, "with attention", WITH, "o", 6.0),
            (block.change_alone, "without", WITHOUT, "D", 3.5),
        ):
            ax.plot(
                block.positions,
                change,
                color=colour,
                marker=marker if few else None,
                markersize=size,
                linewidth=1.2,
                linestyle="-" if colour == WITH else (0, (4, 2)),
                label=name,
            )
        tokens = block.source.settings["tokens"]
        if few:
            labels = [style.shorten(style.mark_token(token), 46, 8) for token in tokens]
            ax.set_xticks(block.positions, labels, **style.LABEL)
        if len(block.positions) > 7 and few:
            ax.tick_params(axis="x", labelrotation=40)
        changes = np.nan_to_num([block.change, block.change_alone], posinf=0.0)
        ax.set_ylim(bottom=-0.04 * max(1.0, float(changes.max())))
        ax.set_ylabel("how far its stream moves,\nover its norm", color=style.FAINT, **style.LABEL)
        token = style.mark_token(block.replaced_by_token)
        ax.set_xlabel(
            style.shorten(f"position; {token} replaces the token at {block.replaced}", 230, 8),
            color=style.FAINT,
            **style.LABEL,
        )
        legend(ax, above=True)
    return ax


def _draw_line(block: LabBlock, ax: Axes) -> None:
    """What the MLP makes of some numbers, against what one affine map makes of them."""
    style.plain_axes(ax)
    for values, name, colour, marker, size in (
        (block.sample_own, str(block.source.settings["activation"]), WITH, "o", 9.0),
        (block.sample_linear, "no activation", STRAIGHT, "s", 4.0),
    ):
        ax.scatter(
            block.sample_affine,
            values,
            s=size,
            color=colour,
            alpha=0.75,
            linewidth=0,
            marker=marker,
            label=style.printable(name),
        )
    ax.set_xlabel("ln2 (W_in W_out) + b, one affine map", color=style.FAINT, **style.LABEL)
    ax.set_ylabel("what the MLP writes", color=style.FAINT, **style.LABEL)
    legend(ax, above=True)


def _draw_steps(block: LabBlock, ax: Axes) -> None:
    """The block from top to bottom: the stream as a line, branches that leave it and come back."""
    n = len(block.steps)
    ax.set_axis_off()
    ax.set_xlim(0, _STEPS)
    ax.set_ylim(n - 0.4, -1.1)
    heads = ((0.35, "left", "step"), (1.35, "left", "is"), (4.6, "right", "shape"))
    for x, side, text in (*heads, (_STEPS - 0.05, "right", "error")):
        _write(ax, x, -0.8, text, style.FAINT, side)
    ax.plot([0.05, _STEPS - 0.05], [-0.45, -0.45], color="#cccccc", linewidth=0.6)
    rows = [i for i, step in enumerate(block.steps) if step in ON_THE_STREAM]
    ax.plot([0.12, 0.12], [rows[0], rows[-1]], color=WITH, linewidth=2.2, solid_capstyle="round")
    for first, last in pairwise(rows):
        corners = [first, first + 0.55, last - 0.45, last]
        ax.plot([0.12, 0.24, 0.24, 0.12], corners, color=BRANCH, linewidth=1.2)
    ax.plot([0.12] * len(rows), rows, "o", color=WITH, markersize=6)
    activation = str(block.source.settings["activation"])
    for i, (step, sizes, error) in enumerate(
        zip(block.steps, block.shapes, block.step_errors, strict=True)
    ):
        on_stream = step in ON_THE_STREAM
        _write(ax, 0.35, i, step, WITH if on_stream else style.INK, bold=on_stream)
        text = style.shorten(style.printable(formula(step, activation)), 2.5 * 72, 7.5)
        _write(ax, 1.35, i, text, style.FAINT if not on_stream else style.INK)
        _write(ax, 4.6, i, shape(sizes), style.INK, "right")
        if not math.isnan(error):
            _write(ax, _STEPS - 0.05, i, short(error), style.INK, "right")


def _write(
    ax: Axes, x: float, y: float, text: str, colour: str, side: str = "left", bold: bool = False
) -> None:
    place: dict[str, Any] = {"ha": side, "va": "center", "size": 7.5, "color": colour}
    ax.text(x, y, text, weight="bold" if bold else "normal", **place, **style.PLAIN_TEXT)


def _notes() -> list[str]:
    return [
        "Blue line: the residual stream; grey: the branches that read it and add to it.",
        "Error: largest difference from Hugging Face's block over its largest value.",
        "Lower right: some of the numbers that the MLP writes; on the diagonal where it is affine.",
    ]
