"""How far an identity may be off where nothing but rounding lies between its two sides."""

from __future__ import annotations

import torch

# Half precision rounds the activations, and the sum of a few thousand of them, themselves.
_HALF = {torch.bfloat16: 2.0**-5, torch.float16: 2.0**-8}


def tolerance(dtype: torch.dtype, full: float = 1e-4) -> float:
    """The relative error that sums of activations stay under.

    Args:
        dtype: in which the model computes.
        full: what float32 and float64 stay under.
    """
    return _HALF.get(dtype, full)
