"""What a run depends on, as hashes: whoever goes on with it or merges it must have the same."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch

from resid.errors import ResidError
from resid.model import Model

# Letters, contractions, digits, spaces, line breaks, other scripts: what tokenizers differ in.
_PROBE = "The  quick brown fox can't have jumped 1234 times;\n\n\tétait là, 日本 🤗 <|endoftext|>"


def describe_model(model: Model) -> dict[str, Any]:
    """The model as a run remembers it: hashes of weights and tokenizer, and how it computes."""
    config = model.hf.config
    names = (
        "n_head",
        "activation_function",
        "layer_norm_epsilon",
        "scale_attn_weights",
        "scale_attn_by_inverse_layer_idx",
        "reorder_and_upcast_attn",
    )
    return {
        "weights": hash_weights(model),
        "tokenizer": _hash_tokenizer(model),
        "configuration": {name: getattr(config, name, None) for name in names}
        | {"bos_token": _bos_id(model)},
        "dtype": str(model.dtype).removeprefix("torch."),
    }


def _bos_id(model: Model) -> int | None:
    try:
        return model.bos_id()
    except ResidError:
        return None  # It has none, and none can be put in front.


def hash_weights(model: Model) -> str:
    """SHA-256 over every parameter's name, shape, number format and bytes."""
    digest = hashlib.sha256()
    for name, parameter in sorted(model.hf.named_parameters()):
        kind = str(parameter.dtype).removeprefix("torch.")
        digest.update(f"{name} {kind} {list(parameter.shape)}\n".encode())
        plain = parameter.detach().cpu().contiguous().view(torch.uint8)
        digest.update(plain.numpy())
    return digest.hexdigest()


def _hash_tokenizer(model: Model) -> str | None:
    tokenizer = model.vocabulary.tokenizer
    if tokenizer is None:
        return None
    vocabulary = sorted(tokenizer.get_vocab().items())
    ids = model.vocabulary.encode(_PROBE)
    return hashlib.sha256(json.dumps([vocabulary, ids]).encode()).hexdigest()
