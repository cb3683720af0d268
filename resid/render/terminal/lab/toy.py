"""The five-layer net in the terminal: a row a layer, then many seeds, then products of slopes."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.text import Text

from resid.render.lab_words import IDENTITIES, digits
from resid.render.terminal import cells
from resid.render.terminal.columns import (
    Column,
    beside,
    column,
    print_columns,
    titled,
    total_width,
)
from resid.render.terminal.console import pick, say
from resid.render.terminal.frame import print_checks, print_source
from resid.results.lab import LabToy


def render_toy(toy: LabToy, console: Console) -> None:
    """Print the mean gradients, their spread over seeds, and what a stack does to slopes.

    Args:
        toy: what to print.
        console: where to.
    """
    print_source(console, "lab toy", toy)
    say(console, "mean absolute gradient over the weights of each layer")
    say(console, "")
    _print_gradients(toy, console)
    say(console, "")
    _print_seeds(toy, console)
    say(console, "")
    _print_slopes(toy, console)
    say(console, "")
    say(console, Text(toy.finding, style="bold"))
    print_checks(console, toy, IDENTITIES)


def _print_gradients(toy: LabToy, console: Console) -> None:
    times = pick(console, "×", "x")
    layers = column("layer", [Text(str(layer)) for layer in toy.layers])
    groups = []
    for name, (without, having) in zip(toy.activations, toy.gradients, strict=True):
        factors = np.divide(having, without, out=np.full_like(having, np.nan), where=without > 0)
        group = beside(
            [
                column("plain", map(_number, without), right=True),
                column("shortcut", map(_number, having), right=True),
                column(
                    "",
                    [Text(times + _whole(f) if np.isfinite(f) else "", "dim") for f in factors],
                    right=True,
                ),
            ]
        )
        groups.append(titled(Text(name), group))
    if total_width([layers, *groups]) <= console.width:
        print_columns(console, [layers, *groups])
        return
    for i, group in enumerate(groups):
        if i:
            say(console, "")
        print_columns(console, [layers, group])


def _print_seeds(toy: LabToy, console: Console) -> None:
    n = toy.first_gradients.shape[-1]
    say(console, f"layer 0 over {n} {'seed' if n == 1 else 'seeds'}, from {toy.source.seed} on")
    say(console, "")
    quantiles = [_quantiles(factors) for factors in toy.factors]
    columns = [
        column("activation", map(Text, toy.activations)),
        column("factor", [_number(median) for _, median, _ in quantiles], right=True),
        column("middle half", [_range(low, high) for low, _, high in quantiles], right=True),
        titled(Text("no gradient at all"), _silent(toy)),
    ]
    print_columns(console, columns)


def _silent(toy: LabToy) -> Column:
    return beside(
        [
            column(name, [Text(f"{share:.0%}") for share in toy.silent[:, net]], right=True)
            for net, name in enumerate(("plain", "shortcuts"))
        ],
        gap=2,
    )


def _print_slopes(toy: LabToy, console: Console) -> None:
    say(console, f"what comes through {toy.depth} layers f of the same slope")
    say(console, "")
    columns = [
        column("slope of f", [Text(str(slope)) for slope in toy.slopes], right=True),
        column("through f", map(_number, toy.product), right=True),
        column("slope of x + f(x)", [Text(f"{1 + s:.1f}") for s in toy.slopes], right=True),
        column("through x + f(x)", map(_number, toy.product_shortcut), right=True),
    ]
    print_columns(console, columns)


def _quantiles(values: np.ndarray) -> tuple[float, float, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return float("nan"), float("nan"), float("nan")
    low, median, high = np.quantile(known, [0.25, 0.5, 0.75])
    return float(low), float(median), float(high)


def _number(value: float) -> Text:
    return Text(digits(value)) if np.isfinite(value) else Text("-", cells.QUIET)


def _range(low: float, high: float) -> Text:
    return Text(f"{digits(low)}..{digits(high)}" if np.isfinite(low + high) else "-", cells.QUIET)


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
