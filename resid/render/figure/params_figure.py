"""The parameter count as a figure of its own: shares above, numbers below, a title, a caption."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render import parts
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.figure.params import (
    LEGEND_COLUMNS,
    WIDEST_LABEL,
    draw_params,
    draw_shares,
    kinds,
    places,
    wholes,
)
from resid.render.figure.style import SIZE, styled, text_width
from resid.results import ParamComparison, ParamCount

# In inches.
_MARGIN = 0.2
_TITLE = 0.4
_LEGEND_LINE = 0.16
_ROW, _THIN_ROW = 0.3, 0.135
_ACROSS = 5.4
_BETWEEN = 0.55
_BELOW = 0.5


def figure_of_params(result: ParamCount | ParamComparison) -> Figure:
    """A figure of one model's places, or of several models; its height follows from their number.

    Args:
        result: what to draw.
    """
    rows, few = places(result), wholes(result)
    labels = max(text_width(label, SIZE) for label, _ in [*rows, *few])
    numbers = max(text_width(f"{sum(sizes.values()):,} each", SIZE) for _, sizes in rows)
    left = _MARGIN + (min(labels, WIDEST_LABEL) + 8) / 72
    width = left + _ACROSS + (numbers + 8) / 72 + _MARGIN
    lines = caption_lines(_joint(result), _notes(result), {}, width - 2 * _MARGIN)
    upper = _ROW * len(few)
    lower = min(max(6 / len(rows), _THIN_ROW), _ROW) * len(rows)
    legend = -(-len(kinds(result)) // LEGEND_COLUMNS) * _LEGEND_LINE
    bottom = _MARGIN + LINE * len(lines) + _BELOW
    height = bottom + lower + _BETWEEN + upper + 0.05 + legend + _TITLE
    with styled():
        figure = Figure(figsize=(width, height))

        def place(lowest: float, upward: float) -> Axes:
            inches = (left / width, lowest / height, _ACROSS / width, upward / height)
            return figure.add_axes(inches)

        numbered = place(bottom, lower)
        draw_shares(result, place(bottom + lower + _BETWEEN, upper))
        draw_params(result, numbered, legend=False)
        write_frame(figure, _title(result), lines, _MARGIN, bottom - _BELOW)
    return figure


def _title(result: ParamCount | ParamComparison) -> str:
    if isinstance(result, ParamComparison):
        return f"Parameters of {len(result.counts)} models"
    return f"Parameters of {result.source.model}"


def _joint(result: ParamCount | ParamComparison) -> ParamCount | ParamComparison:
    """The result with a source that names every model."""
    if isinstance(result, ParamCount):
        return result
    names = ", ".join(count.source.model for count in result.counts)
    return replace(result, source=replace(result.source, model=names, revision=None))


def _notes(result: ParamCount | ParamComparison) -> list[str]:
    counts = parts.counts_of(result)
    origins = [f"{origin}." for origin in parts.origins(counts)]
    # A model's name stays as it is.
    notes = [f"C{o[1:]}" if o.startswith("counted") else o for o in origins]
    if isinstance(result, ParamCount):
        notes.append(f"{result.total:,} parameters, in the order of a forward pass, upward.")
    if any(count.unembedding_tied for count in counts):
        notes.append(
            "A tied unembedding is the token embedding once more and adds nothing to a bar."
        )
    if all(count.shares["norms"] < 0.005 for count in counts):
        notes.append("LayerNorms have so few parameters that they can hardly be seen.")
    return notes
