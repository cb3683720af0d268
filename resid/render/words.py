"""The words and the numbers that every rendering writes in the same way."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable

from resid.results import Check, Origin, Source
from resid.tokens import escape_text, quote

NOT_FINITE = "n/a"

IDENTITIES = {
    "lens_equals_logits": "last point = logits",
    "finite": "every number is finite",
    "stream_adds_up": "embed + all writes = last point",
    "neurons_add_up": "coefficients x values + bias = mlp_out",
    "parts_add_up": "parts = distinct parameters",
    "points_chain": "each point = the one before + the write",
    "heads_add_up": "heads + bias = attention's share",
    "logits_unchanged": "logits with recording = logits without",
    "hooks_removed": "hooks after a run = hooks before",
    "hooks_removed_after_error": "hooks after a broken run = hooks before",
    "modes_restored": "training flags after a run = before",
    "modes_restored_after_error": "training flags after a broken run = before",
    "batch_equals_single": "padded batch = single runs",
    "lens_equals_full": "streamed lens = all logits at once",
    "blocks_agree": "other blocks, same numbers",
    "blocks_same_tokens": "other blocks, same tokens",
    "waterfall_telescopes": "sum of steps = final log-probability",
    "direct_closes": "sum of components = logit",
}
"""What every check holds a result against, by the check's name."""


@functools.singledispatch
def describe_input(source: Origin) -> str:
    """What was read or done to get the result, in one line; empty where there is nothing to say."""
    return ""


@describe_input.register
def _prompt(source: Source) -> str:
    """The prompt between quotes, or the ids in its place; nothing where there was no prompt."""
    if source.prompt is None and not source.ids:
        return ""
    if source.prompt is None:
        return "ids " + ", ".join(map(str, source.ids))
    return quote(escape_text(source.prompt))


def told(checks: Iterable[Check]) -> list[Check]:
    """The checks that a reader is told of: that every number is finite goes without saying."""
    return [check for check in checks if not (check.passed and check.name == "finite")]


def describe_check(check: Check, identity: str | None = None) -> str:
    """One check in one line, loud where it failed.

    Args:
        check: the check.
        identity: words for the identity that fit the rendering better than the usual ones.
    """
    identity = identity or IDENTITIES.get(check.name, check.name.replace("_", " "))
    if check.passed and check.tolerance == 0:
        return f"{identity}, exactly"
    line = f"{identity}, error {short(check.error)} (tolerance {short(check.tolerance)})"
    if check.passed:
        return line
    return f"FAILED: {line}" + (f": {check.where}" if check.where else "")


def describe_recheck(check: Check, named: bool = False) -> str:
    """What it means that a check failed, from the same check made in float64.

    Args:
        check: the check as it came out in float64.
        named: begin with its name, where several are told of.
    """
    head = f"{check.name} in float64: " if named else "in float64 "
    if check.tolerance == 0:
        found = "it holds" if check.passed else "it fails"
    else:
        found = f"the error is {short(check.error)} (tolerance {short(check.tolerance)})"
    verdict = "rounding, not a fault" if check.passed else "it still fails, a fault"
    return f"{head}{found}: {verdict}"


def probability(value: float) -> str:
    """A probability in four characters: three digits, or its order of magnitude."""
    if not math.isfinite(value):
        return NOT_FINITE
    if value >= 0.9995:
        return "1.00"
    return f"{value:.3f}".removeprefix("0") if value >= 0.001 else short(value)


def nats(value: float) -> str:
    """An entropy or a divergence with two decimals; never minus zero."""
    return f"{round(value, 2) + 0.0:.2f}" if math.isfinite(value) else NOT_FINITE


def short(value: float) -> str:
    """One significant digit and no idle zeros: 2e-6, 0.3."""
    if not math.isfinite(value):
        return NOT_FINITE
    if 10 <= abs(value) < 1000:
        return f"{value:.0f}"
    if value == 0 or 0.01 <= abs(value) < 10:
        return f"{value:.1g}"
    return re.sub(r"e([+-])0+", r"e\1", f"{value:.0e}").replace("e+", "e")


def count(number: int, noun: str) -> str:
    """A number with its noun: 1 flip, 5 flips."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def number(value: float) -> str:
    """A measured number in three significant digits, without an exponent where that is short."""
    if not math.isfinite(value):
        return NOT_FINITE
    if value == 0 or 0.001 <= abs(value) < 100_000:
        digits = 3 if abs(value) < 1 else max(0, 2 - int(math.log10(abs(value) or 1)))
        return f"{value:.{digits}f}"
    return re.sub(r"e([+-])0+", r"e\1", f"{value:.2e}").replace("e+", "e")


def neuron_name(layer: int, neuron: int) -> str:
    """A neuron as the field writes it, L9N652."""
    return f"L{layer}N{neuron}"


def describe_projection(projection: str) -> str:
    """Which convention put vectors before the unembedding, in one line."""
    return {
        "folded": "projection: folded (ln_final's gain times the centred value, through W_U)",
        "raw": "projection: raw (the value straight through W_U)",
    }[projection]


def describe_order(order: str) -> str:
    """What puts a memory's neurons in order, after the word "by"."""
    return {
        "write": "|coefficient| x value norm",
        "coefficient": "coefficient",
        "target": "size of their share of the target's logit (ln_final's scale frozen)",
    }[order]
