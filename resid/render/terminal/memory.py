"""Key-value memories in the terminal: a prompt's neurons, a token's neurons, one neuron's card."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.text import Text

from resid.render.terminal import cells
from resid.render.terminal.columns import GAP, Column, column, print_columns, total_width
from resid.render.terminal.console import is_unbounded, say
from resid.render.terminal.corpus_triggers import print_triggers
from resid.render.terminal.frame import print_checks, print_source
from resid.render.words import count, describe_order, describe_projection, neuron_name, number
from resid.results import Extremes, Find, MlpMemory, NeuronCard, NeuronScores

_NARROWEST_LIST = 16
_WIDEST_LIST = 60


def render_memory(
    memory: MlpMemory, console: Console, *, positions: Sequence[int] | None = None
) -> None:
    """Print the neurons listed at each position, layer by layer.

    Args:
        memory: what to print.
        console: where to.
        positions: of the prompt, one table each; the last one read if not given.
    """
    print_source(console, "mlp memory", memory)
    for position in memory.positions[-1:] if positions is None else positions:
        line = Text(f"neurons at position {position}, ")
        say(console, line.append_text(cells.token(console, memory.source.tokens[position])))
        say(console, "")
        _print_neurons(console, memory, np.flatnonzero(memory.pos == position))
        say(console, "")
    say(console, _how(memory), cells.QUIET)
    say(console, describe_projection(memory.projection), cells.QUIET)
    print_checks(console, memory, {})


def _print_neurons(console: Console, memory: MlpMemory, chosen: np.ndarray) -> None:
    names = [neuron_name(memory.layer[i], memory.neuron[i]) for i in chosen]
    columns = [
        column("neuron", map(Text, names)),
        column("key score", [_number(memory.pre_activation[i]) for i in chosen], right=True),
        column("coefficient", [_number(memory.coefficient[i]) for i in chosen], right=True),
        column("writes", [_number(memory.write_norm[i]) for i in chosen], right=True),
    ]
    if memory.target_logit is not None:
        shares = [_signed(memory.target_logit[i]) for i in chosen]
        columns.append(column(f"logit of {_quoted(console, memory.target_token)}", shares, True))
    lists = {"promotes": memory.promoted, "suppresses": memory.suppressed}
    _print_with_lists(console, columns, lists, [int(i) for i in chosen])


def _print_with_lists(
    console: Console, columns: list[Column], lists: dict[str, Extremes], rows: list[int]
) -> None:
    """The columns, then as many of the token lists as there is room for, sharing it evenly."""
    room = console.width - total_width(columns) - GAP
    while len(columns) > 2 and room < _NARROWEST_LIST:
        del columns[1]
        room = console.width - total_width(columns) - GAP
    shown = max(1, min(len(lists), room // (_NARROWEST_LIST + GAP)))
    each = _WIDEST_LIST if is_unbounded(console) else min((room - GAP) // shown, _WIDEST_LIST)
    for name, extremes in list(lists.items())[:shown]:
        texts = [
            _token_list(console, extremes.tokens[i], each) if known else cells.absent()
            for i, known in zip(rows, extremes.known[rows], strict=True)
        ]
        columns.append(column(name, texts))
    print_columns(console, columns)
    if shown < len(lists):
        missing = ", ".join(list(lists)[shown:])
        say(console, f"not shown at this width: {missing}", cells.QUIET)


def _token_list(console: Console, tokens: Sequence[str], room: int) -> Text:
    """As many whole tokens as fit; the first one is cut if it must be."""
    line = cells.token(console, tokens[0], room)
    for display in tokens[1:]:
        more = cells.token(console, display)
        if line.cell_len + 1 + more.cell_len > room:
            break
        line.append(" ").append_text(more)
    return line


def render_find(found: Find, console: Console) -> None:
    """Print the neurons that most promote a token beside those that most suppress it."""
    print_source(console, "find", found)
    line = Text("neurons whose values promote ")
    line.append_text(cells.token(console, found.token, style="bold"))
    if found.foil_token is not None:
        line.append(" rather than ").append_text(cells.token(console, found.foil_token))
    say(console, line.append(f", of {found.searched:,}"))
    say(console, "")
    columns = []
    for head, scores in (("promotes", found.promotes), ("suppresses", found.suppresses)):
        columns += [_names(head, scores), _scores(scores)]
    print_columns(console, columns)
    say(console, "")
    say(console, "score: logits per unit of coefficient", cells.QUIET)
    say(console, describe_projection(found.projection), cells.QUIET)
    print_checks(console, found, {})


def _names(head: str, scores: NeuronScores) -> Column:
    pairs = zip(scores.layer, scores.neuron, strict=True)
    return column(head, [Text(neuron_name(layer, neuron)) for layer, neuron in pairs])


def _scores(scores: NeuronScores) -> Column:
    return column("score", [_signed(score) for score in scores.score], right=True)


def render_card(card: NeuronCard, console: Console) -> None:
    """Print what drives a neuron and what it writes."""
    print_source(console, f"neuron {neuron_name(card.layer, card.neuron)}", card)
    norms = f"value norm {number(card.value_norm)}, key norm {number(card.key_norm)}"
    say(console, f"{norms}, bias {number(card.bias)}, cosine of the two {number(card.cosine)}")
    say(console, "")
    columns = []
    for head, extremes in (
        ("promotes", card.promoted),
        ("suppresses", card.suppressed),
        ("driven by", card.driven_by),
    ):
        cap = None if is_unbounded(console) else max(8, console.width // 3 - 10)
        tokens = [
            cells.token(console, display, cap) if extremes.known[0] else cells.absent()
            for display in extremes.tokens[0]
        ]
        columns.append(column(head, tokens))
        columns.append(column("", [_signed(score) for score in extremes.scores[0]], right=True))
    print_columns(console, columns)
    say(console, "")
    if card.fires is not None:
        print_triggers(console, card)
    say(console, describe_projection(card.projection), cells.QUIET)
    say(
        console,
        "driven by: key score if the token's embedding alone were the stream",
        cells.QUIET,
    )
    print_checks(console, card, {})


def _how(memory: MlpMemory) -> str:
    n = len(memory.layer) // (len(memory.layers) * len(memory.positions))
    return f"{count(n, 'neuron')} a layer, by {describe_order(memory.order)}"


def _quoted(console: Console, display: str | None) -> str:
    return cells.token(console, display or "", 14).plain


def _number(value: float) -> Text:
    return Text(number(value)) if np.isfinite(value) else cells.absent()


def _signed(value: float) -> Text:
    if not np.isfinite(value):
        return cells.absent()
    return Text(f"{'+' if value > 0 else ''}{number(value)}", "green" if value > 0 else "red")
