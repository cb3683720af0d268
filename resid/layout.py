"""How a checkpoint of a GPT-2 names its tensors, what shapes they have, and what each is part of.

Knows no framework: the parameters of a model can be counted before torch is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from resid.errors import ResidError, brief

Shape = tuple[int, ...]

MASK = "mask"
OTHER = "other"
HEAD = "lm_head.weight"
EMBEDDING = "wte.weight"
POSITIONS = "wpe.weight"
BASE = ("wte", "wpe", "h", "ln_f")

# The published models: blocks, width and heads. The rest is the same for all of them.
KNOWN = {
    "distilgpt2": (6, 768, 12),
    "gpt2": (12, 768, 12),
    "gpt2-medium": (24, 1024, 16),
    "gpt2-large": (36, 1280, 20),
    "gpt2-xl": (48, 1600, 25),
}
# Configuration field, its other spelling, and its value where a configuration leaves it out.
_FIELDS = (
    ("n_layer", "num_hidden_layers", 12),
    ("n_head", "num_attention_heads", 12),
    ("n_embd", "hidden_size", 768),
    ("vocab_size", "vocab_size", 50257),
    ("n_positions", "max_position_embeddings", 1024),
)
# Far above any model, and still few enough to be listed.
_MOST_BLOCKS = 10_000
# What these were saved from has no unembedding unless the checkpoint itself holds one.
_HEADLESS = (
    "GPT2Model",
    "GPT2ForSequenceClassification",
    "GPT2ForTokenClassification",
    "GPT2ForQuestionAnswering",
)
_BLOCK = r"h\.(0|[1-9][0-9]{0,8})"
_PARTS = (
    (MASK, rf"{_BLOCK}\.(?:attn|crossattention)\.(?:bias|masked_bias)"),
    ("attention_weights", rf"{_BLOCK}\.attn\.(?:c_attn|c_proj)\.weight"),
    ("attention_biases", rf"{_BLOCK}\.attn\.(?:c_attn|c_proj)\.bias"),
    ("mlp_weights", rf"{_BLOCK}\.mlp\.(?:c_fc|c_proj)\.weight"),
    ("mlp_biases", rf"{_BLOCK}\.mlp\.(?:c_fc|c_proj)\.bias"),
    ("norms", rf"{_BLOCK}\.(?:ln_1|ln_2|ln_cross_attn)\.(?:weight|bias)"),
    ("cross_attention", rf"{_BLOCK}\.crossattention\.(?:c_attn|q_attn|c_proj)\.(?:weight|bias)"),
    ("token_embedding", r"wte\.weight"),
    ("position_embedding", r"wpe\.weight"),
    ("ln_final", r"ln_f\.(?:weight|bias)"),
    ("unembedding", r"lm_head\.(?:weight|bias)"),
)
# Adapter libraries put the layer that they wrap one name deeper.
_WRAPPED = re.compile(r"\.(?:base_layer|original_module)(?=\.)")
_INSIDE_BLOCK = re.compile(r"h\.\d+\.(?:(?:attn|mlp|crossattention)\.(?:[cq]_\w+\.)?)?")


@dataclass(frozen=True)
class Sizes:
    """All that decides which tensors a GPT-2 has and how large they are."""

    n_layers: int
    n_heads: int
    d_model: int
    d_mlp: int
    d_vocab: int
    n_ctx: int
    cross_attention: bool = False
    tied: bool = True
    """Whether the configuration lets the unembedding share the token embedding's storage."""
    has_head: bool = True
    """Whether there is an unembedding at all."""

    @classmethod
    def from_config(cls, fields: Mapping[str, Any], where: object) -> Sizes:
        """The sizes that the fields of a config.json give.

        Args:
            fields: what the file holds.
            where: the file, for the message.

        Raises:
            ResidError: it is of another architecture, quantized, or its values make no GPT-2.
        """
        _refuse_others(fields, where)
        layers, heads, width, vocabulary, context = (
            _whole_number(fields, *field, where) for field in _FIELDS
        )
        if layers > _MOST_BLOCKS:
            told = f"n_layer is {brief(layers)}; no file holds that many blocks"
            raise ResidError(f"{where}: {told}")
        if width % heads:
            told = f"n_embd is {brief(width)}, which {brief(heads)} heads cannot share"
            raise ResidError(f"{where}: {told}")
        inner = fields.get("n_inner")
        mlp = 4 * width if inner is None else _whole_number(fields, "n_inner", "n_inner", 0, where)
        tied = bool(fields.get("tie_word_embeddings", True))
        architectures = fields.get("architectures")
        saved_as = architectures[0] if isinstance(architectures, list) and architectures else ""
        # The blocks alone, but tied: whoever loads them gets the embedding as the unembedding.
        has_head = saved_as not in _HEADLESS or (saved_as == "GPT2Model" and tied)
        cross = bool(fields.get("add_cross_attention", False))
        return cls(layers, heads, width, mlp, vocabulary, context, cross, tied, has_head)

    def total(self) -> int:
        """The number of distinct parameters, by the closed formula.

        Source: 12 d^2 + 13 d for the usual block of width d, whose MLP is 4 d wide: attention
        4 d^2 + 4 d, MLP 8 d^2 + 5 d, two norms 4 d.
        """
        d, inner = self.d_model, self.d_mlp
        block = 4 * d * d + 4 * d + 2 * d * inner + inner + d + 4 * d
        if self.cross_attention:
            block += 4 * d * d + 4 * d + 2 * d
        untied = self.d_vocab * d if self.has_head and not self.tied else 0
        return (self.d_vocab + self.n_ctx) * d + self.n_layers * block + 2 * d + untied

    def shapes(self) -> dict[str, Shape]:
        """Every tensor by its name, the unembedding too where it is the embedding."""
        d = self.d_model
        found: dict[str, Shape] = {EMBEDDING: (self.d_vocab, d), POSITIONS: (self.n_ctx, d)}
        block = self._block_shapes()
        for layer in range(self.n_layers):
            found |= {f"h.{layer}.{name}": shape for name, shape in block.items()}
        found |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
        return found | ({HEAD: (self.d_vocab, d)} if self.has_head else {})

    def _block_shapes(self) -> dict[str, Shape]:
        d, inner = self.d_model, self.d_mlp
        linear = {  # Stored [in, out].
            "attn.c_attn": (d, 3 * d),
            "attn.c_proj": (d, d),
            "mlp.c_fc": (d, inner),
            "mlp.c_proj": (inner, d),
        }
        norms = ["ln_1", "ln_2"]
        if self.cross_attention:
            linear |= {
                "crossattention.c_attn": (d, 2 * d),
                "crossattention.q_attn": (d, d),
                "crossattention.c_proj": (d, d),
            }
            norms.append("ln_cross_attn")
        found: dict[str, Shape] = {}
        for name, shape in linear.items():
            found |= {f"{name}.weight": shape, f"{name}.bias": shape[1:]}
        for name in norms:
            found |= {f"{name}.weight": (d,), f"{name}.bias": (d,)}
        return found


