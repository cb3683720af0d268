"""Finding or noise: what a handful of seeds can say about the difference of two variants.

The rule is Student's t interval on differences paired by seed. With n seeds it has n - 1 degrees of
freedom, and the confidence is shared out over all pairs that are judged (Bonferroni), so that all
intervals together hold the true differences with the confidence that was asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from resid.results import Floats


@dataclass(frozen=True)
class Interval:
    """The difference of two variants, with what the seeds leave open."""

    difference: float
    """Mean over seeds."""
    low: float
    high: float
    """The ends of the interval; not finite where the seeds do not give one."""

    @property
    def excludes_zero(self) -> bool:
        """Whether the difference is more than the seeds explain."""
        return self.low > 0 or self.high < 0


def interval(first: Floats, second: Floats, confidence: float, pairs: int) -> Interval:
    """How much larger `second` is than `first`.

    Args:
        first: [seed] a number from every run of one variant.
        second: [seed] the same of another, the runs in the same order.
        confidence: that all intervals hold together, for example 0.95.
        pairs: how many intervals there are.
    """
    with np.errstate(invalid="ignore"):  # Losses that are not finite differ by what is no number.
        differences = np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)
        n = len(differences)
        mean = float(differences.mean())
        if n < 2:
            return Interval(mean, -math.inf, math.inf)
        error = float(differences.std(ddof=1)) / math.sqrt(n)
    half = student_t(1 - (1 - confidence) / pairs, n - 1) * error
    return Interval(mean, mean - half, mean + half)


def student_t(confidence: float, freedom: int) -> float:
    """The t that a variable of Student's distribution exceeds in size with chance 1 - confidence.

    Args:
        confidence: two-sided, between 0 and 1.
        freedom: degrees of freedom, a positive integer.
    """
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence and high < 1e12:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: int) -> float:
    """The chance that Student's t lies between -t and t.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * k / (k + 1)
    if odd:
        return 2 / math.pi * (angle + sine * total)
    return sine * total
