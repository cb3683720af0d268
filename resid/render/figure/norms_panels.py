"""The stream's norms as a figure of their own: three panels, a title and a caption."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render import norm_summary as summary
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.figure.norms import LEGEND_COLUMNS, draw_norms, draw_writes, legend_entries
from resid.render.figure.style import styled
from resid.results import StreamNorms

# In inches.
_MARGIN = 0.2
_TITLE = 0.4
_LEGEND_LINE = 0.16
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
    legend_lines = -(-legend_entries(norms) // LEGEND_COLUMNS)
    height = bottom + _HEIGHT + 0.05 + _LEGEND_LINE * legend_lines + _TITLE
    with styled():
        figure = Figure(figsize=(width, height))

        def place(left: float, lowest: float, across: float, upward: float) -> Axes:
            inches = (left / width, lowest / height, across / width, upward / height)
            return figure.add_axes(inches)

        half = (_HEIGHT - _GAP) / 2
        beside = _LEFT + _PANEL + _BETWEEN
        draw_norms(norms, place(_LEFT, bottom, _PANEL, _HEIGHT), legend="above")
        sizes = place(beside, bottom + half + _GAP, _SIDE, half)
        draw_writes(norms, sizes, "l2", legend="above")
        sizes.set_xlabel("")
        sizes.tick_params(labelbottom=False)
        draw_writes(norms, place(beside, bottom, _SIDE, half), "ratio", legend="none")
        title = f"Stream norms of {norms.source.model}"
        write_frame(figure, title, lines, _MARGIN, bottom - _BELOW)
    return figure


def _notes(norms: StreamNorms) -> list[str]:
    """How to read it, and what was left out."""
    apart = summary.apart(norms)
    over = summary.name_positions([norms.positions[i] for i in summary.shown(norms)])
    left_out = summary.name_positions([norms.positions[i] for i in apart])
    what = "Medians, bands and fit" if norms.growth.reason is None else "Medians and bands"
    note = f"{what}: {over}" if len(summary.shown(norms)) > 1 else f"Shown: {over}"
    if apart:
        note += f"; {left_out} {'is' if len(apart) == 1 else 'are'} left out and drawn apart"
    notes = [note]
    if norms.growth.reason is None:
        notes.append("dashed: least squares of the mean log norm over L.post")
    else:
        notes.append(summary.describe_growth(norms))
    notes.append(summary.describe_steps(norms))
    if norms.outliers:
        notes.append(summary.describe_outliers(norms, 1)[0])
    return [f"{line[0].upper()}{line[1:]}." for line in notes if line]
