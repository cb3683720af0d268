"""The stream's norms as a figure of their own: three panels, a title and a caption."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render import norm_summary as summary
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.figure.norms import draw_norms, draw_writes
from resid.render.figure.style import styled
from resid.results import StreamNorms

# In inches.
_MARGIN = 0.2
_TITLE = 0.4
_LEGEND = 0.52
_PANEL, _SIDE, _HEIGHT = 4.5, 3.0, 3.3
_LEFT, _BETWEEN, _RIGHT = 0.75, 0.85, 0.2
_BELOW = 0.5
_GAP = 0.25


def norms_figure(norms: StreamNorms) -> Figure:
    """The norm at every point on the left; what attention and MLP wrote on the right.

    Args:
        norms: what to draw.
    """
    width = _LEFT + _PANEL + _BETWEEN + _SIDE + _RIGHT
    lines = caption_lines(norms, _notes(norms), summary.IDENTITIES, width - 2 * _MARGIN)
    bottom = _MARGIN + LINE * len(lines) + _BELOW
    height = bottom + _HEIGHT + _LEGEND + _TITLE
    with styled():
        figure = Figure(figsize=(width, height))

        def place(left: float, lowest: float, across: float, upward: float) -> Axes:
            inches = (left / width, lowest / height, across / width, upward / height)
            return figure.add_axes(inches)

        half = (_HEIGHT - _GAP) / 2
        beside = _LEFT + _PANEL + _BETWEEN
        draw_norms(norms, place(_LEFT, bottom, _PANEL, _HEIGHT), legend_above=True)
        sizes = place(beside, bottom + half + _GAP, _SIDE, half)
        draw_writes(norms, sizes, "l2", legend_above=True)
        sizes.set_xlabel("")
        sizes.tick_params(labelbottom=False)
        ratios = draw_writes(norms, place(beside, bottom, _SIDE, half), "ratio")
        ratios.get_legend().remove()
        title = f"Stream norms of {norms.source.model}"
        write_frame(figure, title, lines, _MARGIN, bottom - _BELOW)
    return figure


def _notes(norms: StreamNorms) -> list[str]:
    """How to read it, and what was left out."""
    over = summary.name_positions([norms.positions[i] for i in summary.shown(norms)])
    notes = [f"Medians, bands and the dashed fit of the mean log norm over L.post: {over}."]
    if summary.apart(norms):
        left_out = summary.name_positions(norms.growth.excluded_positions)
        notes.append(f"Left out and drawn apart: {left_out}.")
    sentences = (
        norms.growth.reason and summary.describe_growth(norms),
        summary.describe_steps(norms),
    )
    notes += [f"{line[0].upper()}{line[1:]}." for line in sentences if line]
    if norms.outliers:
        notes += [f"{line[0].upper()}{line[1:]}." for line in summary.describe_outliers(norms, 1)]
    return notes
