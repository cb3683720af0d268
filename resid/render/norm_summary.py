"""What the table and the figure of the stream's norms both say: statistics, numbers, sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from resid.render.words import NOT_FINITE, count, number
from resid.results import Floats, Outlier, StreamNorms

IDENTITIES = {"finite": "every vector is finite"}


@dataclass(frozen=True)
class Spread:
    """Order statistics over positions, one of each for every row; NaN where a position has NaN."""

    low: Floats
    lower: Floats
    """The first quartile."""
    median: Floats
    upper: Floats
    """The third quartile."""
    high: Floats


def spread(norms: StreamNorms, values: Floats) -> Spread:
    """Over the positions that the growth is taken over; over all where none is left.

    Args:
        norms: says which positions these are.
        values: [row, pos].
    """
    kept = values[:, shown(norms)].astype(np.float64)
    with np.errstate(invalid="ignore"):
        return Spread(*np.quantile(kept, (0, 0.25, 0.5, 0.75, 1), axis=1))


def shown(norms: StreamNorms) -> list[int]:
    """Indices along `pos` of the positions that statistics are taken over."""
    kept = np.flatnonzero(norms.kept).tolist()
    return kept or list(range(len(norms.positions)))


def apart(norms: StreamNorms) -> list[int]:
    """Indices along `pos` of the positions that stand apart from the statistics."""
    return np.flatnonzero(~norms.kept).tolist() if norms.kept.any() else []


def steps(norms: StreamNorms) -> Floats:
    """[point] factor by which the norm grew since the row before, as a geometric mean."""
    kept = norms.l2[:, shown(norms)].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.exp(np.diff(np.log(kept), axis=0).mean(1))
    return np.concatenate([[np.nan], factors])


def name_positions(positions: Sequence[int]) -> str:
    """Position 0; positions 1 to 4, 7."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and position == runs[-1][-1] + 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    spelled: list[str] = []
    for run in runs:
        spelled += map(str, run) if len(run) < 3 else [f"{run[0]} to {run[-1]}"]
    if len(spelled) > 6:
        spelled = [*spelled[:5], "...", spelled[-1]]
    return f"position{'s' * (len(positions) > 1)} {', '.join(spelled)}"


def describe_positions(norms: StreamNorms) -> str:
    """Which positions the statistics are over, and which stand apart."""
    over = name_positions([norms.positions[i] for i in shown(norms)])
    if not apart(norms):
        return over
    return f"{over}; {name_positions(norms.growth.excluded_positions)} apart"


def describe_growth(norms: StreamNorms) -> str:
    """The growth per layer, how well it fits, and what it leaves out."""
    growth = norms.growth
    left_out = growth.excluded_positions
    outside = f"{name_positions(left_out)} left out" if left_out else "all positions"
    if growth.reason is not None:
        return f"no growth per layer: {growth.reason} ({outside})"
    fit = f"R² {share(growth.r_squared)}" if math.isfinite(growth.r_squared) else "flat"
    last = f"{norms.source.n_layers - 1}.post"
    factor = f"×{growth.per_layer:.3f}"
    return f"grows {factor} per layer from 0.post to {last} ({fit}, {outside})"


def describe_steps(norms: StreamNorms) -> str:
    """How near to monotone the growth is."""
    growing = norms.growth.growing_steps
    if not math.isfinite(growing):
        return ""
    last = f"{norms.source.n_layers - 1}.post"
    return f"the norm grows on {percent(growing)} of the steps from embed to {last}"


def describe_outliers(norms: StreamNorms, most: int = 3) -> list[str]:
    """One line for every outlier dimension, the one with the largest share first."""
    rule = norms.outlier_rule
    if not norms.outliers:
        return [
            f"no dimension holds {percent(rule.share)} of the squared norm "
            f"and {rule.times_median:.3g} times the median magnitude"
        ]
    by_dim: dict[int, list[Outlier]] = {}
    for outlier in norms.outliers:
        by_dim.setdefault(outlier.dim, []).append(outlier)
    lines = [_describe_dimension(dim, found) for dim, found in list(by_dim.items())[:most]]
    if len(by_dim) > most:
        lines.append(f"and {count(len(by_dim) - most, 'more outlier dimension')}")
    return lines


def _describe_dimension(dim: int, found: list[Outlier]) -> str:
    largest = max(found, key=lambda outlier: abs(outlier.value))
    at = name_positions(sorted({outlier.pos for outlier in found}))
    points = count(len({outlier.point for outlier in found}), "point")
    massive = "massive activation" if largest.massive else "outlier"
    return (
        f"{massive} in dimension {dim}: {number(largest.value)} at {largest.point}, position "
        f"{largest.pos} ({percent(largest.share)} of the squared norm); at {at}, in {points}"
    )


def percent(value: float) -> str:
    """A share or a ratio: 0.4%, 31%, 822%, and 12x from ten times on."""
    if not math.isfinite(value):
        return NOT_FINITE
    if value >= 9.995:
        return f"{value:.0f}x" if value < 1e5 else f"{value:.0e}x"
    return f"{100 * value:.0f}%" if value >= 0.0095 or value == 0 else f"{100 * value:.1f}%"


def share(value: float) -> str:
    """A cosine or an R²: two decimals without an idle zero, and never minus zero."""
    if not math.isfinite(value):
        return NOT_FINITE
    text = f"{round(value, 2) + 0.0:.2f}"
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text
