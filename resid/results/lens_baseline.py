"""What the lens says of streams that carry nothing: the measure of how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resid.axes import axes
from resid.results.result import Floats, Ints, Strings

BAND = {"median": 0.5, "low": 0.025, "high": 0.975}
"""The quantiles that stand for many draws, by name: the middle, and the ends of a 95 % band."""


@dataclass(frozen=True)
class ZeroStream:
    """The zero vector, decoded: ln_final leaves nothing of it but its own bias."""

    entropy: float
    """Of the decoded distribution, nats."""
    top_ids: Ints = axes("k")
    """Most probable tokens, best first; -1 where not finite."""
    top_tokens: Strings = axes("k")
    """Display strings of `top_ids`."""
    top_probs: Floats = axes("k")
    """Their probabilities."""
    kl_to_final: Floats = axes("pos")
    """KL(final || zero): from the model's own prediction at each position, nats."""

    def data(self) -> dict[str, Any]:
        """The fields as JSON's `zero` holds them."""
        known = self.top_ids >= 0
        return {
            "top_ids": [i if k else None for i, k in zip(self.top_ids, known, strict=True)],
            "top_tokens": [t if k else None for t, k in zip(self.top_tokens, known, strict=True)],
            "top_probs": self.top_probs,
            "entropy": self.entropy,
            "kl_to_final": self.kl_to_final,
        }


@dataclass(frozen=True)
class RandomStreams:
    """Directions of one length drawn at random, decoded; axis `band` as the keys of `BAND`."""

    draws: int
    """How many directions."""
    seed: int
    """Of the generator that drew them."""
    entropy: Floats = axes("band")
    """Of the decoded distributions, nats."""
    kl_to_final: Floats = axes("band pos")
    """KL(final || draw), from the model's own prediction at each position, nats."""

    def data(self) -> dict[str, Any]:
        """The fields as JSON's `random` holds them."""
        return {
            "draws": self.draws,
            "seed": self.seed,
            "entropy": dict(zip(BAND, self.entropy, strict=True)),
            "kl_to_final": dict(zip(BAND, self.kl_to_final, strict=True)),
        }


@dataclass(frozen=True)
class Baseline:
    """What ln_final and the unembedding say on their own.

    ln_final divides the length of a vector out, up to its epsilon: one set of draws therefore
    serves every point, however long its stream is.
    """

    zero: ZeroStream
    random: RandomStreams

    def data(self) -> dict[str, Any]:
        """The fields as JSON's `baseline` holds them."""
        return {"zero": self.zero.data(), "random": self.random.data()}
