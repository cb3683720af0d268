"""A pretrained GPT-2's weights, dropped into the model that `resid.lab.block` writes out."""

from __future__ import annotations

import math
from typing import TypeVar

import torch
from torch import Tensor, nn

from resid.errors import ResidError
from resid.lab.block import (
    GPT,
    MLP,
    Activation,
    Block,
    CausalSelfAttention,
    LayerNorm,
    gelu_tanh,
)
from resid.model import Model

Part = TypeVar("Part", bound=nn.Module)


def gelu_exact(x: Tensor) -> Tensor:
    """GELU by its definition: x times the standard normal's cumulative distribution at x."""
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def relu(x: Tensor) -> Tensor:
    """What is above zero, and zero for the rest."""
    return x.clamp(min=0)


def silu(x: Tensor) -> Tensor:
    """X times its logistic."""
    return x * torch.sigmoid(x)


def quick_gelu(x: Tensor) -> Tensor:
    """The logistic, made steeper, in place of the normal distribution."""
    return x * torch.sigmoid(1.702 * x)


def linear(x: Tensor) -> Tensor:
    """No activation at all."""
    return x


# By the names that configurations have for them.
ACTIVATIONS: dict[str, Activation] = {
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_python_tanh": gelu_tanh,
    "gelu_fast": gelu_tanh,
    "gelu_accurate": gelu_tanh,
    "gelu": gelu_exact,
    "gelu_python": gelu_exact,
    "quick_gelu": quick_gelu,
    "relu": relu,
    "silu": silu,
    "swish": silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "linear": linear,
}


def rebuild(model: Model, *, attention: bool = True, activation: Activation | None = None) -> GPT:
    """The model once more, from scratch, on the same weights.

    Args:
        model: from `resid.load`; it is read, never changed.
        attention: False takes attention out of every block.
        activation: in place of the model's own.

    Raises:
        ResidError: its activation function is not written out here, or a projection is wrapped or
            packed.
    """
    chosen = activation_of(model) if activation is None else activation
    return GPT(
        W_E=model.W_E,
        W_pos=model.W_pos,
        blocks=[rebuild_block(model, i, chosen, attention) for i in range(model.n_layers)],
        ln_final=_norm(model, "ln_final"),
        W_U=model.W_U if model.has_head else None,
        b_U=model.b_U if model.has_head else None,
    )


def rebuild_block(
    model: Model, layer: int, activation: Activation, attention: bool = True
) -> Block:
    """One of the model's blocks from scratch, on the same weights; arguments as for `rebuild`."""
    return Block(
        ln1=_norm(model, f"{layer}.ln1"),
        attention=_attention(model, layer) if attention else None,
        ln2=_norm(model, f"{layer}.ln2"),
        mlp=_mlp(model, layer, activation),
    )


def activation_of(model: Model) -> Activation:
    """The model's own activation function, written out.

    Raises:
        ResidError: it is one that this lab does not have.
    """
    if model.activation not in ACTIVATIONS:
        raise ResidError(
            f"the activation function of '{model.name}' is {model.activation}\n"
            f"the lab has {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[model.activation]


def _norm(model: Model, name: str) -> LayerNorm:
    gain, bias, eps = model.norm_parameters(name)
    norm = LayerNorm(model.d_model, eps)
    return _filled(norm, gain=gain, bias=bias)


def _attention(model: Model, layer: int) -> CausalSelfAttention:
    attention = CausalSelfAttention(model.d_model, model.n_heads, model.attention_scale(layer))
    W_Q, W_K, W_V = model.W_QKV(layer).chunk(3, dim=-1)
    b_Q, b_K, b_V = model.b_QKV(layer).chunk(3, dim=-1)
    W_O, b_O = model.W_O(layer), model.b_O(layer)
    return _filled(
        attention, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O, b_Q=b_Q, b_K=b_K, b_V=b_V, b_O=b_O
    )


def _mlp(model: Model, layer: int, activation: Activation) -> MLP:
    W_in, W_out = model.W_in(layer), model.W_out(layer)
    mlp = MLP(model.d_model, W_in.shape[1], activation)
    return _filled(mlp, W_in=W_in, W_out=W_out, b_in=model.b_in(layer), b_out=model.b_out(layer))


def _filled(module: Part, **weights: Tensor) -> Part:
    """The module with these tensors as its parameters, not copied: reading costs no memory."""
    for name, weight in weights.items():
        setattr(module, name, nn.Parameter(weight, requires_grad=False))
    return module
