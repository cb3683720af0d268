"""The parameter count: every distinct parameter of a model in exactly one part."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from typing import Any

from resid import layout
from resid.errors import ResidError
from resid.headers import Tensor
from resid.layout import EMBEDDING, HEAD, POSITIONS
from resid.readings import parameters
from resid.readings.parameters import Parameters
from resid.results import Block, Check, Flops, ParamCount, Source


def param_count(
    model: Any = "gpt2", *, revision: str | None = None, length: int | None = None
) -> ParamCount:
    """How many parameters a model has, and in which of its parts they are.

    Sources, cheapest first: a published name is counted by arithmetic, without network and without
    torch; a folder or a hub name from config.json and the headers of its weight files, without
    reading a weight; a model in memory from its parameters. A tied unembedding is counted once,
    with the token embedding; the causal masks that old checkpoints hold are not counted.

    Args:
        model: distilgpt2, gpt2, gpt2-medium, gpt2-large, gpt2-xl, "mini", a folder, another name on
            the hub, a Hugging Face model in memory (on the meta device too), or a `Model`.
        revision: of a model from the hub, a branch, tag or commit; its files are asked, also for a
            published name.
        length: tokens in the forward pass for which operations are counted; None: all that the
            model can read.

    Returns:
        ParamCount, all in exact integers. Operations count a multiplication and an addition as 2,
        in matrix products only, every token attending to all: 2 x the blocks' matrices +
        4 n_layers length d_model + 2 d_vocab d_model for each token. Cross-attention, which
        depends on the length of something else, is left out of the operations.

    Raises:
        ResidError: the model is not to be had, is no GPT-2, is not whole, its weights are packed,
            or the length is more than it can read.
    """
    return count(parameters.find(model, revision), length)


def count(found: Parameters, length: int | None = None) -> ParamCount:
    """The count of parameters whose names and shapes are at hand; see `param_count`."""
    parts, blocks, others, dtypes = _sum_up(found.tensors)
    shapes = {tensor.name: tensor.shape for tensor in found.tensors}
    lacking = layout.lacking(shapes)
    if lacking:
        has = ", ".join(layout.BASE)
        raise ResidError(f"the model lacks {', '.join(lacking)}; a GPT-2 has {has}")
    n_ctx, d_model = shapes[POSITIONS]
    length = n_ctx if length is None else length
    if not 1 <= length <= n_ctx:
        raise ResidError(f"the length is {length}; {found.name} reads 1 to {n_ctx} tokens")
    head = shapes.get(HEAD)
    matrices = sum(block.attention_weights + block.mlp_weights for block in blocks)
    storages = {tensor.name: tensor.storage for tensor in found.tensors}
    result = ParamCount(
        source=_source(found, len(blocks), d_model, (head or shapes[EMBEDDING])[0], dtypes),
        checks=(),
        counted_from=found.words,
        blocks=blocks,
        token_embedding=parts["token_embedding"],
        position_embedding=parts["position_embedding"],
        ln_final=parts["ln_final"],
        unembedding=parts["unembedding"],
        unembedding_tied=head is not None and storages[HEAD] == storages[EMBEDDING],
        other_parts=others,
        dtypes=dtypes,
        n_ctx=n_ctx,
        flops_per_token=Flops(
            length,
            2 * matrices,
            4 * len(blocks) * length * d_model,
            2 * head[0] * head[1] if head else 0,
        ),
    )
    return replace(result, checks=(_parts_add_up(result, found.expected),))


def _sum_up(
    tensors: tuple[Tensor, ...],
) -> tuple[Counter[str], tuple[Block, ...], dict[str, int], dict[str, int]]:
    """The sizes of all that is distinct: by part, by block, by other part, by number format."""
    parts: Counter[str] = Counter()
    blocks: dict[int, Counter[str]] = {}
    others: Counter[str] = Counter()
    dtypes: Counter[str] = Counter()
    seen = set()
    for tensor in tensors:
        part, layer = layout.part_of(tensor.name)
        within = parts if layer is None else blocks.setdefault(layer, Counter())
        if tensor.storage in seen:
            continue
        seen.add(tensor.storage)
        dtypes[tensor.dtype] += tensor.size
        if part in (layout.OTHER, layout.MASK):
            others[layout.group_of(tensor.name)] += tensor.size
        else:
            within[part] += tensor.size
    listed = tuple(_block(layer, blocks[layer]) for layer in sorted(blocks))
    return parts, listed, dict(others), dict(dtypes)


def _block(layer: int, sizes: Counter[str]) -> Block:
    return Block(
        layer=layer,
        attention_weights=sizes["attention_weights"],
        attention_biases=sizes["attention_biases"],
        mlp_weights=sizes["mlp_weights"],
        mlp_biases=sizes["mlp_biases"],
        norms=sizes["norms"],
        cross_attention=sizes["cross_attention"],
    )


def _parts_add_up(result: ParamCount, distinct: int) -> Check:
    error = abs(result.total - distinct)
    where = f"{result.total:,} in parts, {distinct:,} distinct"
    return Check("parts_add_up", float(error), 0.0, error == 0, where if error else None)


def _source(
    found: Parameters, n_layers: int, d_model: int, d_vocab: int, dtypes: dict[str, int]
) -> Source:
    import numpy

    from resid import __version__

    # torch and transformers took part only where they hold the model.
    versions = {"resid": __version__, "numpy": numpy.__version__}
    if found.device != "none":
        for name in ("torch", "transformers"):
            if name in sys.modules:
                versions[name] = sys.modules[name].__version__
    return Source(
        model=found.name,
        revision=found.revision,
        n_layers=n_layers,
        d_model=d_model,
        d_vocab=d_vocab,
        dtype=max(dtypes, key=lambda dtype: dtypes[dtype]),
        device=found.device,
        prompt=None,
        ids=(),
        tokens=(),
        versions=versions,
    )
