"""The logit lens as a figure of its own: its size, its title and its caption."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.figure.lens import (
    MOST_SETTLED,
    MOST_TEXT_COLUMNS,
    PAD,
    UPRIGHT,
    draw_lens,
    input_labels,
)
from resid.render.figure.lens_followed import followed_figure
from resid.render.figure.style import SIZE, mark_token, styled, text_width
from resid.render.lens_words import describe_baseline, describe_flips
from resid.results import LogitLens

_MARGIN = 0.2
_LEAST_HEIGHT = 1.6
"""Inches that the labels beside the grid take."""


def lens_figure(lens: LogitLens, show: str = "prob", follow: int | None = None) -> Figure:
    """A figure whose size follows from the number of cells and the length of their tokens.

    Args:
        lens: what to draw.
        show: what the colour means: prob, entropy, kl, margin, or the target's rank.
        follow: draw in place of the grid the followed tokens of this position.
    """
    if follow is not None:
        return followed_figure(lens, follow)
    grid = _layout(lens)
    width = grid.left + grid.width + 0.95
    lines = caption_lines(lens, _notes(lens), _identities(lens), width - 2 * _MARGIN)
    bottom = _MARGIN + LINE * len(lines) + grid.below
    height = bottom + grid.height + grid.above
    with styled():
        figure = Figure(figsize=(width, height))

        def place(left: float, across: float) -> Axes:
            return figure.add_axes(
                (left / width, bottom / height, across / width, grid.height / height)
            )

        ax, bar = place(grid.left, grid.width), place(grid.left + grid.width + 0.15, 0.14)
        draw_lens(lens, ax, show, bar)
        title = f"Logit lens of {lens.source.model}"
        write_frame(figure, title, lines, _MARGIN, bottom - grid.below)
    return figure


@dataclass(frozen=True)
class _Layout:
    """The grid of cells and the room around it, in inches."""

    left: float
    width: float
    height: float
    above: float
    below: float


def _layout(lens: LogitLens) -> _Layout:
    n_points, n_pos = len(lens.points), len(lens.positions)
    left = 0.45 + max(text_width(point, SIZE) for point in lens.points) / 72
    labels = max(text_width(label, SIZE) for label in input_labels(lens))
    if n_pos > MOST_TEXT_COLUMNS:
        width = min(max(16 / n_pos, 0.02), 0.2)
        height = max(min(max(7 / n_points, 0.1), 0.3), _LEAST_HEIGHT / n_points)
        upright = min(labels, UPRIGHT) / 72
        return _Layout(left, n_pos * width, n_points * height, 0.65 + upright, 0.4 + upright)
    tokens = [text_width(mark_token(str(text)), SIZE) for text in lens.top_tokens[:, :, 0].flat]
    wanted = (max(float(np.quantile(tokens, 0.95)), labels) + PAD) / 72
    least = max(0.62, 2.2 / n_pos)
    width = min(max(wanted, least), max(least, 1.05))
    height = max(min(max(9 / n_points, 0.17), 0.3), _LEAST_HEIGHT / n_points)
    return _Layout(left, n_pos * width, n_points * height, above=0.75, below=0.5)


def _notes(lens: LogitLens) -> list[str]:
    notes = [
        "Cells: the top token where ln_final and the unembedding read the stream at that point;"
        " position p predicts token p + 1."
    ]
    if any(lens.settled_at) and len(lens.positions) <= MOST_SETTLED:
        notes.append("Orange line: from here up the top token stays.")
    return [*notes, describe_flips(lens), *describe_baseline(lens, len(lens.positions) - 1)]


def _identities(lens: LogitLens) -> dict[str, str]:
    whole = lens.points[-1] == f"{lens.source.n_layers - 1}.post"
    return {"lens_equals_logits": "top row = logits"} if whole else {}
