"""What the table and the figure of a race both say."""

from __future__ import annotations

import math

import numpy as np

from resid.render.words import NOT_FINITE, count
from resid.results.lab import LabRace

IDENTITIES = {
    "finite": "every loss is finite",
    "causal": "predictions before the last byte = the same, whatever it is",
    "equal_parameters": "variants named -equal = the base's parameters, relative",
}
"""What the checks hold, by the check's name."""


def loss(value: float) -> str:
    """A loss in nats a byte, with three decimals."""
    return f"{value:.3f}" if math.isfinite(value) else NOT_FINITE


def span(low: float, high: float) -> str:
    """An interval of differences; words where there is none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "none"
    return f"{low:+.3f} to {high:+.3f}"


def runs(race: LabRace) -> str:
    """How many runs each variant had."""
    return count(race.seeds.shape[1], "seed")


def rule(race: LabRace) -> str:
    """How a finding is told from noise."""
    if race.freedom < 1:
        return "one seed tells nothing of chance: no verdict; ask for at least 2 seeds, better 5"
    pairs = len(race.first)
    shared = f", Bonferroni over {count(pairs, 'pair')}" if pairs > 1 else ""
    freedom = f"{race.freedom} degree{'s' * (race.freedom > 1)} of freedom"
    return (
        f"worse, better: the {100 * race.confidence:.3g}% interval leaves out 0; noise: it does "
        f"not. Student's t on differences paired run by run, {freedom}{shared}"
    )


def reach(race: LabRace) -> str:
    """How small a difference these seeds could not see; empty where there is no interval."""
    halves = (race.high - race.low) / 2
    finite = halves[np.isfinite(halves)]
    if len(finite) == 0:
        return ""
    return (
        f"with {runs(race)} an interval reaches {float(np.median(finite)):.2f} to either side (the "
        "median of these pairs): smaller differences may be there and go unseen"
    )


def pairing(race: LabRace) -> str:
    """What the runs of a pair share."""
    again = [label for label in race.variants if label.endswith(")")]
    shared = "variants of one seed read the same bytes in the same order and begin alike"
    if not again:
        return shared
    return f"{shared}; {', '.join(again)} runs under other seeds than its namesake"
