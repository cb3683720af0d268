"""The result of measuring activation functions: their curves, and what they let through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from resid.axes import axes
from resid.results.lab.result import LabResult, brief
from resid.results.result import Floats, Ints

FLAT = 0.01
"""A slope smaller than this in size lets next to no gradient through."""


@dataclass(frozen=True)
class ActivationsInModel:
    """What the functions do at a model's own pre-activations on one prompt.

    In a layer where an activation is not finite all shares are NaN.
    """

    positions: int
    """How many there were."""
    d_mlp: int
    """Neurons a layer."""
    own: int | None
    """Index of the function that the model has: the one that gives its coefficients; None where
    none of them does, or an activation is not finite."""
    close: float
    """How far from the coefficients a function may be to be the model's own."""
    layers: tuple[int, ...] = axes("layer")
    errors: Floats = axes("function")
    """Largest difference between the function and the model's coefficients."""
    off: Floats = axes("layer")
    """Share of pre-activations at or below 0."""
    off_neurons: Ints = axes("layer")
    """How many neurons have a pre-activation at or below 0 at every position of the prompt."""
    zero: Floats = axes("function layer")
    """Share of the pre-activations at which the function is exactly 0."""
    no_slope: Floats = axes("function layer")
    """Share at which its slope is exactly 0."""
    flat: Floats = axes("function layer")
    """Share at which its slope is below FLAT in size."""

    @property
    def off_throughout(self) -> Floats:
        """[layer] the share of neurons that are off for the whole prompt."""
        return self.off_neurons / self.d_mlp


@dataclass(frozen=True)
class LabActivations(LabResult):
    """Activation functions side by side."""

    analysis: ClassVar[str] = "lab_activations"
    inside: ActivationsInModel | None
    """The same at a model's pre-activations, where there was a model."""
    functions: tuple[str, ...] = axes("function")
    hugging_face: tuple[str, ...] = axes("function")
    """Hugging Face's names for them."""
    x: Floats = axes("x")
    value: Floats = axes("function x")
    slope: Floats = axes("function x")
    minimum_at: Floats = axes("function")
    """Where the function is lowest; NaN where it is so at more than one place."""
    minimum: Floats = axes("function")
    steepest_at: Floats = axes("function")
    """Where the slope is largest; NaN where it is so at more than one place."""
    steepest: Floats = axes("function")
    normal_mean: Floats = axes("function")
    """Mean value for standard normal inputs."""
    normal_square: Floats = axes("function")
    """Mean squared value."""
    normal_zero: Floats = axes("function")
    """Share of standard normal inputs whose value is exactly 0."""
    normal_no_slope: Floats = axes("function")
    """Share whose slope is exactly 0."""
    normal_flat: Floats = axes("function")
    """Share whose slope is below FLAT in size."""
    first: tuple[int, ...] = axes("extreme")
    """Index of one function of a pair."""
    second: tuple[int, ...] = axes("extreme")
    apart_at: Floats = axes("extreme")
    """The x >= 0 at which the two differ most, the largest of a pair first; -x is another."""
    apart: Floats = axes("extreme")
    """`first` minus `second` there."""

    def furthest(self) -> Iterator[int]:
        """Indices along `extreme`: of each pair of functions, where they are furthest apart."""
        seen: set[tuple[int, int]] = set()
        for i, pair in enumerate(zip(self.first, self.second, strict=True)):
            if pair not in seen:
                seen.add(pair)
                yield i

    @property
    def finding(self) -> str:
        """What ReLU cuts off, what GELU leaves, and how near the tanh form comes."""
        relu, exact, bent = (self.functions.index(f) for f in ("ReLU", "GELU", "tanh GELU"))
        pairs = list(zip(self.first, self.second, strict=True))
        i = pairs.index((bent, exact))
        parts = [
            f"of standard normal inputs, {_percent(self.normal_no_slope[relu])} get no gradient "
            f"through ReLU and {_percent(self.normal_no_slope[exact])} through GELU "
            f"({_percent(self.normal_flat[exact])} a slope below {FLAT})",
            f"where the tanh form is furthest from GELU, at x = ±{self.apart_at[i]:.2f}, "
            f"they are {brief(abs(self.apart[i]))} apart",
        ]
        if self.inside is not None:
            inside = self.inside
            share = inside.off_neurons.sum() / (inside.d_mlp * len(inside.layers))
            most = int(inside.off_neurons.argmax())
            parts.append(
                f"in {self.source.subject}, {_percent(share)} of the neurons stay at or below 0 "
                f"through the whole prompt, most of them in layer {inside.layers[most]} "
                f"({_percent(inside.off_throughout[most])})"
            )
        joined = "; ".join(parts)
        return f"{joined[0].upper()}{joined[1:]}."

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`function` and `x`; with a model also `layer`."""
        labels: dict[str, Sequence[Any]] = {"function": self.functions, "x": self.x.tolist()}
        return labels | ({} if self.inside is None else {"layer": self.inside.layers})

    def measured(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        names = ("hugging_face", "value", "slope", "minimum_at", "minimum", "steepest_at")
        normal = ("mean", "square", "zero", "no_slope", "flat")
        return {name: getattr(self, name) for name in (*names, "steepest")} | {
            "flat_below": FLAT,
            "normal": {name: getattr(self, f"normal_{name}") for name in normal},
            "differences": [
                {
                    "first": self.functions[a],
                    "second": self.functions[b],
                    "at": self.apart_at[i],
                    "difference": self.apart[i],
                }
                for i, (a, b) in enumerate(zip(self.first, self.second, strict=True))
            ],
            "model": None if self.inside is None else self._inside(self.inside),
        }

    def _inside(self, inside: ActivationsInModel) -> dict[str, Any]:
        names = ("positions", "d_mlp", "errors", "off", "off_neurons", "off_throughout")
        own = None if inside.own is None else self.functions[inside.own]
        return {"own": own} | {
            name: getattr(inside, name) for name in (*names, "zero", "no_slope", "flat")
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every x: the value and the slope of every function there."""
        for i, x in enumerate(self.x):
            row: dict[str, Any] = {"x": x}
            for name, value, slope in zip(self.hugging_face, self.value, self.slope, strict=True):
                row |= {name: value[i], f"{name}_slope": slope[i]}
            yield row


def _percent(share: float) -> str:
    """A share in a sentence: 50%, 0.4%, 0%."""
    if 0 < share < 0.0005:
        return "less than 0.1%"
    return f"{100 * np.round(share, 3):.3g}%"