def known(name: str) -> Sizes | None:
    """The sizes of a published model by its name on the hub, short or in full; else None."""
    for short, (n_layers, d_model, n_heads) in KNOWN.items():
        owner = "distilbert" if short == "distilgpt2" else "openai-community"
        if name in (short, f"{owner}/{short}"):
            return Sizes(n_layers, n_heads, d_model, 4 * d_model, 50257, 1024)
    return None


def lacking(names: Iterable[str]) -> list[str]:
    """Those of a GPT-2's parts of which there is nothing among plain names."""
    there = {name.split(".")[0] for name in names}
    return [part for part in BASE if part not in there]


def part_of(name: str) -> tuple[str, int | None]:
    """What a tensor is part of, and of which block; its name as `plain_names` gives it."""
    for part, pattern in _PARTS:
        match = re.fullmatch(pattern, name)
        if match:
            return part, int(match[1]) if match.lastindex else None
    return OTHER, None


def group_of(name: str) -> str:
    """A short name for what is no part of a GPT-2: score, v_head, lora_A."""
    return (_INSIDE_BLOCK.sub("", name) or name).split(".")[0]


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """Every name without what wrappers put around it: "h.0.mlp.c_fc.weight", "lm_head.weight".

    Raises:
        ResidError: there is no token embedding, so that this is no GPT-2.
    """
    unwrapped = {name: _WRAPPED.sub("", name) for name in names}
    ends = [name for name in unwrapped.values() if f".{name}".endswith(f".{EMBEDDING}")]
    if not ends:
        raise ResidError(f"there is no {EMBEDDING}; a GPT-2 has {', '.join(BASE)}")
    around = min(ends, key=len).removesuffix(EMBEDDING)
    # The head, and whatever else was put on top, lies beside the blocks and their embeddings.
    beside = around.removesuffix("transformer.")
    return {
        name: text.removeprefix(around if text.startswith(around) else beside)
        for name, text in unwrapped.items()
    }


def _refuse_others(fields: Mapping[str, Any], where: object) -> None:
    kind = fields.get("model_type")
    if kind != "gpt2":
        told = f"got {brief(kind)}" if kind else "it has no model_type"
        raise ResidError(f"{where}: resid reads gpt2 models; {told}")
    if fields.get("quantization_config"):
        raise ResidError(f"{where}: the weights are quantized; resid reads floating-point weights")


def _whole_number(
    fields: Mapping[str, Any], name: str, alias: str, default: int, where: object
) -> int:
    value = fields.get(name, fields.get(alias, default))
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ResidError(f"{where}: {name} is {brief(value)}, not a whole number above 0")
    other = fields.get(alias)
    if other is not None and other != value:
        # Which of the two holds depends on who reads it.
        raise ResidError(f"{where}: {name} is {brief(value)}, and {alias} is {brief(other)}")
    return value
