"""What a model is verified on where nobody gave a prompt."""

from __future__ import annotations

import torch

from resid.model import Model

_TEXTS = (
    "The capital of France is",
    "When Mary and John went to the store, John gave a drink to",
    "2, 4, 8, 16,",
)
# For a model without a tokenizer: how many ids, and where they are drawn from.
_LENGTHS, _SEED = (5, 13, 9), 0


def built_in(model: Model) -> list[tuple[str | None, list[int]]]:
    """(text, ids) of a few prompts of unequal length, cut to what the model can read.

    Drawn ids come from a fixed seed and have no text, nor has a text that had to be cut.
    """
    if model.vocabulary.tokenizer is None:
        generator = torch.Generator().manual_seed(_SEED)
        return [
            (None, torch.randint(model.n_embeddings, (n,), generator=generator).tolist())
            for n in (min(length, model.n_ctx) for length in _LENGTHS)
        ]
    found: list[tuple[str | None, list[int]]] = []
    for text in _TEXTS:
        ids = model.vocabulary.encode(text)
        whole = len(ids) <= model.n_ctx
        found.append((text if whole else None, model.encode(ids[: model.n_ctx])))
    return found
