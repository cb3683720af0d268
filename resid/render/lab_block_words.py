"""What happens at every step of a block, as formulas in the field's names."""

from __future__ import annotations

FORMULAS = {
    "x": "the stream that enters",
    "ln1": "(x - mean) / sqrt(variance + eps) x gain + bias",
    "q": "ln1 W_Q + b_Q, heads apart",
    "k": "ln1 W_K + b_K",
    "v": "ln1 W_V + b_V",
    "scores": "q k^T x scale",
    "weights": "softmax(scores), the future masked",
    "z": "weights v, heads side by side",
    "attn_out": "z W_O + b_O",
    "mid": "x + attn_out",
    "ln2": "the same of mid, with its own gain and bias",
    "mlp_pre": "ln2 W_in + b_in",
    "mlp_post": "{activation}(mlp_pre)",
    "mlp_out": "mlp_post W_out + b_out",
    "post": "mid + mlp_out",
}
"""By a step's name, what it is made of."""
ON_THE_STREAM = ("x", "mid", "post")
"""The steps that are the stream itself; the others lie in a branch."""


def formula(step: str, activation: str) -> str:
    """What a step is made of.

    Args:
        step: its name.
        activation: the name of the model's activation function.
    """
    return FORMULAS[step].format(activation=activation)


def shape(sizes: tuple[int, ...]) -> str:
    """A shape in brackets: (5, 768)."""
    return f"({', '.join(map(str, sizes))})"
