"""Words that every rendering of the lab's results writes in the same way."""

from __future__ import annotations

import math
import re
from typing import Any

from resid.render.words import NOT_FINITE, describe_input
from resid.results.lab import LabSource
from resid.tokens import escape_text, quote

IDENTITIES = {
    "block_equals_original": "block = Hugging Face's, step by step",
    "stack_equals_stream": "stacked blocks = the model's stream",
    "stack_equals_logits": "stacked blocks, ln_final, W_U = the model's logits",
    "attention_is_causal": "positions before the replaced token = unmoved",
    "alone_without_attention": "without attention, all other positions = unmoved",
    "linear_mlp_is_affine": "MLP without activation = one affine map",
    "published": "first activation's gradients = the published ones",
    "shortcut_adds_one": "slope of x + f(x) = slope of f + 1",
    "chain_rule": "gradient x movement = change of the loss, at every point",
    "post_ln_is_unit": "post-LN stream = size 1 behind every block",
    "slopes_multiply": "gradient through the stack = product of its slopes",
}
"""What the checks of experiments hold, by the check's name."""


@describe_input.register
def describe_settings(source: LabSource) -> str:
    """What was set and drawn, in one line; a prompt between quotes."""
    settings = dict(source.settings)
    tokens, ids, prompt = (settings.pop(name, None) for name in ("tokens", "ids", "prompt"))
    parts = [] if prompt is None else [quote(escape_text(prompt))]
    if tokens is not None and prompt is None:
        parts.append(f"ids {' '.join(map(str, ids))}")
    parts += [
        f"{_spaced(name)} {_spelled(value)}"
        for name, value in settings.items()
        if value is not None
    ]
    parts += [f"seed {source.seed}"] if source.seed is not None else []
    return ", ".join(parts)


def digits(value: float) -> str:
    """A number of any size in three significant digits: 2.02e-4, 0.250, 1,099, 3.51e9."""
    if not math.isfinite(value):
        return NOT_FINITE
    if value == 0:
        return "0"
    if 0.01 <= abs(value) < 1000:
        return f"{value:#.3g}".rstrip(".")
    if 1000 <= abs(value) < 100_000:
        return f"{value:,.0f}"
    return re.sub(r"e([+-])0*", r"e\1", f"{value:.2e}").replace("e+", "e")


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _spelled(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(_spelled, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
