"""What one forward pass takes: a padded batch, code as it was written, evaluation mode."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch


def padded(
    ids: Sequence[Sequence[int]], device: torch.device
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Prompts as one batch [batch, pos], and the options of a pass over it.

    Padded on the right: under the causal mask, and with positions counted from the left, what
    follows a prompt cannot reach it.

    Args:
        ids: one sequence of ids a prompt.
        device: where the model reads ids.
    """
    longest = max(len(row) for row in ids)
    rows = [[*row, *[0] * (longest - len(row))] for row in ids]
    # Whatever the model's own configuration asks for: to collect states or attentions would leave
    # hooks of transformers' own on the user's model.
    options: dict[str, Any] = {
        "use_cache": False,
        "return_dict": True,
        "output_hidden_states": False,
        "output_attentions": False,
    }
    if any(len(row) < longest for row in ids):
        lengths = torch.tensor([len(row) for row in ids], device=device)
        columns = torch.arange(longest, device=device)
        options["attention_mask"] = (columns < lengths[:, None]).long()
    return torch.tensor(rows, device=device), options


@contextmanager
def as_written() -> Iterator[None]:
    """What was compiled runs as it was written: compiled, it passes by the hooks inside of it."""
    # Unless something was compiled this module is not there, and importing it takes a second.
    compiler = sys.modules.get("torch._dynamo")
    set_stance = getattr(torch.compiler, "set_stance", None)  # From torch 2.6 on.
    with nullcontext() if compiler is None or set_stance is None else set_stance("force_eager"):
        yield


@contextmanager
def evaluating(hf: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode for the time of the block; every module gets its own mode back."""
    training = [module for module in hf.modules() if module.training]
    try:
        for module in training:
            module.training = False
        yield
    finally:
        for module in training:
            module.training = True
