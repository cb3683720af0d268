"""Key-value memories as figures: bars for neurons or tokens, and the words beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.corpus_words import describe_fires, name_place
from resid.render.figure.bars import GAP, SIZE, WORDS, Panel, bar_figure, draw_panel
from resid.render.figure.style import mark_token, printable, shorten, text_width
from resid.render.words import NOT_FINITE, describe_order, describe_projection, neuron_name
from resid.results import Extremes, Find, MlpMemory, NeuronCard

_MOST_ROWS = 60


def memory_figure(memory: MlpMemory, position: int | None = None) -> Figure:
    """The neurons listed at one position, the deepest layer on top, and what their values say.

    Args:
        memory: what to draw.
        position: of the prompt; the last one read if not given.
    """
    panel = _memory_panel(memory, memory.positions[-1] if position is None else position)
    notes = [_memory_note(memory), _convention(memory.projection)]
    return bar_figure(memory, f"MLP memory of {memory.source.model}", [panel], notes)


def draw_memory(memory: MlpMemory, ax: Axes, position: int | None = None) -> Axes:
    """The neurons of one position as bars on the given Axes."""
    panel = _memory_panel(memory, memory.positions[-1] if position is None else position)
    return draw_panel(panel, ax)


def find_figure(found: Find) -> Figure:
    """The neurons that most promote and most suppress a token."""
    return bar_figure(found, _find_title(found), _find_panels(found), _find_notes(found))


def draw_find(found: Find, ax: Axes) -> Axes:
    """The promoting neurons as bars on the given Axes."""
    return draw_panel(_find_panels(found)[0], ax)


def card_figure(card: NeuronCard) -> Figure:
    """One neuron: the tokens that it promotes and suppresses, and those that drive it."""
    notes = [
        _convention(card.projection),
        "Driven by: key score if the token's embedding alone were the stream.",
    ]
    if card.fires is not None:
        line = describe_fires(card)
        notes.append(f"{line[0].upper()}{line[1:]}.")
    name = neuron_name(card.layer, card.neuron)
    return bar_figure(card, f"Neuron {name} of {card.source.model}", _card_panels(card), notes)


def draw_card(card: NeuronCard, ax: Axes) -> Axes:
    """The promoted tokens as bars on the given Axes."""
    return draw_panel(_card_panels(card)[0], ax)


def _memory_panel(memory: MlpMemory, position: int) -> Panel:
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
    return Panel(
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
    by = describe_order(memory.order)
    return f"The neurons of each layer that come first by {by}, and the tokens their values favour."


def _tokens(extremes: Extremes, row: int) -> str:
    """As many whole tokens as a column of text has room for."""
    if not extremes.known[row]:
        return NOT_FINITE
    room = (WORDS - GAP) * 72
    line = shorten(mark_token(extremes.tokens[row][0]), room, SIZE)
    for display in extremes.tokens[row][1:]:
        longer = f"{line}  {mark_token(display)}"
        if text_width(longer, SIZE) > room:
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


def _find_panels(found: Find) -> list[Panel]:
    panels = []
    for title, scores in (("promote it", found.promotes), ("suppress it", found.suppresses)):
        pairs = zip(scores.layer, scores.neuron, strict=True)
        names = [neuron_name(layer, neuron) for layer, neuron in pairs]
        panels.append(Panel(title, names, list(scores.score), "score"))
    return panels


def _card_panels(card: NeuronCard) -> list[Panel]:
    panels = []
    for title, extremes, unit in (
        ("promotes", card.promoted, "score"),
        ("suppresses", card.suppressed, "score"),
        ("driven by", card.driven_by, "key score"),
    ):
        tokens = [
            shorten(mark_token(display), 90, SIZE) if extremes.known[0] else NOT_FINITE
            for display in extremes.tokens[0]
        ]
        panels.append(Panel(title, tokens, list(extremes.scores[0]), unit))
    if fired := card.triggers:
        panels.append(
            Panel(
                title="fired by",
                names=[_place(one) for one in fired],
                values=[one["activation"] for one in fired],
                unit="coefficient",
                beside=[("text", [_in_context(one) for one in fired])],
            )
        )
    return panels


def _place(trigger: Mapping[str, Any]) -> str:
    """Where it stands; of a long path the end."""
    place = printable(name_place(trigger))
    return f"{shorten(place[::-1], 110, SIZE)[::-1]}, pos {trigger['pos']:,}"


def _in_context(trigger: Mapping[str, Any]) -> str:
    """The token in its text, as much of what stands around it as a column has room for."""
    before, token, after = (printable(trigger[part]) for part in ("before", "token", "after"))
    room = (WORDS - GAP) * 72
    token = f"«{shorten(token, room / 3, SIZE)}»"
    after = shorten(after, room / 4, SIZE)
    left = room - text_width(token + after, SIZE)
    return shorten(before[::-1], left, SIZE)[::-1] + token + after
