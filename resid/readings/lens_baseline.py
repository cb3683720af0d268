"""The lens of streams that carry nothing: what ln_final and the unembedding say on their own."""

from __future__ import annotations

import numpy as np
import torch

from resid import prediction, unembed
from resid.model import Model
from resid.results import BAND, Baseline, Floats, RandomStreams, ZeroStream

DRAWS = 64


def read_baseline(
    model: Model, final: prediction.Final, top: int, seed: int, draws: int = DRAWS
) -> Baseline:
    """What a lens says that has nothing to read: of the zero vector, and of random directions.

    The directions are uniform on the sphere of radius sqrt(d_model), where the variance over
    dimensions is about 1. ln_final divides any other radius out, up to its epsilon.

    Args:
        model: whose ln_final and unembedding to use.
        final: what `prediction.predict` said of the last point, at the lens's positions.
        top: tokens to keep for the zero vector.
        seed: of the directions; the same on every device.
        draws: how many directions.
    """
    # All on the processor and then moved: other generators draw other numbers.
    random = torch.randn(draws, model.d_model, generator=torch.Generator().manual_seed(seed))
    random *= model.d_model**0.5 / random.norm(dim=1, keepdim=True)
    rows = torch.cat([torch.zeros(1, model.d_model), random]).to(final.mean_unembedding)
    decoded = unembed.decode(model, rows, top)
    finite = decoded.finite.cpu().numpy()
    entropy = np.where(finite, decoded.entropy.cpu().numpy(), np.nan)
    kl = prediction.divergence_table(model, rows, decoded, final).cpu().numpy()
    kl = np.where(finite[:, None], kl, np.nan)
    return Baseline(
        zero=_zero(model, decoded, float(entropy[0]), kl[0]),
        random=RandomStreams(draws, seed, entropy=_band(entropy[1:]), kl_to_final=_band(kl[1:])),
    )


def _zero(model: Model, decoded: unembed.Decoded, entropy: float, kl: Floats) -> ZeroStream:
    known = bool(decoded.finite[0])
    ids = np.where(known, decoded.top_ids[0].cpu().numpy(), -1)
    probs = np.where(known, decoded.top_logprobs[0].exp().cpu().numpy(), np.nan)
    tokens = np.empty(len(ids), dtype=object)
    tokens[:] = [model.vocabulary.show(int(i)) if i >= 0 else "" for i in ids]
    return ZeroStream(entropy, ids, tokens, probs, kl)


def _band(draws: Floats) -> Floats:
    """[band, ...] median and ends of a 95 % band over the first axis."""
    return np.quantile(draws, list(BAND.values()), axis=0)
