"""From a name, a folder or a model in memory to a Model: what decides weights, device and dtype."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch

from resid import checkpoint, hub
from resid.configuration import read_config
from resid.errors import ResidError
from resid.model import Model

_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}


def load(
    model: Any = None,
    *,
    tokenizer: Any | None = None,
    revision: str | None = None,
    device: str = "auto",
    dtype: str | torch.dtype = "float32",
) -> Model:
    """A GPT-2 ready to be read: evaluation mode, float32 unless told, its weights complete.

    Args:
        model: a hub name ("gpt2"), a folder, "mini" (the bundled model), a Hugging Face model in
            memory (or a pair of it and its tokenizer), or None: gpt2 from the local cache, else
            from the hub, else mini, and `notices` says which and why.
        tokenizer: a tokenizer in memory, or the folder of one; None: the model's own.
        revision: of a model from the hub, a branch, tag or commit.
        device: "auto" (CUDA where there is one, else the CPU), "cpu", "cuda", "mps". A model in
            memory stays where it is.
        dtype: "float32", "bfloat16", "float16" or "float64". A model in memory keeps its own.

    Raises:
        ResidError: the model is not to be had, is not a GPT-2, or its checkpoint is not whole.
    """
    if isinstance(model, tuple):
        model, tokenizer = model
    if model is not None and not isinstance(model, (str, os.PathLike)):
        hub.refuse_revision(revision, "this one is in memory")
        name = getattr(getattr(model, "config", None), "_name_or_path", "") or "in memory"
        return Model(model, _read_tokenizer(tokenizer), name=name)
    found = hub.locate(None if model is None else os.fspath(model), revision)
    return open_found(found, tokenizer=tokenizer, device=device, dtype=dtype)


def open_found(
    found: hub.Found, *, tokenizer: Any | None, device: str, dtype: str | torch.dtype
) -> Model:
    """The second half of `load`, for whoever has looked for the model before torch was there."""
    if sys.flags.optimize > 1:
        raise ResidError(
            "python -OO takes away docstrings, and transformers does not start without them\n"
            "use -O, or PYTHONOPTIMIZE=1"
        )
    tokenizer = _read_tokenizer(tokenizer)
    where, wanted = _pick_device(device), _pick_dtype(dtype)
    folder = found.folder
    config = read_config(folder)
    if tokenizer is None:
        tokenizer = checkpoint.read_tokenizer(folder, config)
    hf, told = checkpoint.build(config, checkpoint.read_weights(folder), folder, wanted)
    notices = [*found.notices, *told, *_compare_sizes(tokenizer, config.vocab_size)]
    return Model(hf.to(where), tokenizer, name=found.name, revision=found.revision, notices=notices)


def _compare_sizes(tokenizer: Any | None, n_embeddings: int) -> list[str]:
    """A notice where a tokenizer is so large, or so small, that it may be another model's."""
    n_tokens = n_embeddings if tokenizer is None else len(tokenizer)
    if n_embeddings / 2 <= n_tokens <= n_embeddings:
        return []
    return [
        f"the tokenizer has {n_tokens:,} tokens and the model {n_embeddings:,}; is it this model's?"
    ]


def _read_tokenizer(given: Any) -> Any:
    """The tokenizer that was given: one in memory as it is, or read from its folder."""
    if not isinstance(given, (str, os.PathLike)):
        return given
    folder = hub.BUNDLED_FOLDER if given == hub.BUNDLED else hub.expanded(os.fspath(given))
    if not folder.is_dir():
        raise ResidError(f"the tokenizer folder '{folder}' does not exist")
    tokenizer = checkpoint.read_tokenizer(folder)
    if tokenizer is None:
        raise ResidError(f"the folder '{folder}' has no tokenizer files")
    return tokenizer


def _pick_device(device: str) -> torch.device:
    if device == "auto":
        # Apple's MPS is never picked unasked: some torch versions compute wrong numbers on it.
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        # What torch raises differs by device: no such name, built without it, no driver.
        raise ResidError(f"the device '{device}' is not to be had on this machine") from error
    return chosen


def _pick_dtype(dtype: str | torch.dtype) -> torch.dtype:
    if isinstance(dtype, torch.dtype):
        dtype = str(dtype).removeprefix("torch.")
    if dtype not in _DTYPES:
        raise ResidError(f"the dtype is '{dtype}'; choose one of {', '.join(_DTYPES)}")
    return _DTYPES[dtype]
