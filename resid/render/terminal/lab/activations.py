"""Activation functions in the terminal: their curves, their numbers, and a model's neurons."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.text import Text

from resid.render.lab_activations_words import IDENTITIES, percent, unseen
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
from resid.render.terminal.console import pick, safe, say
from resid.render.terminal.frame import print_checks, print_source
from resid.render.terminal.lab.plots import Curve, plot_curves
from resid.render.words import NOT_FINITE, number
from resid.results import Bools, Floats
from resid.results.lab import LabActivations
from resid.results.lab.activations import FLAT, ActivationsInModel

_SIGNS = {"ReLU": "r", "GELU": "g", "tanh GELU": "t", "SiLU": "s", "quick GELU": "q"}
_STYLES = {
    "ReLU": "red",
    "GELU": "blue",
    "tanh GELU": "cyan",
    "SiLU": "green",
    "quick GELU": "magenta",
}
_HEIGHT = 15
# To the right of it all curves leave upwards, and what is special lies to the left.
_VALUES_END = 1.5
# The columns that a narrow terminal does without, the first to go first.
_DISPENSABLE = ("Hugging Face", "mean square", "steepest", "mean")


def render_activations(result: LabActivations, console: Console) -> None:
    """Print both plots, a row for every function, the differences, and a row for every layer.

    Args:
        result: what to print.
        console: where to.
    """
    print_source(console, "lab activations", result)
    same = unseen(result)
    drawn = [name for name in result.functions if name not in {first for first, _, _ in same}]
    say(console, "")
    _plot(result, console, "value at x", result.value, drawn, result.x <= _VALUES_END)
    say(console, "")
    _plot(result, console, "slope at x", result.slope, drawn, result.x == result.x)
    for first, second, by in same:
        say(
            console,
            f"{first} is not drawn: it lies on {second}, {by:.1e} apart at most",
            cells.QUIET,
        )
    say(console, "")
    missing = _print_functions(result, console)
    say(console, "")
    _print_differences(result, console)
    if result.inside is not None:
        say(console, "")
        _print_layers(result, result.inside, console)
    say(console, "")
    say(console, Text(safe(console, result.finding), style="bold"))
    flat = f"flat: a slope below {FLAT} in size, which lets next to no gradient through"
    if result.inside is not None:
        say(
            console, "at or below 0: there ReLU would be 0 and let no gradient through", cells.QUIET
        )
    say(console, f"normal inputs: mean 0, variance 1; {flat}", cells.QUIET)
    if missing:
        say(console, f"not shown at this width: {', '.join(missing)}", cells.QUIET)
    print_checks(console, result, IDENTITIES)


def _plot(
    result: LabActivations,
    console: Console,
    title: str,
    values: Floats,
    drawn: Sequence[str],
    where: Bools,
) -> None:
    line = Text(f"{title}:")
    for name in drawn:
        line.append(f" {_SIGNS[name]}", style=_STYLES[name]).append(f" {name}")
    say(console, line)
    curves = [
        Curve(_SIGNS[name], values[result.functions.index(name)][where], _STYLES[name])
        for name in drawn
    ]
    plot_curves(console, result.x[where], curves, height=_HEIGHT)


def _print_functions(result: LabActivations, console: Console) -> list[str]:
    """Print the columns that fit; the names of those that do not."""
    least = pick(console, "≤", "<=")
    minimum = [
        Text(f"{value:.6f}" + (f" at {at:.6f}" if math.isfinite(at) else f" at x {least} 0"))
        for value, at in zip(result.minimum, result.minimum_at, strict=True)
    ]
    steepest = [
        Text(f"{value:.6f}" + (f" at {at:.6f}" if math.isfinite(at) else " at x > 0"))
        for value, at in zip(result.steepest, result.steepest_at, strict=True)
    ]
    parts = {
        "function": column("function", map(Text, result.functions)),
        "Hugging Face": column("transformers", map(Text, result.hugging_face)),
        "minimum": column("minimum", minimum),
        "steepest": column("steepest", steepest),
        "mean": _numbers("mean", result.normal_mean),
        "mean square": _numbers("mean sq.", result.normal_square),
        "zero": _shares("value 0", result.normal_zero),
        "no slope": _shares("slope 0", result.normal_no_slope),
        "flat": _shares("flat", result.normal_flat),
    }
    missing: list[str] = []
    for name in _DISPENSABLE:
        if total_width(_arranged(parts)) <= console.width:
            break
        del parts[name]
        missing.append(name)
    print_columns(console, _arranged(parts))
    return missing


def _arranged(parts: dict[str, Column]) -> list[Column]:
    """The columns side by side; what normal inputs meet under one title."""
    names = ("mean", "mean square", "zero", "no slope", "flat")
    under = beside([parts[name] for name in names if name in parts], GAP)
    others = [each for name, each in parts.items() if name not in names]
    return [*others, titled(Text("normal inputs"), under)]


def _print_differences(result: LabActivations, console: Console) -> None:
    """Print every pair where it is furthest apart, and where it is so once more."""
    pairs = list(zip(result.first, result.second, strict=True))
    plus = pick(console, "±", "+-")
    rows = [
        (
            f"{result.functions[a]} - {result.functions[b]}",
            [i for i, p in enumerate(pairs) if p == (a, b)],
        )
        for a, b in dict.fromkeys(pairs)
    ]
    columns = [
        column("furthest apart", [Text(name) for name, _ in rows]),
        column("by", [_signed(result.apart[at[0]]) for _, at in rows], right=True),
        column("at x", [Text(f"{plus}{result.apart_at[at[0]]:.4f}") for _, at in rows], right=True),
        column(
            "and by",
            [_signed(result.apart[at[1]]) if at[1:] else Text() for _, at in rows],
            right=True,
        ),
        column(
            "at x",
            [Text(f"{plus}{result.apart_at[at[1]]:.4f}") if at[1:] else Text() for _, at in rows],
            right=True,
        ),
    ]
    print_columns(console, columns)


def _signed(value: float) -> Text:
    return Text(f"{value:+.4e}".replace("e-0", "e-") if abs(value) < 1e-3 else f"{value:+.6f}")


def _print_layers(result: LabActivations, inside: ActivationsInModel, console: Console) -> None:
    if not np.isfinite(inside.errors).all():
        own = NOT_FINITE
    else:
        own = "none of the five" if inside.own is None else result.functions[inside.own]
    say(console, f"at the pre-activations of {result.source.subject}, whose own function is {own}:")
    say(console, "")
    relu = result.functions.index("ReLU")
    shown = relu if inside.own is None else inside.own
    columns = [
        column("layer", [Text(str(layer)) for layer in inside.layers], right=True),
        _shares("at or below 0", inside.off),
        column("neurons that stay there", [
            Text(f"{count:,}  {percent(share)}")
            for count, share in zip(inside.off_neurons, inside.off_throughout, strict=True)
        ], right=True),
    ]  # fmt: skip
    if shown != relu:
        columns.append(_shares(f"flat in {result.functions[shown]}", inside.flat[shown]))
    print_columns(console, columns)
    throughout = np.array([inside.off_neurons.sum(), inside.d_mlp * len(inside.layers)])
    say(console, "")
    say(
        console,
        f"{throughout[0]:,} of {throughout[1]:,} neurons at or below 0 at all "
        f"{inside.positions} positions",
    )


def _shares(head: str, values: Floats) -> Column:
    return column(head, [Text(percent(float(value))) for value in values], right=True)


def _numbers(head: str, values: Floats) -> Column:
    return column(head, [Text(number(float(value))) for value in values], right=True)
