"""What table and figure say alike of followed tokens and of streams that carry nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from resid.render.words import count, nats
from resid.results import Bools, Floats, LogitLens


def leading_stretches(points: Sequence[str], leads: Bools) -> str:
    """The points at which a token leads, neighbours joined: embed-2.post, 5.post."""
    return ", ".join(_stretches(points, leads))


def _stretches(points: Sequence[str], leads: Bools) -> Iterator[str]:
    for leading, group in groupby(zip(leads, points, strict=True), key=lambda pair: pair[0]):
        names = [point for _, point in group]
        if leading:
            yield names[0] if len(names) == 1 else f"{names[0]}-{names[-1]}"


def describe_flips(lens: LogitLens) -> str:
    """How often the top token changes from point to point, over all positions."""
    fewest, most = int(lens.flips.min()), int(lens.flips.max())
    if fewest == most:
        return f"The top token flips {count(most, 'time')} on the way."
    return f"The top token flips {fewest} to {most} times on the way."


def describe_baseline(lens: LogitLens, index: int, *, named: bool = True) -> list[str]:
    """A sentence each on the zero vector, on random directions, and on what both hold for.

    Args:
        lens: with or without a baseline; without, there is nothing to say.
        index: the position of the divergences, along the lens's `pos` axis.
        named: say which position that is.
    """
    if lens.baseline is None:
        return []
    zero, random = lens.baseline.zero, lens.baseline.random
    at = f" at position {lens.positions[index]}" * named
    return [
        "nothing: the zero vector, of which ln_final leaves its bias; "
        f"entropy {nats(zero.entropy)}, KL to final {nats(zero.kl_to_final[index])}{at}.",
        f"random: {random.draws} directions of equal length (seed {random.seed}), median and 95 % "
        f"band; entropy {_band(random.entropy)}, "
        f"KL to final {_band(random.kl_to_final[:, index])}{at}.",
        "ln_final divides length out, up to its epsilon: both hold for every point.",
    ]


def _band(values: Floats) -> str:
    """Median, low and high as BAND orders them."""
    median, low, high = map(nats, values)
    return f"{median} ({low} to {high})"
