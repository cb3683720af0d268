"""What rounding may leave of the checks that are made here and in no reading."""

from __future__ import annotations

import torch

from resid.model import Model
from resid.readings import float64

# How far a padded batch may move a vector of the stream or the logits, relative to their size: the
# shapes of the matrix products differ, and with them the order of sums.
_BATCH = {torch.bfloat16: 0.1, torch.float16: 0.02, torch.float64: float64.TOLERANCE}
# A sum over heads against the output that the model rounded.
_HEADS = {torch.bfloat16: 0.05, torch.float16: 0.01, torch.float64: float64.TOLERANCE}


def batch(model: Model) -> float:
    """For a padded batch against single runs, relative."""
    return _BATCH.get(model.dtype, 1e-4)


def heads(model: Model) -> float:
    """For the shares of heads against that of their sum, relative."""
    return _HEADS.get(model.dtype, 1e-3)


def reading(model: Model, largest_logit: float) -> float:
    """For one way of reading the vocabulary against another, absolute in nats.

    Readings of a half-precision model compute in float32. A product with few rows adds up the
    4,096 entries of a block one after the other; on the bundled model that was seen to cost KL 25
    units in the last place, 3e-6 of the largest logit.
    """
    relative = float64.TOLERANCE if model.reading_dtype == torch.float64 else 5e-5
    return relative * max(1.0, largest_logit)
