"""The streamed unembedding against the plain computation, and against itself in other blocks."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from resid import prediction, unembed
from resid.model import Model
from resid.points import stream_points
from resid.readings.logit_lens import logit_lens
from resid.readings.verification import tolerances
from resid.readings.verification.measured import exact, worst
from resid.recording import Recording
from resid.results import Check

_TOP = 5


def lens_equals_full(model: Model, recording: Recording) -> Check:
    """The lens at every point against all logits at once, at a few positions.

    ln_final is written out here with each point's own statistics, and each point is fetched by its
    name: statistics of another point, and points that are off by one, are seen.
    """
    at = _few(recording)
    top = min(_TOP, model.d_vocab)
    lens = logit_lens(model, recording, top=top, target=0, points="all", positions=at)
    assert lens.target is not None
    final, largest = _log_probabilities(model, recording[f"{model.n_layers - 1}.post"][at])
    errors = []
    for i, point in enumerate(lens.points):
        full, size = _log_probabilities(model, recording[point][at])
        largest = max(largest, size)
        ids = torch.from_numpy(lens.top_ids[i]).clamp(min=0)  # -1 where nothing is finite.
        said = torch.from_numpy(lens.top_probs[i]).double().log()
        pairs = (
            (lens.entropy[i], -(full.exp() * full).sum(1)),
            (lens.kl_to_final[i], (final.exp() * (final - full)).sum(1)),
            (lens.target.logprob[i], full[:, 0]),
        )
        parts = [(torch.from_numpy(ours).double() - theirs).abs() for ours, theirs in pairs]
        # By id and by order: of tokens that are equal but for rounding, either may come first.
        parts += [(said - full.gather(1, ids)).abs().amax(1)]
        parts += [(said - full.topk(top).values).abs().amax(1)]
        errors.append(torch.stack(parts).amax(0))
    tolerance = tolerances.reading(model, largest)
    return worst("lens_equals_full", torch.stack(errors), tolerance, lens.points, at)


def blocks_agree(model: Model, recording: Recording) -> Iterator[Check]:
    """Blocks of other sizes give the same tokens, and the same numbers but for rounding."""
    at, points = _few(recording), stream_points(model.n_layers)
    with torch.no_grad():
        rows = recording.stream(points)[:, at].flatten(0, 1)
        last = recording[points[-1]][at]
        # The most tokens that are compared, and one more to see a tie at the edge.
        top = min(_TOP + 1, model.d_vocab)
        found = [_numbers(model, rows, last, top, *sizes) for sizes in _sizes(model, len(rows))]
    (ids, numbers), others = found[0], found[1:]
    tolerance = tolerances.reading(model, float(prediction.predict(model, last).largest_logit))
    shape = (len(points), len(at))
    errors = torch.stack([(theirs - numbers).abs().amax(1) for _, theirs in others]).amax(0)
    yield worst("blocks_agree", errors.view(shape), tolerance, points, at)
    tied = _ties(numbers[:, :top], 2 * tolerance)
    moved = torch.stack([((theirs != ids) & ~tied)[:, :_TOP].sum(1) for theirs, _ in others])
    yield worst("blocks_same_tokens", moved.amax(0).double().view(shape), 0.0, points, at)


def _few(recording: Recording) -> list[int]:
    """The first, the middle and the last position."""
    n = len(recording.ids)
    return sorted({0, n // 2, n - 1})


def _sizes(model: Model, n_rows: int) -> list[tuple[int, int]]:
    """Rows and vocabulary entries at a time: as always, ragged thirds, and everything at once."""
    return [
        (unembed.BLOCK_ROWS, unembed.BLOCK_VOCAB),
        (max(1, n_rows // 3), model.d_vocab // 3 + 1),
        (n_rows, model.d_vocab),
    ]


def _numbers(
    model: Model, rows: torch.Tensor, last: torch.Tensor, top: int, n_rows: int, n_vocab: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """[row, k] ids, and [row, number] log-probabilities of the top, logsumexp, entropy and KL."""
    decoded = unembed.decode(model, rows, top, block_rows=n_rows, block_vocab=n_vocab)
    final = prediction.predict(model, last, block_rows=n_rows, block_vocab=n_vocab)
    kl = prediction.divergence(model, rows, decoded, final, block_rows=n_rows)
    numbers = (decoded.logsumexp, decoded.entropy, kl)
    columns = [exact(decoded.top_logprobs), *(exact(each)[:, None] for each in numbers)]
    return decoded.top_ids.cpu(), torch.cat(columns, 1)


def _ties(logprobs: torch.Tensor, tolerance: float) -> torch.Tensor:
    """[row, k] whether a neighbour in the order is so close that rounding decides between them."""
    close = logprobs[:, :-1] - logprobs[:, 1:] <= tolerance
    padded = torch.nn.functional.pad(close, (1, 1), value=False)
    return padded[:, 1:] | padded[:, :-1]


def _log_probabilities(model: Model, rows: torch.Tensor) -> tuple[torch.Tensor, float]:
    """[row, d_vocab] by the plain computation, in float64; and the largest logit's size."""
    rows = rows.to(model.reading_dtype)
    centred = rows - rows.mean(-1, keepdim=True)
    normed = centred / model.ln_final_scale(rows)[:, None] * model.ln_final_gain
    logits = (normed + model.ln_final_bias) @ model.W_U.to(model.reading_dtype)
    if model.b_U is not None:
        logits = logits + model.b_U.to(model.reading_dtype)
    return exact(logits).log_softmax(1), float(logits.abs().max())
