"""Attribution in the terminal: one row a block, the two readings under heads of their own."""

from __future__ import annotations

import math

import numpy as np
from rich.console import Console
from rich.text import Text

from resid.render import words
from resid.render.terminal import cells
from resid.render.terminal.columns import Column, column, print_columns, titled
from resid.render.terminal.console import say
from resid.render.terminal.frame import print_checks, print_source
from resid.results import Attribution

_MOST_PARTS = 10


def render_attribution(found: Attribution, console: Console) -> None:
    """Print what moved the target along the stream, and what its logit is made of."""
    print_source(console, "attribution", found)
    line = Text(f"after position {found.position}, ")
    line.append_text(cells.token(console, found.source.tokens[found.position])).append(": ")
    line.append_text(cells.token(console, found.target_token, style="bold"))
    if found.foil_token is not None:
        line.append(" minus ").append_text(cells.token(console, found.foil_token))
    say(console, line)
    say(console, "")
    print_columns(console, _table(found))
    say(console, "")
    for parts in (_largest(found), _neurons(found)):
        if parts is not None:
            say(console, parts)
    say(
        console,
        "waterfall: each point decoded with its own statistics; steps in nats sum to the last",
        cells.QUIET,
    )
    say(
        console,
        "direct: shares of the logit, ln_final's scale frozen; token, position and ln_final_bias"
        " stand apart",
        cells.QUIET,
    )
    print_checks(console, found, {})


def _table(found: Attribution) -> list[Column]:
    layers = [str(layer) for layer in range(found.source.n_layers)]
    step = dict(zip(found.points, found.delta, strict=True))
    after = dict(zip(found.points, found.logprob, strict=True))
    attention, mlp = _by_layer(found)
    blank = Text()
    log = "log-prob" if found.foil_token is None else "difference"
    others = [("token", "position"), ("ln_final_bias", "b_U")]
    first, last = (sum(_share(found, name) for name in names) for names in others)
    return [
        column("block", [Text("embed"), *map(Text, layers), Text("sum")]),
        titled(
            Text("waterfall"),
            column(
                "attention",
                [blank, *(_signed(step[f"{layer}.mid"]) for layer in layers), blank],
                right=True,
            ),
        ),
        column("MLP", [blank, *(_signed(step[f"{layer}.post"]) for layer in layers), blank], True),
        column(
            log,
            [
                _plain(after["embed"]),
                *(_plain(after[f"{layer}.post"]) for layer in layers),
                _plain(float(found.delta.sum())),
            ],
            right=True,
        ),
        titled(
            Text("direct"),
            column("attention", [_signed(first), *map(_signed, attention), blank], right=True),
        ),
        column("MLP", [blank, *map(_signed, mlp), _signed(last)], right=True),
        column("logit", [blank, *[blank] * len(layers), _plain(float(found.direct.sum()))], True),
    ]


def _by_layer(found: Attribution) -> tuple[list[float], list[float]]:
    attention = np.zeros(found.source.n_layers)
    mlp = np.zeros(found.source.n_layers)
    for component, share in zip(found.components, found.direct, strict=True):
        if component.endswith(".mlp"):
            mlp[int(component.split(".")[0])] += share
        elif component.startswith("L"):
            attention[int(component[1:].split("H")[0])] += share
        elif component.endswith((".attn", ".attn_bias")):
            attention[int(component.split(".")[0])] += share
    return attention.tolist(), mlp.tolist()


def _share(found: Attribution, name: str) -> float:
    shares = dict(zip(found.components, found.direct, strict=True))
    return float(shares.get(name, 0.0))


def _largest(found: Attribution) -> Text | None:
    """The components that count most, by the size of their share."""
    order = np.argsort(-np.abs(found.direct), kind="stable")[:_MOST_PARTS]
    named = [(found.components[i], float(found.direct[i])) for i in order]
    return _listed("largest shares: ", named)


def _neurons(found: Attribution) -> Text | None:
    if found.neurons is None:
        return None
    order = np.argsort(-np.abs(found.neurons.score), kind="stable")[:_MOST_PARTS]
    named = [
        (
            words.neuron_name(found.neurons.layer[i], found.neurons.neuron[i]),
            float(found.neurons.score[i]),
        )
        for i in order
    ]
    return _listed("neurons: ", named)


def _listed(head: str, named: list[tuple[str, float]]) -> Text:
    line = Text(head)
    for i, (name, share) in enumerate(named):
        line.append(", " * (i > 0) + f"{name} ").append_text(_signed(share))
    return line


def _plain(value: float) -> Text:
    return Text(f"{value:.2f}") if math.isfinite(value) else cells.absent()


def _signed(value: float) -> Text:
    if not math.isfinite(value):
        return cells.absent()
    style = "green" if value > 0.005 else "red" if value < -0.005 else cells.QUIET
    return Text(f"{value + 0.0:+.2f}", style=style)
