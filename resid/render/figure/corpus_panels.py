"""What the figures of corpus readings have in common: two panels, points or layers below them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.corpus_words import IDENTITIES, describe_left_out, describe_windows
from resid.render.figure import style
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.results import Floats, Result
from resid.results.corpus_source import CorpusSource

STREAM, SECOND, THIRD = "#08519c", "#009e73", "#aa4499"

# In inches.
_MARGIN, _TITLE, _LEGEND = 0.2, 0.42, 0.19
_LEFT, _PANEL, _BETWEEN, _RIGHT = 0.75, 3.7, 0.8, 0.2
_HEIGHT, _BELOW = 2.7, 0.5


def two_panels(
    result: Result,
    source: CorpusSource,
    title: str,
    panels: Sequence[Callable[[Axes], Any]],
    notes: Sequence[str],
    legend_lines: int = 1,
) -> Figure:
    """The panels side by side under a title, above a caption.

    Args:
        result: named in the caption, with its checks.
        source: where it comes from.
        title: a few words.
        panels: what draws each.
        notes: how to read it, a sentence each.
        legend_lines: of the panel that has most.
    """
    width = _LEFT + 2 * _PANEL + _BETWEEN + _RIGHT
    about = [describe_windows(source), *describe_left_out(source)]
    told = [*notes, *(f"{line[0].upper()}{line[1:]}." for line in about)]
    lines = caption_lines(result, told, IDENTITIES, width - 2 * _MARGIN)
    bottom = _MARGIN + LINE * len(lines) + _BELOW
    height = bottom + _HEIGHT + _LEGEND * legend_lines + _TITLE
    with style.styled():
        figure = Figure(figsize=(width, height))
        for i, draw in enumerate(panels):
            left = _LEFT + i * (_PANEL + _BETWEEN)
            inches = (left / width, bottom / height, _PANEL / width, _HEIGHT / height)
            draw(figure.add_axes(inches))
        write_frame(figure, title, lines, _MARGIN, bottom - _BELOW)
    return figure


def plain_axes(ax: Axes, label: str) -> None:
    """Two spines, a faint grid behind what is drawn, and what the y axis says."""
    style.plain_axes(ax)
    ax.set_ylabel(label, color=style.FAINT, **style.LABEL)


def band(ax: Axes, xs: Any, mean: Floats, error: Floats, name: str, **look: Any) -> None:
    """A line with its standard error around it."""
    error = np.nan_to_num(error)
    ax.fill_between(xs, mean - error, mean + error, color=look["color"], alpha=0.22, linewidth=0)
    few = math.ceil(len(mean) / 26)
    ax.plot(xs, mean, label=name, linewidth=1.6, markersize=3, markevery=few, **look)


def legend(ax: Axes, columns: int = 3) -> None:
    """Name what is drawn, above the Axes; text is taken as it is."""
    style.plain_legend(
        ax,
        loc="lower left",
        bbox_to_anchor=(-0.02, 0.99),
        ncols=columns,
        handlelength=2.2,
        columnspacing=1.4,
    )
