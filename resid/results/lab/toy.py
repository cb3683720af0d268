"""The result of the five-layer net: the gradient of every layer, with and without shortcuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from resid.axes import axes
from resid.results.lab.result import LabResult, brief
from resid.results.result import Floats

NETS = ("without shortcuts", "with shortcuts")


@dataclass(frozen=True)
class LabToy(LabResult):
    """Mean gradients of a small deep net, and the two rules that explain them."""

    analysis: ClassVar[str] = "lab_toy"
    depth: int
    """How many scalar layers are stacked."""
    activations: tuple[str, ...] = axes("activation")
    """Names of the activation functions, GPT-2's first."""
    layers: tuple[int, ...] = axes("layer")
    """From the input on."""
    gradients: Floats = axes("activation net layer")
    """Mean absolute gradient over the layer's weights; net 0 is without shortcuts, 1 with them."""
    first_gradients: Floats = axes("activation net draw")
    """That of layer 0, for this seed and those that follow."""
    x: Floats = axes("x")
    """Where the slopes below are taken."""
    slope: Floats = axes("activation x")
    """Of the activation function f."""
    slope_shortcut: Floats = axes("activation x")
    """Of x + f(x)."""
    slopes: tuple[float, ...] = axes("slope")
    """Of such a layer f."""
    product: Floats = axes("slope")
    """What of a gradient comes through the stack of f."""
    product_shortcut: Floats = axes("slope")
    """What comes through the stack of x + f(x)."""

    @property
    def factors(self) -> Floats:
        """[activation, draw] by how much shortcuts multiply the gradient of layer 0.

        NaN where there was none without them (ReLU can switch off a whole layer), so that there is
        no factor.
        """
        without, having = self.first_gradients[:, 0], self.first_gradients[:, 1]
        return np.divide(having, without, out=np.full_like(having, np.nan), where=without > 0)

    @property
    def silent(self) -> Floats:
        """[activation, net] the share of draws in which nothing at all reaches layer 0."""
        return np.asarray((self.first_gradients == 0).mean(-1))

    @property
    def finding(self) -> str:
        """What was found, from the numbers."""
        without, having = self.gradients[0, :, 0]
        factors = self.factors[0]
        known = factors[np.isfinite(factors)]
        spread = ""
        if len(known) > 1:
            low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
            spread = (
                f" (over {len(known)} seeds the median factor is {brief(middle)}, the middle half "
                f"{brief(low)} to {brief(high)})"
            )
        return (
            f"Shortcuts take the mean gradient at layer 0 from {brief(without)} to {brief(having)} "
            f"with {self.activations[0]}{spread}; through {self.depth} layers of slope "
            f"{self.slopes[0]} comes {brief(self.product[0])} of a gradient."
        )

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`activation`, `net`, `layer`, `draw` (a seed each), `x` and `slope`."""
        n = self.first_gradients.shape[-1]
        return {
            "activation": self.activations,
            "net": NETS,
            "layer": self.layers,
            "draw": [(self.source.seed or 0) + i for i in range(n)],
            "x": self.x.tolist(),
            "slope": self.slopes,
        }

    def measured(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        return {
            "gradients": self.gradients,
            "first_gradients": self.first_gradients,
            "factors": self.factors,
            "slope": self.slope,
            "slope_shortcut": self.slope_shortcut,
            "depth": self.depth,
            "product": self.product,
            "product_shortcut": self.product_shortcut,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every activation, net and layer."""
        for i, activation in enumerate(self.activations):
            for j, net in enumerate(NETS):
                for k, layer in enumerate(self.layers):
                    yield {
                        "activation": activation,
                        "net": net,
                        "layer": layer,
                        "mean_gradient": self.gradients[i, j, k],
                    }
