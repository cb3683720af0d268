"""The result of stacking blocks: sizes of the stream and of its gradient, under five wirings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from resid.axes import axes
from resid.results.lab.result import LabResult, brief
from resid.results.result import Floats

FALLS = 0.8
"""A gradient is said to fall where less than this share of it is left."""

_ALIKE = ("pre-LN", "no residual")


@dataclass(frozen=True)
class LabDepth(LabResult):
    """Deep stacks at initialisation, forward and backward."""

    analysis: ClassVar[str] = "lab_depth"
    layers: int
    """Of the deepest stack, which the four arrays below are of."""
    attention_weights: int
    """Of one block, without biases: 4 d^2."""
    mlp_weights: int
    """Of one block, without biases: 8 d^2 where the MLP is four times as wide as the stream."""
    inits: tuple[str, ...] = axes("init")
    """From what the weights are drawn, in the words of `resid.lab.depth.INITS`."""
    wirings: tuple[str, ...] = axes("wiring")
    """How sublayers are joined to the stream: pre-LN, post-LN, no norm, no residual, neither."""
    seeds: tuple[int, ...] = axes("seed")
    points: tuple[str, ...] = axes("point")
    """The stream's points: embed, the input, then behind every block."""
    rms: Floats = axes("init wiring seed point")
    """Root mean square of the stream."""
    cosine: Floats = axes("init wiring seed point")
    """Mean cosine between the tokens of the stream, over all pairs."""
    stream_gradient: Floats = axes("init wiring seed point")
    """Norm of the loss's gradient with respect to the stream."""
    weight_gradient: Floats = axes("init wiring seed layer")
    """Norm of the loss's gradient with respect to the layer's W_out."""
    depths: tuple[int, ...] = axes("depth")
    """How many layers the stacks below have, the deepest last."""
    input_gradient: Floats = axes("init wiring seed depth")
    """Norm of the gradient that reaches the input."""
    first_gradient: Floats = axes("init wiring seed depth")
    """Norm of the first layer's gradient, with respect to its W_out."""
    last_gradient: Floats = axes("init wiring seed depth")
    """Norm of the last layer's gradient, with respect to its W_out."""
    band_low: Floats = axes("point")
    """What Xiong et al.'s second lemma allows the mean square of the pre-LN stream at least, where
    weights keep sizes: 1 + m l at depth l, m the mean square of the activation's output."""
    band_high: Floats = axes("point")
    """And at most: 1 + (1 + m) l."""

    def came_through(self, init: int, wiring: str) -> float:
        """What reaches the input of the gradient at the last point: median over seeds."""
        gradients = self.stream_gradient[init, self.wirings.index(wiring)]
        return _ratio(gradients[:, 0], gradients[:, -1])

    def trend(self, init: int, wiring: str) -> float:
        """The last layer's gradient in the deepest stack, over that in the shallowest: median."""
        gradients = self.last_gradient[init, self.wirings.index(wiring)]
        return _ratio(gradients[:, -1], gradients[:, 0])

    @property
    def finding(self) -> str:
        """What was found, from the numbers."""
        n = len(self.inits)
        inits = f"{n} initialisation{'s' * (n != 1)}"
        reached = ", ".join(f"{brief(self.came_through(0, w))} ({w})" for w in self.wirings)
        alike = (float(np.median(self.cosine[0, self.wirings.index(w), :, -1])) for w in _ALIKE)
        cosines = ", ".join(f"{value:.2f} ({w})" for w, value in zip(_ALIKE, alike, strict=True))
        return (
            f"From {self.depths[0]} to {self.layers} layers the last layer's gradient changes by a "
            f"factor of {self._factors('pre-LN')} under pre-LN, and falls by more than "
            f"{1 - FALLS:.0%} in {self._falling('pre-LN')} of {inits}; by "
            f"{self._factors('post-LN')} under post-LN, and in {self._falling('post-LN')}. With "
            f"{self.inits[0]} weights the input gets {reached} times the gradient at the end, and "
            f"tokens end with a cosine of {cosines}."
        )

    def _trends(self, wiring: str) -> list[float]:
        return [self.trend(i, wiring) for i in range(len(self.inits))]

    def _factors(self, wiring: str) -> str:
        factors = self._trends(wiring)
        least, most = brief(min(factors)), brief(max(factors))
        return least if least == most else f"{least} to {most}"

    def _falling(self, wiring: str) -> int:
        return sum(factor < FALLS for factor in self._trends(wiring))

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`init`, `wiring`, `seed`, `point`, `layer` and `depth`."""
        return {
            "init": self.inits,
            "wiring": self.wirings,
            "seed": self.seeds,
            "point": self.points,
            "layer": range(self.layers),
            "depth": self.depths,
        }

    def measured(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        return {
            "layers": self.layers,
            "rms": self.rms,
            "cosine": self.cosine,
            "stream_gradient": self.stream_gradient,
            "weight_gradient": self.weight_gradient,
            "input_gradient": self.input_gradient,
            "first_gradient": self.first_gradient,
            "last_gradient": self.last_gradient,
            "band_low": self.band_low,
            "band_high": self.band_high,
            "attention_weights": self.attention_weights,
            "mlp_weights": self.mlp_weights,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every initialisation, wiring, seed and point of the deepest stack."""
        for cell in np.ndindex(self.rms.shape):
            i, j, k, p = cell
            yield {
                "init": self.inits[i],
                "wiring": self.wirings[j],
                "seed": self.seeds[k],
                "point": self.points[p],
                "rms": self.rms[cell],
                "cosine": self.cosine[cell],
                "stream_gradient": self.stream_gradient[cell],
                # The layer behind which the point lies; nothing lies before the input.
                "weight_gradient": self.weight_gradient[i, j, k, p - 1] if p else None,
            }


def _ratio(above: Floats, below: Floats) -> float:
    """The median over seeds of one size over another; NaN where there is none to divide by."""
    ratios = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
    return float(np.median(ratios))
