"""The models that race: one forward pass that every variant of the block goes through."""

from __future__ import annotations

import hashlib
import math

import torch
from torch.nn import functional

from resid.lab.race_variants import Sizes, Variant

Parameters = dict[str, torch.Tensor]

_EPSILON = 1e-5
_EMBEDDING = 0.3


def initial_parameters(variant: Variant, sizes: Sizes, seed: int) -> Parameters:
    """Every parameter by name, as it is before the first step.

    Matrices are drawn from N(0, 1/inputs), which keeps the size of what passes through them also
    where no shortcut does; embeddings have standard deviation 0.3, so that the first block does not
    drown them where it adds to them; gains are 1, biases 0. A parameter is drawn from the seed and
    its own name: two variants of one seed begin with the same numbers wherever their shapes agree.
    """
    return {
        name: _initial(name, shape, seed).requires_grad_()
        for name, shape in variant.shapes(sizes).items()
    }


def _initial(name: str, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    if name.endswith(".gain"):
        return torch.ones(shape)
    if len(shape) == 1:
        return torch.zeros(shape)
    scale = _EMBEDDING if name in ("W_E", "W_pos") else 1 / math.sqrt(shape[0])
    return scale * torch.randn(shape, generator=generator(seed, name))


def generator(seed: int, purpose: str) -> torch.Generator:
    """Random numbers for one purpose of one seed, the same whatever else was drawn before."""
    digest = hashlib.sha256(f"{seed} {purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


def logits(
    parameters: Parameters, variant: Variant, sizes: Sizes, ids: torch.Tensor
) -> torch.Tensor:
    """[batch, pos, d_vocab] what a variant predicts to follow.

    Args:
        parameters: by name, as `initial_parameters` makes them.
        variant: which block to build.
        sizes: of the models.
        ids: [batch, pos] at most `sizes.context` positions.
    """
    x = parameters["W_E"][ids] + parameters["W_pos"][: ids.shape[1]]
    for layer in range(sizes.layers):
        for sublayer in ("attn", "mlp"):
            own = _under(parameters, f"{layer}.{sublayer}.")
            before = _normed(own, x) if variant.norm == "pre" else x
            if sublayer == "attn":
                written = _attention(own, before, sizes.n_heads)
            else:
                written = _mlp(own, before, variant)
            x = x + written if variant.residual else written
            if variant.norm == "post":
                x = _normed(own, x)
    if variant.norm == "pre":
        x = _normed(_under(parameters, "final."), x)
    return x @ parameters["W_U"]


def _under(parameters: Parameters, prefix: str) -> Parameters:
    return {
        name.removeprefix(prefix): value
        for name, value in parameters.items()
        if name.startswith(prefix)
    }


def _normed(own: Parameters, x: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, x.shape[-1:], own["norm.gain"], own["norm.bias"], _EPSILON)


def _attention(own: Parameters, x: torch.Tensor, n_heads: int) -> torch.Tensor:
    batch, n, d_model = x.shape
    joined = torch.addmm(own["b_QKV"], x.reshape(-1, d_model), own["W_QKV"])
    split = joined.view(batch, n, 3, n_heads, d_model // n_heads)
    q, k, v = split.permute(2, 0, 3, 1, 4)  # each [batch, head, pos, d_head]
    mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed.transpose(1, 2).reshape(batch, n, d_model) @ own["W_O"] + own["b_O"]


def _mlp(own: Parameters, x: torch.Tensor, variant: Variant) -> torch.Tensor:
    pre = x @ own["W_in"] + own["b_in"]
    if variant.activation == "gelu":
        post = functional.gelu(pre, approximate="tanh")
    elif variant.activation == "relu":
        post = functional.relu(pre)
    elif variant.activation == "swiglu":
        post = functional.silu(x @ own["W_gate"] + own["b_gate"]) * pre
    else:
        post = pre
    return post @ own["W_out"] + own["b_out"]
