"""The result of a race: the held-out loss of every run, and a verdict on every pair of variants."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from resid.axes import axes
from resid.results.lab.result import LabResult
from resid.results.result import Floats, Ints

Verdict = Literal["worse", "better", "noise", "none"]


@dataclass(frozen=True)
class LabRace(LabResult):
    """Small models that differ in one thing each, trained on one text under the same seeds."""

    analysis: ClassVar[str] = "lab_race"
    text_sha256: str
    """Of the whole text, the held-out end with it."""
    confidence: float
    """That all intervals hold together."""
    unigram_loss: float
    """Held-out loss of a predictor that knows how often each byte is, in nats a byte."""
    bigram_loss: float
    """Of one that knows how often each byte follows the one before it."""
    variants: tuple[str, ...] = axes("variant")
    d_model: Ints = axes("variant")
    d_mlp: Ints = axes("variant")
    parameters: Ints = axes("variant")
    seeds: Ints = axes("variant run")
    """The same for every variant; those of a variant that is named again follow on."""
    steps: tuple[int, ...] = axes("step")
    """After how many steps the loss was measured; the first is 0."""
    loss: Floats = axes("variant run step")
    """Cross-entropy on held-out text, in nats a byte."""
    first: tuple[int, ...] = axes("pair")
    """Index of the variant that a pair is held against."""
    second: tuple[int, ...] = axes("pair")
    difference: Floats = axes("pair")
    """Final loss of `second` minus that of `first`, the mean over pairs of runs."""
    low: Floats = axes("pair")
    high: Floats = axes("pair")
    """The interval's ends; infinite where one seed alone gives none."""

    @property
    def final(self) -> Floats:
        """[variant, run] the loss after the last step."""
        return self.loss[:, :, -1]

    @property
    def freedom(self) -> int:
        """Degrees of freedom of every interval: one less than there are seeds."""
        return int(self.seeds.shape[1]) - 1

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """[pair] whether `second` is worse or better than `first`, or all is noise.

        "none" where there is no interval to judge by.
        """
        found: list[Verdict] = []
        for low, high in zip(self.low, self.high, strict=True):
            if not (math.isfinite(low) and math.isfinite(high)):
                found.append("none")
            else:
                found.append("worse" if low > 0 else "better" if high < 0 else "noise")
        return tuple(found)

    @property
    def finding(self) -> str:
        """What the seeds can tell apart, and by how much."""
        told = [
            f"{self.variants[b]} is {verdict} than {self.variants[a]} by "
            f"{abs(self.difference[i]):.2f} nats a byte"
            for i, (a, b, verdict) in self._by_size()
            if verdict in ("worse", "better")
        ]
        verdicts = self.verdicts
        noise, none = verdicts.count("noise"), verdicts.count("none")
        if not told and not noise:
            why = "one seed gives no interval" if self.freedom < 1 else "a loss is not finite"
            return f"No verdict on {_pairs(none)}: {why if none else 'there is no other variant'}."
        rest = f"{_pairs(noise)} cannot be told from noise" if noise else ""
        more = f"{len(told) - _MOST} more differ" if len(told) > _MOST else ""
        parts = [*told[:_MOST], *filter(None, [more, rest])]
        if none:
            parts.append(f"{_pairs(none)} without a verdict")
        joined = "; ".join(parts)
        return f"{joined[0].upper() if not told else joined[0]}{joined[1:]}."

    def _by_size(self) -> Iterator[tuple[int, tuple[int, int, Verdict]]]:
        """The pairs, the largest difference first."""
        pairs = list(zip(self.first, self.second, self.verdicts, strict=True))
        order = np.argsort(-np.abs(np.nan_to_num(self.difference)), kind="stable")
        return ((int(i), pairs[i]) for i in order)

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`variant`, `run`, `step` and `pair`, a pair as "second - first"."""
        names = self.variants
        return {
            "variant": names,
            "run": list(range(self.seeds.shape[1])),
            "step": self.steps,
            "pair": [
                f"{names[b]} - {names[a]}" for a, b in zip(self.first, self.second, strict=True)
            ],
        }

    def measured(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        names = ("d_model", "d_mlp", "parameters", "seeds", "loss")
        return {name: getattr(self, name) for name in names} | {
            "text_sha256": self.text_sha256,
            "unigram_loss": self.unigram_loss,
            "bigram_loss": self.bigram_loss,
            "confidence": self.confidence,
            "degrees_of_freedom": self.freedom,
            "pairs": [
                {
                    "first": self.variants[a],
                    "second": self.variants[b],
                    "difference": self.difference[i],
                    "low": self.low[i],
                    "high": self.high[i],
                    "verdict": self.verdicts[i],
                }
                for i, (a, b) in enumerate(zip(self.first, self.second, strict=True))
            ],
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every variant, run and measurement."""
        for i, variant in enumerate(self.variants):
            for j, seed in enumerate(self.seeds[i]):
                for k, step in enumerate(self.steps):
                    yield {
                        "variant": variant,
                        "parameters": self.parameters[i],
                        "d_model": self.d_model[i],
                        "d_mlp": self.d_mlp[i],
                        "seed": seed,
                        "step": step,
                        "held_out_loss": self.loss[i, j, k],
                    }


# More findings than these make no sentence.
_MOST = 3


def _pairs(n: int) -> str:
    return "1 pair" if n == 1 else f"{n} pairs"
