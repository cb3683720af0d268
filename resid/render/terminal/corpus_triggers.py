"""Text that fires a neuron, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from resid.render import corpus_words as words
from resid.render.terminal import cells
from resid.render.terminal.columns import GAP, column, print_columns, total_width
from resid.render.terminal.console import has_colour, is_unbounded, pick, safe, say
from resid.render.words import number
from resid.results import NeuronCard

_NARROWEST, _WIDEST = 20, 100
# Of where a document is; the end of a path says most.
_PLACE = 24


def print_triggers(console: Console, card: NeuronCard) -> None:
    """Print how often a neuron fires and the text that fires it most, strongest first."""
    say(console, words.describe_fires(card))
    say(console, "")
    if not card.triggers:
        return
    columns = [
        column(
            "coefficient", [Text(number(one["activation"])) for one in card.triggers], right=True
        ),
        column("document", [_place(console, one) for one in card.triggers]),
        column("pos", [Text(f"{one['pos']:,}") for one in card.triggers], right=True),
    ]
    room = console.width - total_width(columns) - GAP
    width = _WIDEST if is_unbounded(console) else min(max(room, _NARROWEST), _WIDEST)
    contexts = [
        in_context(console, one["before"], one["token"], one["after"], width)
        for one in card.triggers
    ]
    print_columns(console, [*columns, column("fired by", contexts)])
    say(console, "")


def _place(console: Console, trigger: Mapping[str, Any]) -> Text:
    place = safe(console, words.name_place(trigger))
    room = len(place) if is_unbounded(console) else _PLACE
    return Text(_cut(place[::-1], room, pick(console, "…", "...")[::-1])[::-1])


def in_context(console: Console, before: str, token: str, after: str, room: int) -> Text:
    """A token, marked, with as much of what stands around it as there is room for."""
    dots = pick(console, "…", "...")
    left, right = (
        ("", "") if has_colour(console) else (pick(console, "«", "["), pick(console, "»", "]"))
    )
    before, token, after = (safe(console, part) for part in (before, token, after))
    token = f"{left}{token}{right}"
    room -= cell_len(token)
    tail = _cut(after, max(room // 4, room - cell_len(before)), dots)
    head = _cut(before[::-1], room - cell_len(tail), dots[::-1])[::-1]
    text = Text(head, cells.QUIET).append(token, "bold not dim")
    return text.append(tail, cells.QUIET)


def _cut(text: str, room: int, dots: str) -> str:
    """The beginning of a text, with dots where something is missing."""
    if cell_len(text) <= room:
        return text
    while text and cell_len(text) + cell_len(dots) > room:
        text = text[:-1]
    return text + dots if room >= cell_len(dots) else ""
