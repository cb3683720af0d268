"""The result of measuring the stream over text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from resid.axes import axes
from resid.results.corpus_source import CorpusSource
from resid.results.result import Floats, Result

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The shares whose quantiles are reported."""


@dataclass(frozen=True)
class Spread:
    """L2 norms at several places, over the tokens of a text. Axes: place, quantile."""

    mean: Floats
    """[place] over all tokens but those at position 0 of what the model read."""
    se: Floats
    """[place] standard error of the mean, by document."""
    quantiles: Floats
    """[place, quantile] over the same tokens, to the resolution of a histogram."""
    mean_at_start: Floats
    """[place] the mean over tokens at position 0; NaN where none counted."""


@dataclass(frozen=True)
class CorpusGrowth:
    """How the norm grows from block to block: a straight line through the mean log norm."""

    per_layer: float
    """Factor by which the L2 norm grows per layer: exp of the slope over every L.post."""
    per_layer_se: float
    """Its standard error, by document."""
    r_squared: float
    """Share of the variance over layers that the line explains."""
    growing_steps: float
    """Share of the steps from embed to 0.post, 1.post, ... at which a token's norm grows."""
    growing_steps_se: float
    fitted_l2: Floats = axes("layer")
    """The line at every L.post, as an L2 norm."""


@dataclass(frozen=True)
class CorpusNorms(Result):
    """How long the stream is over a text, and what attention and MLP write to it.

    Position 0 of what the model reads, where GPT-2 keeps massive activations, is kept apart.
    """

    analysis: ClassVar[str] = "corpus_norms"
    source: CorpusSource
    documents: int
    tokens: int
    """Tokens of text read, each once."""
    not_finite: int
    """Those left out because a norm was not finite."""
    tokens_at_start: int
    """Those of the others that stood at position 0."""
    resolution: float
    """Relative width of the histogram's bins, to which the quantiles are known."""
    l2: Spread
    """Of the stream, by point."""
    attn_out: Spread
    """Of what attention wrote, by layer."""
    mlp_out: Spread
    """Of what the MLP wrote, by layer."""
    growth: CorpusGrowth
    points: tuple[str, ...] = axes("point")
    layers: tuple[int, ...] = axes("layer")
    quantile_shares: tuple[float, ...] = axes("quantile")

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`point`, `layer` and `quantile`."""
        return {"point": self.points, "layer": self.layers, "quantile": self.quantile_shares}

    def data(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        data: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("documents", "tokens", "not_finite", "tokens_at_start", "resolution")
        }
        data |= {
            "mean_l2": self.l2.mean,
            "mean_l2_se": self.l2.se,
            "quantiles": self.l2.quantiles,
            "mean_l2_at_start": self.l2.mean_at_start,
        }
        for name in ("attn_out", "mlp_out"):
            spread: Spread = getattr(self, name)
            data[name] = {
                "mean_l2": spread.mean,
                "mean_l2_se": spread.se,
                "quantiles": spread.quantiles,
                "mean_l2_at_start": spread.mean_at_start,
            }
        return data | {"growth": dict(vars(self.growth))}

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every point, then for what attention and MLP wrote in every layer."""
        names = {
            "l2": self.points,
            "attn_out": [f"{layer}.attn_out" for layer in self.layers],
            "mlp_out": [f"{layer}.mlp_out" for layer in self.layers],
        }
        for name, places in names.items():
            spread: Spread = getattr(self, name)
            for i, place in enumerate(places):
                row = {"place": place, "mean_l2": spread.mean[i], "mean_l2_se": spread.se[i]}
                for share, value in zip(self.quantile_shares, spread.quantiles[i], strict=True):
                    row[f"q{np.round(100 * share):.0f}"] = value
                yield row | {"mean_l2_at_start": spread.mean_at_start[i]}
