"""Key-value memories as figures: bars for neurons or tokens, and the words beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.figure.style import (
    FAINT,
    INK,
    PLAIN_TEXT,
    mark_token,
    shorten,
    styled,
    text_width,
)
from resid.render.words import describe_projection, neuron_name
from resid.results import Extremes, Find, MlpMemory, NeuronCard, Result

# Blue and orange: told apart by every reader, and in grey.
_UP, _DOWN = "#2f6db3", "#e08a3c"
_SIZE = 7.5
_ROW = 0.17
_MARGIN = 0.2
_BARS = 2.4
_TOKENS = 2.6
"""Inches: a row, the margin, the bars, and a column of tokens."""
_MOST_ROWS = 60
_GAP = 0.12


@dataclass(frozen=True)
class _Panel:
    """One bar a row, the first row at the top, with the texts on either side."""

    title: str
    names: Sequence[str]
    values: Sequence[float]
    unit: str
    beside: Sequence[tuple[str, Sequence[str]]] = ()
    """Columns of text to the right of the bars, each with its head."""

    def left(self) -> float:
        """Inches that the names take."""
        return max(text_width(name, _SIZE) for name in self.names) / 72 + _GAP


def memory_figure(memory: MlpMemory, position: int | None = None) -> Figure:
    """The neurons listed at one position, the deepest layer on top, and what their values say.

    Args:
        memory: what to draw.
        position: of the prompt; the last one read if not given.
    """
    panel = _memory_panel(memory, memory.positions[-1] if position is None else position)
    notes = [_memory_note(memory), _convention(memory.projection)]
    return _figure(memory, f"MLP memory of {memory.source.model}", [panel], notes)


def draw_memory(memory: MlpMemory, ax: Axes, position: int | None = None) -> Axes:
    """The neurons of one position as bars on the given Axes."""
    panel = _memory_panel(memory, memory.positions[-1] if position is None else position)
    return _draw(panel, ax)


def find_figure(found: Find) -> Figure:
    """The neurons that most promote and most suppress a token."""
    return _figure(found, _find_title(found), _find_panels(found), _find_notes(found))


def draw_find(found: Find, ax: Axes) -> Axes:
    """The promoting neurons as bars on the given Axes."""
    return _draw(_find_panels(found)[0], ax)


def card_figure(card: NeuronCard) -> Figure:
    """One neuron: the tokens that it promotes and suppresses, and those that drive it."""
    notes = [
        _convention(card.projection),
        "Driven by: key score if the token's embedding alone were the stream.",
    ]
    name = neuron_name(card.layer, card.neuron)
    return _figure(card, f"Neuron {name} of {card.source.model}", _card_panels(card), notes)


def draw_card(card: NeuronCard, ax: Axes) -> Axes:
    """The promoted tokens as bars on the given Axes."""
    return _draw(_card_panels(card)[0], ax)


def _memory_panel(memory: MlpMemory, position: int) -> _Panel:
    rows = np.flatnonzero(memory.pos == position)
    # So many layers that they would not fit: the first neurons of each, as many as do.
    fewer = max(1, _MOST_ROWS // len(memory.layers))
    rank = np.arange(len(rows)) % (len(rows) // len(memory.layers))
    rows = rows[rank < fewer]
    rows = rows[np.lexsort((np.arange(len(rows)), -memory.layer[rows]))]
    token = mark_token(memory.source.tokens[position])
    values, unit = memory.write_norm, "L2 norm of what the neuron writes"
    if memory.target_logit is not None:
        values = memory.target_logit
        unit = f"share of the logit of {mark_token(memory.target_token or '')}"
    return _Panel(
        title=f"position {position}, {token}",
        names=[neuron_name(memory.layer[i], memory.neuron[i]) for i in rows],
        values=[float(values[i]) for i in rows],
        unit=unit,
        beside=[
            ("promotes", [_tokens(memory.promoted, int(i)) for i in rows]),
            ("suppresses", [_tokens(memory.suppressed, int(i)) for i in rows]),
        ],
    )


def _memory_note(memory: MlpMemory) -> str:
    by = {
        "write": "|coefficient| x value norm",
        "coefficient": "coefficient",
        "target": "the size of their share of the target's logit, ln_final's scale frozen",
    }[memory.order]
    return f"The neurons of each layer that come first by {by}, and the tokens their values favour."


def _tokens(extremes: Extremes, row: int) -> str:
    """As many whole tokens as a column of text has room for."""
    room = (_TOKENS - _GAP) * 72
    line = shorten(mark_token(extremes.tokens[row][0]), room, _SIZE)
    for display in extremes.tokens[row][1:]:
        longer = f"{line}  {mark_token(display)}"
        if text_width(longer, _SIZE) > room:
            break
        line = longer
    return line


def _find_title(found: Find) -> str:
    title = f"Neurons of {found.source.model} that promote {mark_token(found.token)}"
    foil = found.foil_token
    return title if foil is None else f"{title} rather than {mark_token(foil)}"


def _find_notes(found: Find) -> list[str]:
    return [
        f"Of {found.searched:,} neurons; score: logits per unit of coefficient.",
        _convention(found.projection),
    ]


def _convention(projection: str) -> str:
    line = describe_projection(projection)
    return f"{line[0].upper()}{line[1:]}."


def _find_panels(found: Find) -> list[_Panel]:
    panels = []
    for title, scores in (("promote it", found.promotes), ("suppress it", found.suppresses)):
        pairs = zip(scores.layer, scores.neuron, strict=True)
        names = [neuron_name(layer, neuron) for layer, neuron in pairs]
        panels.append(_Panel(title, names, list(scores.score), "score"))
    return panels


def _card_panels(card: NeuronCard) -> list[_Panel]:
    panels = []
    for title, extremes, unit in (
        ("promotes", card.promoted, "score"),
        ("suppresses", card.suppressed, "score"),
        ("driven by", card.driven_by, "key score"),
    ):
        tokens = [shorten(mark_token(display), 90, _SIZE) for display in extremes.tokens[0]]
        panels.append(_Panel(title, tokens, list(extremes.scores[0]), unit))
    return panels


def _figure(result: Result, title: str, panels: Sequence[_Panel], notes: Sequence[str]) -> Figure:
    """The panels side by side, in the size that their rows and texts need."""
    rows = max(len(panel.names) for panel in panels)
    inches = [panel.left() + _BARS + _TOKENS * len(panel.beside) for panel in panels]
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
            _draw(panel, figure.add_axes(place))
            left += across + 0.35
        write_frame(figure, title, lines, _MARGIN, bottom - below)
    return figure


def _draw(panel: _Panel, ax: Axes) -> Axes:
    """The panel's bars, names to the left, further texts to the right."""
    values = np.nan_to_num(np.asarray(panel.values, dtype=float))
    rows = np.arange(len(values))
    ax.barh(rows, values, height=0.72, color=[_UP if value >= 0 else _DOWN for value in values])
    ax.set_ylim(len(values) - 0.5, -0.5)
    ax.margins(x=0.05)
    ax.axvline(0, color=FAINT, linewidth=0.6)
    ax.set_yticks(rows, panel.names, fontsize=_SIZE, **PLAIN_TEXT)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=_SIZE, colors=FAINT)
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel(panel.unit, fontsize=_SIZE, color=FAINT, **PLAIN_TEXT)
    ax.set_title(panel.title, fontsize=_SIZE, color=FAINT, loc="left", **PLAIN_TEXT)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)
    for i, (head, texts) in enumerate(panel.beside):
        # In points from the right edge of the bars, so that a wider panel moves nothing.
        x = 72 * (_GAP + i * _TOKENS)
        for y, text, colour in [(-0.5, head, FAINT), *((y, t, INK) for y, t in enumerate(texts))]:
            ax.annotate(
                text,
                xy=(1, y),
                xycoords=("axes fraction", "data"),
                xytext=(x, 8 if text is head and y == -0.5 else 0),
                textcoords="offset points",
                va="center",
                fontsize=_SIZE,
                color=colour,
                annotation_clip=False,
                **PLAIN_TEXT,
            )
    return ax
