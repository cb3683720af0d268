"""Neurons over text in the terminal: how many fire, whether they agree, and what fires one most."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from resid.render import corpus_words as words
from resid.render.terminal import cells
from resid.render.terminal.columns import (
    GAP,
    Column,
    beside,
    column,
    print_columns,
    titled,
    total_width,
)
from resid.render.terminal.console import is_unbounded, pick, say
from resid.render.terminal.corpus import print_end
from resid.render.terminal.corpus_triggers import in_context
from resid.render.terminal.frame import print_source
from resid.render.words import describe_projection, neuron_name, number
from resid.results import CorpusMemory, Floats

_NARROWEST_CONTEXT, _WIDEST_CONTEXT = 24, 100


def render_corpus_memory(memory: CorpusMemory, console: Console) -> None:
    """Print a line for every layer: what fires, what agrees, and its strongest trigger.

    Args:
        memory: what to print.
        console: where to.
    """
    print_source(console, "corpus memory", memory)
    neurons = memory.fires.shape[1]
    say(console, f"{len(memory.layers)} layers of {neurons:,} neurons")
    say(console, "")
    parts = {
        "layer": column("layer", [Text(str(layer)) for layer in memory.layers], right=True),
        "active": titled(Text("active"), _shares(console, memory.active, memory.active_se)),
        "never": column("never", _dead(memory), right=True),
    }
    if memory.projection is not None:
        agreement = _shares(console, memory.agreement, memory.agreement_se)
        chance = [Text(words.percent(value), cells.QUIET) for value in memory.agreement_chance]
        parts["agrees"] = titled(Text("agrees"), agreement)
        parts["chance"] = column("chance", chance, right=True)
    parts["strongest"] = column("strongest", _neurons(memory))
    parts["coefficient"] = column("coefficient", _activations(memory), right=True)
    missing = []
    for name in ("never", "chance", "coefficient", "agrees"):
        if console.width - total_width([*parts.values()]) - GAP >= _NARROWEST_CONTEXT:
            break
        if parts.pop(name, None) is not None:
            missing.append(name)
    room = console.width - total_width([*parts.values()]) - GAP
    width = _WIDEST_CONTEXT if is_unbounded(console) else min(max(room, 12), _WIDEST_CONTEXT)
    contexts = [
        Text()
        if found is None
        else in_context(console, found.before, found.token, found.after, width)
        for found in memory.strongest
    ]
    print_columns(console, [*parts.values(), column("at", contexts)])
    say(console, "")
    for line in _explained(memory, missing):
        say(console, line, cells.QUIET)
    print_end(console, memory, memory.source, missing)


def _shares(console: Console, values: Floats, errors: Floats) -> Column:
    sign = pick(console, "±", "+-")
    shown = [Text(words.percent(value)) for value in values]
    quiet = [
        Text(f"{sign}{100 * error:.1f}" if math.isfinite(error) else "", cells.QUIET)
        for error in errors
    ]
    return beside([Column((), tuple(shown), right=True), Column((), tuple(quiet), right=True)])


def _dead(memory: CorpusMemory) -> list[Text]:
    return [cells.absent() if dead is None else Text(f"{dead:,}") for dead in memory.known_dead()]


def _neurons(memory: CorpusMemory) -> list[Text]:
    found = zip(memory.layers, memory.strongest_neuron, memory.strongest, strict=True)
    return [Text("" if none is None else neuron_name(layer, n)) for layer, n, none in found]


def _activations(memory: CorpusMemory) -> list[Text]:
    return [Text("" if one is None else number(one.activation)) for one in memory.strongest]


def _explained(memory: CorpusMemory, missing: Sequence[str]) -> Sequence[str]:
    """What the columns that are shown mean."""
    active = "active: share of neurons that a token fires (coefficient above 0)"
    lines = [active if "never" in missing else f"{active}; never: neurons that none does"]
    if memory.projection is not None and "agrees" not in missing:
        agrees = "agrees: the value's top token follows the neuron's strongest trigger"
        chance = "" if "chance" in missing else "; chance: if what follows were dealt out at random"
        lines += [f"{agrees} (Geva et al. 2021){chance}", describe_projection(memory.projection)]
    return lines
