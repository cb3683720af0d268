"""The result of counting parameters: of one model, and of several side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from resid.axes import axes
from resid.results.result import ModelResult

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes a parameter takes in the formats that a model can be loaded in."""


@dataclass(frozen=True)
class Block:
    """The parameters of one block."""

    layer: int
    attention_weights: int
    attention_biases: int
    mlp_weights: int
    mlp_biases: int
    norms: int
    """Gains and biases of every LayerNorm in the block."""
    cross_attention: int

    @property
    def attention(self) -> int:
        """Weights and biases of self-attention."""
        return self.attention_weights + self.attention_biases

    @property
    def mlp(self) -> int:
        """Weights and biases of the MLP."""
        return self.mlp_weights + self.mlp_biases

    @property
    def total(self) -> int:
        """All of them."""
        return self.attention + self.mlp + self.norms + self.cross_attention

    def data(self) -> dict[str, int]:
        """The block as JSON's `blocks` hold it."""
        return {
            "layer": self.layer,
            "attention_weights": self.attention_weights,
            "attention_biases": self.attention_biases,
            "attention": self.attention,
            "mlp_weights": self.mlp_weights,
            "mlp_biases": self.mlp_biases,
            "mlp": self.mlp,
            "norms": self.norms,
            "cross_attention": self.cross_attention,
            "total": self.total,
        }


@dataclass(frozen=True)
class Flops:
    """Floating-point operations of one forward pass, for each token of it."""

    length: int
    """Tokens of the pass; every one attends to all of them."""
    blocks: int
    """Matrix products with the blocks' weights."""
    attention_mix: int
    """Scores between positions, and the values mixed by them."""
    unembedding: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.blocks + self.attention_mix + self.unembedding

    def data(self) -> dict[str, int]:
        """As JSON's `flops_per_token` holds them."""
        return {
            "length": self.length,
            "blocks": self.blocks,
            "attention_mix": self.attention_mix,
            "unembedding": self.unembedding,
            "total": self.total,
        }


@dataclass(frozen=True)
class ParamCount(ModelResult):
    """The distinct parameters of a model, each in exactly one part."""

    analysis: ClassVar[str] = "param_count"
    counted_from: str
    """Where names and shapes of the parameters come from, in words."""
    token_embedding: int
    position_embedding: int
    ln_final: int
    unembedding: int
    """0 where it is the token embedding once more, and where there is none."""
    unembedding_tied: bool
    """Whether it is the token embedding once more."""
    other_parts: Mapping[str, int]
    """What is no part of a GPT-2, by name: adapters, a value head, a classifier."""
    dtypes: Mapping[str, int]
    """Number format: parameters that are stored in it."""
    n_ctx: int
    """Positions that the model can read."""
    flops_per_token: Flops
    blocks: tuple[Block, ...] = axes("layer")

    @property
    def other(self) -> int:
        """All that is no part of a GPT-2."""
        return sum(self.other_parts.values())

    @property
    def parts(self) -> dict[str, int]:
        """The whole model by kind of part, in the order of a forward pass; sums to `total`."""
        return {
            "token_embedding": self.token_embedding,
            "position_embedding": self.position_embedding,
            "attention": sum(block.attention for block in self.blocks),
            "cross_attention": sum(block.cross_attention for block in self.blocks),
            "mlp": sum(block.mlp for block in self.blocks),
            "norms": sum(block.norms for block in self.blocks),
            "ln_final": self.ln_final,
            "unembedding": self.unembedding,
            "other": self.other,
        }

    @property
    def total(self) -> int:
        """The number of distinct parameters."""
        return sum(self.parts.values())

    @property
    def shares(self) -> dict[str, float]:
        """Each of `parts` as a fraction of the total."""
        return {name: _ratio(number, self.total) for name, number in self.parts.items()}

    @property
    def mlp_to_attention(self) -> float:
        """The blocks' MLP parameters for each attention parameter, biases included."""
        return _ratio(self.parts["mlp"], self.parts["attention"])

    @property
    def mlp_to_attention_weights(self) -> float:
        """The same without the biases: exactly 2 where the MLP is four times as wide as the model.

        That is 8 d^2 weights to 4 d^2.
        """
        return _ratio(
            sum(block.mlp_weights for block in self.blocks),
            sum(block.attention_weights for block in self.blocks),
        )

    @property
    def bytes(self) -> dict[str, int]:
        """Number format: bytes that all parameters take in it."""
        return {dtype: width * self.total for dtype, width in BYTES.items()}

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`layer`."""
        return {"layer": [block.layer for block in self.blocks]}

    def data(self) -> dict[str, Any]:
        """The counts under the names that JSON's `data` has for them."""
        return {
            "counted_from": self.counted_from,
            "blocks": [block.data() for block in self.blocks],
            "token_embedding": self.token_embedding,
            "position_embedding": self.position_embedding,
            "ln_final": self.ln_final,
            "unembedding": self.unembedding,
            "unembedding_tied": self.unembedding_tied,
            "other": self.other,
            "other_parts": self.other_parts,
            "total": self.total,
            "mlp_to_attention": self.mlp_to_attention,
            "mlp_to_attention_weights": self.mlp_to_attention_weights,
            "parts": self.parts,
            "shares": self.shares,
            "dtypes": self.dtypes,
            "bytes": self.bytes,
            "n_ctx": self.n_ctx,
            "flops_per_token": self.flops_per_token.data(),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every part of every block and of the rest; they sum to the total."""
        yield self._row("token_embedding", None, self.token_embedding)
        yield self._row("position_embedding", None, self.position_embedding)
        for block in self.blocks:
            for part, number in block.data().items():
                if part not in ("layer", "attention", "mlp", "total"):
                    yield self._row(part, block.layer, number)
        yield self._row("ln_final", None, self.ln_final)
        yield self._row("unembedding", None, self.unembedding)
        for name, number in self.other_parts.items():
            yield self._row(f"other: {name}", None, number)

    def _row(self, part: str, layer: int | None, number: int) -> dict[str, Any]:
        share = _ratio(number, self.total)
        model = self.source.model
        return {"model": model, "layer": layer, "part": part, "parameters": number, "share": share}


@dataclass(frozen=True)
class ParamComparison(ModelResult):
    """The parameters of several models, to be shown side by side.

    `source` is the first model's; each count has its own.
    """

    analysis: ClassVar[str] = "param_count"
    counts: tuple[ParamCount, ...]

    @classmethod
    def of(cls, counts: Sequence[ParamCount]) -> ParamComparison:
        """The counts together, with the checks of them all, what they agree on once."""
        checks = dict.fromkeys(check for count in counts for check in count.checks)
        return cls(counts[0].source, tuple(checks), tuple(counts))

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of every model, in turn."""
        for count in self.counts:
            yield from count.rows()


def _ratio(number: int, of: int) -> float:
    return number / of if of else math.nan
