"""The tokens that lead somewhere, followed through every point at which the lens reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from resid import unembed
from resid.model import Model
from resid.results import Followed, Ints


def follow_leaders(
    model: Model, rows: torch.Tensor, decoded: unembed.Decoded, top1: Ints
) -> Followed:
    """Every token that is on top at some point of a position, with its log-probability at all.

    Args:
        model: whose unembedding to use.
        rows: [point * pos, d_model] raw vectors of the stream, point by point.
        decoded: what `unembed.decode` said of them.
        top1: [point, pos] the most probable tokens; -1 where the point is not finite.
    """
    by_position = [_leaders(column) for column in top1.T]
    width = max(1, *map(len, by_position))
    # Padded with any token to a full array; the mask takes the padding out again.
    padded = np.array([[*ids, *[0] * (width - len(ids))] for ids in by_position])
    real = np.arange(width) < np.array([[len(ids)] for ids in by_position])
    index, _ = np.nonzero(real)
    ids = padded[real]
    found = unembed.logprobs_of(model, rows, decoded, torch.tensor(padded, device=rows.device))
    logprob = found.cpu().numpy().reshape(*top1.shape, width)[:, real]
    finite = top1[:, index] >= 0
    tokens = np.empty(len(ids), dtype=object)
    tokens[:] = [model.vocabulary.show(int(token_id)) for token_id in ids]
    return Followed(
        index=index,
        ids=ids,
        tokens=tokens,
        logprob=np.where(finite, logprob, np.nan),
        leads=top1[:, index] == ids,
    )


def _leaders(column: Sequence[int]) -> list[int]:
    """The tokens of one position, in the order in which they first lead."""
    return [token_id for token_id in dict.fromkeys(map(int, column)) if token_id >= 0]
