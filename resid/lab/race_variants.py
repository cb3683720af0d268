"""The variants that race: each is the base, a small GPT-2, with one thing or several changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from resid.errors import ResidError

Norm = Literal["pre", "post", "none"]
Activation = Literal["gelu", "relu", "swiglu", "linear"]


@dataclass(frozen=True)
class Sizes:
    """What every variant shares; d_model is the base's."""

    layers: int
    d_model: int
    n_heads: int
    context: int
    d_vocab: int


@dataclass(frozen=True)
class Variant:
    """One way to build the block; the defaults are GPT-2's."""

    residual: bool = True
    """Whether a sublayer's output is added to its input or takes its place."""
    norm: Norm = "pre"
    """LayerNorm before each sublayer (and once at the end), after each, or nowhere."""
    expansion: int = 4
    """d_mlp / d_model."""
    equal: bool = False
    """Whether d_model is chosen so that the variant has as many parameters as the base."""
    activation: Activation = "gelu"
    """swiglu has a third matrix; its d_mlp is two thirds, so that parameters stay equal."""

    def widths(self, sizes: Sizes) -> tuple[int, int]:
        """d_model and d_mlp."""
        if not self.equal:
            return sizes.d_model, self._d_mlp(sizes.d_model)
        wanted = count_parameters(dataclasses.replace(self, expansion=4, equal=False), sizes)
        found: list[tuple[float, int, int]] = []
        for d_model in range(sizes.n_heads, 2 * sizes.d_model + 1, sizes.n_heads):
            # The parameters that are left for the MLPs decide how wide these are.
            fixed = self._count(sizes, d_model, 0)
            d_mlp = round((wanted - fixed) / (self._count(sizes, d_model, 1) - fixed))
            if d_mlp > 0:
                off = abs(d_mlp / self._d_mlp(d_model) - 1)
                found.append((off, d_model, d_mlp))
        _, d_model, d_mlp = min(found)
        return d_model, d_mlp

    def _d_mlp(self, d_model: int) -> int:
        share = 2 / 3 if self.activation == "swiglu" else 1
        return round(self.expansion * share * d_model)

    def _count(self, sizes: Sizes, d_model: int, d_mlp: int) -> int:
        return sum(_size(shape) for shape in self._shapes(sizes, d_model, d_mlp).values())

    def shapes(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter by its name, in the order of the forward pass."""
        return self._shapes(sizes, *self.widths(sizes))

    def _shapes(self, sizes: Sizes, d_model: int, d_mlp: int) -> dict[str, tuple[int, ...]]:
        norm: dict[str, tuple[int, ...]] = {"gain": (d_model,), "bias": (d_model,)}
        keys = ("W_gate", "W_in") if self.activation == "swiglu" else ("W_in",)
        block: dict[str, tuple[int, ...]] = {}
        for sublayer in ("attn", "mlp"):
            if self.norm != "none":
                block |= {f"{sublayer}.norm.{name}": shape for name, shape in norm.items()}
            if sublayer == "attn":
                block |= {"attn.W_QKV": (d_model, 3 * d_model), "attn.b_QKV": (3 * d_model,)}
                block |= {"attn.W_O": (d_model, d_model), "attn.b_O": (d_model,)}
            else:
                for name in keys:
                    bias = name.replace("W", "b")
                    block |= {f"mlp.{name}": (d_model, d_mlp), f"mlp.{bias}": (d_mlp,)}
                block |= {"mlp.W_out": (d_mlp, d_model), "mlp.b_out": (d_model,)}
        shapes: dict[str, tuple[int, ...]] = {
            "W_E": (sizes.d_vocab, d_model),
            "W_pos": (sizes.context, d_model),
        }
        for layer in range(sizes.layers):
            shapes |= {f"{layer}.{name}": shape for name, shape in block.items()}
        if self.norm == "pre":
            shapes |= {f"final.norm.{name}": shape for name, shape in norm.items()}
        return shapes | {"W_U": (d_model, sizes.d_vocab)}


CHANGES: dict[str, dict[str, Any]] = {
    "base": {},
    "no-residual": {"residual": False},
    "post-ln": {"norm": "post"},
    "no-norm": {"norm": "none"},
    "2x": {"expansion": 2},
    "8x": {"expansion": 8},
    "2x-equal": {"expansion": 2, "equal": True},
    "8x-equal": {"expansion": 8, "equal": True},
    "relu": {"activation": "relu"},
    "swiglu": {"activation": "swiglu"},
    "linear": {"activation": "linear"},
}
"""By name, what is not as in the base. Names joined by + make one variant."""

ALL = (
    "base",
    "no-residual",
    "post-ln",
    "no-norm",
    "no-residual+no-norm",
    *list(CHANGES)[4:],
)
"""The variants that race unless others are named."""


@dataclass(frozen=True)
class Entry:
    """A variant on the start line."""

    name: str
    """As it was asked for, in one spelling."""
    label: str
    """The name, with a number where the same variant was named before."""
    variant: Variant
    seeds: tuple[int, ...]


def parse_variant(text: str) -> tuple[str, Variant]:
    """A variant's name in one spelling, and the variant: "8x", or "post-ln+relu".

    Raises:
        ResidError: there is no such change, or two of them contradict each other.
    """
    parts = [part.strip() for part in text.split("+")]
    for part in parts:
        if part not in CHANGES:
            raise ResidError(
                f"there is no variant '{part}'; choose from {', '.join(CHANGES)},\n"
                "or join several with +, as in post-ln+relu"
            )
    changes: dict[str, Any] = {}
    for part in parts:
        for field, value in CHANGES[part].items():
            if field in changes:
                raise ResidError(f"'{text}' changes {field} twice; leave one of the two out")
            changes[field] = value
    # Whatever order it is asked for in, it is the same variant under the same name.
    named = [name for name in CHANGES if name in parts and name != "base"]
    return "+".join(named) or "base", Variant(**changes)


def line_up(names: Sequence[str], seeds: int, first: int) -> tuple[Entry, ...]:
    """The variants with the seeds that each runs under.

    All share the seeds `first`, `first` + 1, ...; a variant that is named once more gets the next
    ones, so that it differs from itself in nothing but its seeds.

    Args:
        names: for example ("base", "8x", "post-ln+relu").
        seeds: how many runs each gets.
        first: the first seed.

    Raises:
        ResidError: a name is none, or nothing was named.
    """
    if not names:
        raise ResidError(f"no variant was named; choose from {', '.join(CHANGES)}")
    entries: list[Entry] = []
    for text in names:
        name, variant = parse_variant(text)
        before = sum(entry.name == name for entry in entries)
        label = f"{name} ({before + 1})" if before else name
        start = first + before * seeds
        entries.append(Entry(name, label, variant, tuple(range(start, start + seeds))))
    return tuple(entries)


def count_parameters(variant: Variant, sizes: Sizes) -> int:
    """How many numbers the variant learns."""
    return sum(map(_size, variant.shapes(sizes).values()))


def _size(shape: tuple[int, ...]) -> int:
    product = 1
    for length in shape:
        product *= length
    return product
