"""The parts of a model in words, and their numbers as tables and figures write them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from resid.render.words import NOT_FINITE
from resid.results import Block, ParamComparison, ParamCount

NAMES = {
    "token_embedding": "token embedding",
    "position_embedding": "position embedding",
    "attention": "attention",
    "cross_attention": "cross-attention",
    "mlp": "MLP",
    "norms": "norms",
    "ln_final": "ln_final",
    "unembedding": "unembedding",
    "other": "other",
}
"""Every part that a result counts, in the order of a forward pass."""
WITHIN_BLOCKS = ("attention", "cross_attention", "mlp", "norms")

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))


def counts_of(result: ParamCount | ParamComparison) -> tuple[ParamCount, ...]:
    """The counts that a result holds, one a model."""
    return result.counts if isinstance(result, ParamComparison) else (result,)


def present(counts: Sequence[ParamCount]) -> list[str]:
    """The parts that any of the models has; those that a plain GPT-2 has are always named."""
    plain = {*NAMES} - {"cross_attention", "other"}
    return [name for name in NAMES if name in plain or any(c.parts[name] for c in counts)]


def runs(blocks: Sequence[Block]) -> Iterator[tuple[str, Block]]:
    """Neighbouring blocks of the same sizes, as one, with words for which they are."""
    start = 0
    for i, block in enumerate(blocks):
        following = blocks[i + 1] if i + 1 < len(blocks) else None
        if following is None or _sizes(following) != _sizes(block):
            first = blocks[start].layer
            yield (str(first) if start == i else f"{first}-{block.layer} (each)"), block
            start = i + 1


def _sizes(block: Block) -> dict[str, int]:
    return block.data() | {"layer": 0}


def share(value: float, digits: int = 2) -> str:
    """A fraction in percent; what is there never reads as nothing."""
    if not math.isfinite(value):
        return NOT_FINITE
    least = 10.0**-digits
    return f"<{least:g}%" if 0 < 100 * value < least else f"{100 * value:.{digits}f}%"


def ratio(value: float) -> str:
    """A ratio with as many digits as tell 1.999 from 2."""
    return f"{value:.7g}" if math.isfinite(value) else NOT_FINITE


def size(n_bytes: int) -> str:
    """Bytes in a decimal unit: 497.8 MB."""
    scale, unit = next(((s, u) for s, u in _UNITS if n_bytes >= s), _UNITS[-1])
    return f"{n_bytes / scale:,.4g} {unit}"


def unembedding(count: ParamCount) -> str:
    """The number of the unembedding's own parameters, or why there are none."""
    if count.unembedding:
        return f"{count.unembedding:,}"
    return "tied" if count.unembedding_tied else "none"


def dimensions(count: ParamCount) -> dict[str, int]:
    """What the counts follow from."""
    source = count.source
    return {
        "blocks": source.n_layers,
        "d_model": source.d_model,
        "d_vocab": source.d_vocab,
        "n_ctx": count.n_ctx,
    }


def origins(counts: Sequence[ParamCount]) -> list[str]:
    """Where the numbers come from, a sentence for each origin."""
    words = dict.fromkeys(count.counted_from for count in counts)
    if len(words) == 1:
        return [f"counted from {next(iter(words))}"]
    return [
        ", ".join(c.source.model for c in counts if c.counted_from == origin)
        + f": counted from {origin}"
        for origin in words
    ]
