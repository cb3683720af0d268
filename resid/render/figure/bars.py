"""Bars with names on their left and words on their right: the common figure of many readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.figure.style import ALARM, FAINT, INK, PLAIN_TEXT, styled, text_width
from resid.render.words import NOT_FINITE
from resid.results import Result

# Blue and orange: told apart by every reader, and in grey.
_UP, _DOWN = "#2f6db3", "#e08a3c"
SIZE = 7.5
_ROW = 0.17
_MARGIN = 0.2
_BARS = 2.4
WORDS = 2.6
"""Inches: a row, the margin, the bars, and a column of words."""
GAP = 0.12


@dataclass(frozen=True)
class Panel:
    """One bar a row, the first row at the top, with the texts on either side."""

    title: str
    names: Sequence[str]
    values: Sequence[float]
    unit: str
    starts: Sequence[float] | None = None
    """Where each bar begins; at 0 if not given."""
    beside: Sequence[tuple[str, Sequence[str]]] = ()
    """Columns of text to the right of the bars, each with its head."""

    def left(self) -> float:
        """Inches that the names take."""
        return max(text_width(name, SIZE) for name in self.names) / 72 + GAP


def bar_figure(result: Result, title: str, panels: Sequence[Panel], notes: Sequence[str]) -> Figure:
    """The panels side by side, in the size that their rows and texts need."""
    rows = max(len(panel.names) for panel in panels)
    inches = [panel.left() + _BARS + WORDS * len(panel.beside) for panel in panels]
    width = _MARGIN + sum(inches) + 0.35 * len(panels)
    lines = caption_lines(result, notes, {}, width - 2 * _MARGIN)
    below, above, tall = 0.5, 0.75, max(rows, 3) * _ROW
    bottom = _MARGIN + LINE * len(lines) + below
    height = bottom + tall + above
    with styled():
        figure = Figure(figsize=(width, height))
        left = _MARGIN
        for panel, across in zip(panels, inches, strict=True):
            # Short lists end above the bottom: every row is as tall as in the longest.
            part = max(len(panel.names), 1) * _ROW
            place = (
                (left + panel.left()) / width,
                (bottom + tall - part) / height,
                _BARS / width,
                part / height,
            )
            draw_panel(panel, figure.add_axes(place))
            left += across + 0.35
        write_frame(figure, title, lines, _MARGIN, bottom - below)
    return figure


def draw_panel(panel: Panel, ax: Axes) -> Axes:
    """The panel's bars, names to the left, further texts to the right."""
    values = np.asarray(panel.values, dtype=float)
    rows = np.arange(len(values))
    starts = (
        np.zeros(len(values)) if panel.starts is None else np.asarray(panel.starts, dtype=float)
    )
    lost = ~(np.isfinite(values) & np.isfinite(starts))
    values, starts = np.where(lost, 0, values), np.where(lost, 0, starts)
    colours = [_UP if value >= 0 else _DOWN for value in values]
    ax.barh(rows, values, left=starts, height=0.72, color=colours)
    for row in np.flatnonzero(lost):
        ax.annotate(
            NOT_FINITE, (0.5, row), xycoords=("axes fraction", "data"), ha="center", va="center",
            fontsize=SIZE, color=ALARM, **PLAIN_TEXT,
        )  # fmt: skip
    ax.set_ylim(len(values) - 0.5, -0.5)
    ax.margins(x=0.05)
    if panel.starts is None:
        ax.axvline(0, color=FAINT, linewidth=0.6)
    else:
        ax.use_sticky_edges = False  # A bar that begins anywhere shall not end at the frame.
    ax.set_yticks(rows, panel.names, fontsize=SIZE, **PLAIN_TEXT)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=SIZE, colors=FAINT)
    ax.locator_params(axis="x", nbins=5)
    if lost.all():
        ax.set_xlim(0, 1)
        ax.set_xticks([])  # There is no scale without a number.
    ax.set_xlabel(panel.unit, fontsize=SIZE, color=FAINT, **PLAIN_TEXT)
    ax.set_title(panel.title, fontsize=SIZE, color=FAINT, loc="left", **PLAIN_TEXT)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)
    for i, (head, texts) in enumerate(panel.beside):
        # In points from the right edge of the bars, so that a wider panel moves nothing.
        x = 72 * (GAP + i * WORDS)
        for y, text, colour in [(-0.5, head, FAINT), *((y, t, INK) for y, t in enumerate(texts))]:
            ax.annotate(
                text,
                xy=(1, y),
                xycoords=("axes fraction", "data"),
                xytext=(x, 8 if text is head and y == -0.5 else 0),
                textcoords="offset points",
                va="center",
                fontsize=SIZE,
                color=colour,
                annotation_clip=False,
                **PLAIN_TEXT,
            )
    return ax
