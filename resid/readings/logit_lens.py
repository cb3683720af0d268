"""The logit lens: every point of the stream, decoded as if it were the last one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from resid import prediction, unembed
from resid.model import Model
from resid.points import resolve_points, resolve_positions
from resid.readings.lens_baseline import read_baseline
from resid.readings.lens_followed import follow_leaders
from resid.recording import Recording, check_made_by, check_size
from resid.results import Check, LogitLens, Own, Track

Array = npt.NDArray[Any]

# Where the model itself rounds its logits: the lens computes in float32, so in half precision the
# difference is the model's rounding, up to two units in the last place of the largest logit.
_TOLERANCE = {torch.bfloat16: 2.0**-6, torch.float16: 2.0**-9}


def logit_lens(
    model: Model,
    recording: Recording,
    *,
    top: int = 5,
    target: str | int | None = None,
    foil: str | int | None = None,
    points: str | Sequence[str] = "post",
    positions: Sequence[int] | None = None,
    follow: bool = False,
    own: bool = False,
    baseline: bool = False,
    seed: int = 0,
) -> LogitLens:
    """What the model would say next, at every point of its stream and every position.

    Each point goes through ln_final, its mean and variance recomputed from that point, and through
    the unembedding. The last row is therefore the model's own prediction, and the check
    `lens_equals_logits` measures it against the logits that the model returned.

    Args:
        model: the one that made the recording.
        recording: one prompt's, with the points asked for and the last block's output.
        top: tokens to keep in each cell, 1 to d_vocab.
        target: a token to follow, as its text (a leading space matters), "id:42" or an id.
        foil: another, to hold the target against.
        points: "post", "all", or names; see `resid.points.resolve`.
        positions: which to read; negative ones count from the end; None: all.
        follow: also report, for every token that is on top at some point of a position, its
            log-probability at all points of that position.
        own: also report, for the model's own top token of a position, its rank and log-probability
            at all points of that position.
        baseline: also decode streams that carry nothing: the zero vector and random directions.
        seed: of those directions.

    Returns:
        LogitLens, its axes [point, pos, k]; entropy and KL in nats. Where a point is not finite its
        numbers are NaN, and the check `finite` names it.

    Raises:
        ResidError: the recording is another model's, a point was not recorded, a position is
            outside of the prompt, `top` is outside of the vocabulary, or a target is not one token.

    Source: nostalgebraist, "interpreting GPT: the logit lens" (2020). KL is taken from the final
    distribution to the point's, KL(final || point), as Belrose et al. 2023 (2303.08112) do.
    """
    check_made_by(model, recording)
    names = resolve_points(points, recording.source.n_layers)
    at = resolve_positions(positions, len(recording.ids))
    tracked = {
        name: model.vocabulary.id_of(token, model.d_vocab, f"the {name}")
        for name, token in (("target", target), ("foil", foil))
        if token is not None
    }
    # The margin needs two tokens; a `top` that is out of range stays so, and is refused.
    kept = max(top, min(2, model.d_vocab)) if top > 0 else top
    with torch.no_grad():
        said, final = prediction.decode_last(
            model,
            _rows(recording, [_last_point(recording)], at),
            kept,
            [*tracked.values()],
            reference=own_logits(model, recording, at),
        )
        said, ids = _tracked(said, [*tracked.values()], own)
        decoded, kl_to_final = _decode(model, recording, names, at, said, final, ids)
        cells = _Cells(decoded, (len(names), len(at)))
        top_ids = np.where(cells.finite[:, :, None], cells.take(decoded.top_ids), -1)[:, :, :top]
        followed = (
            follow_leaders(model, _rows(recording, names, at), decoded, top_ids[:, :, 0])
            if follow
            else None
        )
        nothing = read_baseline(model, final, top, seed) if baseline else None
    tracks = _tracks(model, tracked, decoded, cells)
    logprobs = cells.numbers(decoded.top_logprobs)
    settled_at, flips = _decisions(names, top_ids[:, :, 0], said.top_ids[:, 0].cpu().numpy())
    return LogitLens(
        source=recording.source,
        checks=(
            _lens_equals_logits(model, final, at),
            Check.of_finite(cells.finite, lambda i, j: f"{names[i]} at position {at[j]}"),
        ),
        points=names,
        positions=tuple(at),
        top_ids=top_ids,
        top_tokens=_map_ids(top_ids, model.vocabulary.show),
        top_probs=np.exp(logprobs[:, :, :top]),
        entropy=cells.numbers(decoded.entropy),
        kl_to_final=cells.numbers(kl_to_final),
        settled_at=settled_at,
        flips=flips,
        margin=logprobs[:, :, 0] - logprobs[:, :, min(1, kept - 1)],
        target=tracks.get("target"),
        foil=tracks.get("foil"),
        followed=followed,
        own=_own(model, ids[:, -1], said.finite, _track(decoded, cells, -1)) if own else None,
        baseline=nothing,
    )


def _last_point(recording: Recording) -> str:
    return f"{recording.source.n_layers - 1}.post"


def _rows(recording: Recording, points: Sequence[str], at: list[int]) -> torch.Tensor:
    """[point x pos, d_model] the stream at some points and positions."""
    stream = recording.stream(points)
    return (stream if len(at) == stream.shape[1] else stream[:, at]).flatten(0, 1)


def _tracked(
    said: unembed.Decoded, tracked: list[int], own: bool
) -> tuple[unembed.Decoded, torch.Tensor]:
    """The last point with its own top token added to what is tracked, and [pos, tracked] ids."""
    ids = torch.tensor(tracked, dtype=torch.long, device=said.top_ids.device)
    ids = ids.expand(len(said.top_ids), -1)
    if not own:
        return said, ids
    ranks = torch.ones_like(said.top_ids[:, :1])
    said = replace(
        said,
        tracked_ranks=torch.cat([said.tracked_ranks, ranks], 1),
        tracked_logprobs=torch.cat([said.tracked_logprobs, said.top_logprobs[:, :1]], 1),
    )
    return said, torch.cat([ids, said.top_ids[:, :1]], 1)


def _decode(
    model: Model,
    recording: Recording,
    points: tuple[str, ...],
    at: list[int],
    said: unembed.Decoded,
    final: prediction.Final,
    ids: torch.Tensor,
) -> tuple[unembed.Decoded, torch.Tensor]:
    """All points decoded [point x pos], the last one taken over from `said`; and their KL."""
    kept, last = said.top_ids.shape[1], _last_point(recording)
    # So many points at a time that their rows fill a block: the stream is never copied whole.
    together = max(1, unembed.BLOCK_ROWS // len(at))
    earlier = [point for point in points if point != last]
    groups = [earlier[i : i + together] for i in range(0, len(earlier), together)]
    parts = []
    for group in [*groups, *([[last]] if last in points else [])]:
        rows = _rows(recording, group, at)
        tracked = ids.repeat(len(group), 1)
        decoded = said if group == [last] else unembed.decode(model, rows, kept, tracked)
        parts.append((decoded, prediction.divergence(model, rows, decoded, final)))
    return unembed.joined([decoded for decoded, _ in parts]), torch.cat([kl for _, kl in parts])


class _Cells:
    """Flat rows of tensors, turned into numpy arrays [point, pos, ...]."""

    def __init__(self, decoded: unembed.Decoded, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.finite = self.take(decoded.finite)

    def take(self, rows: torch.Tensor) -> Array:
        return rows.cpu().numpy().reshape(*self.shape, *rows.shape[1:])

    def numbers(self, rows: torch.Tensor) -> Array:
        """Floats, NaN where the point is not finite."""
        cells = self.take(rows)
        return np.where(self.finite.reshape(self.shape + (1,) * (cells.ndim - 2)), cells, np.nan)


def _tracks(
    model: Model, tracked: dict[str, int], decoded: unembed.Decoded, cells: _Cells
) -> dict[str, Track]:
    """The target and the foil, by name, where they were asked for."""
    return {
        name: Track(token_id, model.vocabulary.show(token_id), *_track(decoded, cells, j))
        for j, (name, token_id) in enumerate(tracked.items())
    }


def _track(decoded: unembed.Decoded, cells: _Cells, j: int) -> tuple[Array, Array]:
    """([point, pos] ranks, [point, pos] log-probabilities) of one tracked token."""
    rank = np.where(cells.finite, cells.take(decoded.tracked_ranks[:, j]), 0)
    return rank, cells.numbers(decoded.tracked_logprobs[:, j])


def _own(model: Model, ids: torch.Tensor, finite: torch.Tensor, track: tuple[Array, Array]) -> Own:
    """The model's own top tokens [pos], followed."""
    own = np.where(finite.cpu().numpy(), ids.cpu().numpy(), -1)
    return Own(own, _map_ids(own, model.vocabulary.show), *track)


def own_logits(model: Model, recording: Recording, at: list[int]) -> torch.Tensor:
    """[pos, d_vocab] the model's own logits, from the recording or else from the model.

    Raises:
        ResidError: the recording has those of another vocabulary.
    """
    if recording.logits is not None:
        check_size(model, recording, "d_vocab", recording.logits.shape[1], model.d_vocab)
    index = {position: i for i, position in enumerate(recording.logits_at)}
    if recording.logits is None or not all(position in index for position in at):
        return model.own_logits(recording.ids, at)
    if len(at) == len(index):
        return recording.logits
    return recording.logits[[index[position] for position in at]]


def _decisions(
    points: tuple[str, ...], top1: Array, said: Array
) -> tuple[tuple[str | None, ...], Array]:
    """Where the model's own top token comes to stay, and how often the top token changes."""
    # From how many points, counted from the end, agreement is unbroken.
    unbroken = np.logical_and.accumulate((top1 == said)[::-1]).sum(0)
    settled = tuple(points[len(points) - n] if n else None for n in unbroken)
    return settled, (top1[1:] != top1[:-1]).sum(0)


def _map_ids(ids: Array, show: Callable[[int], str]) -> Array:
    tokens = np.empty(ids.shape, dtype=object)
    for cell in np.ndindex(ids.shape):
        tokens[cell] = show(int(ids[cell])) if ids[cell] >= 0 else ""
    return tokens


def _lens_equals_logits(model: Model, final: prediction.Final, at: list[int]) -> Check:
    error = float("nan") if final.error is None else final.error
    scale = final.largest_logit if np.isfinite(final.largest_logit) else 1.0
    tolerance = max(1e-5, scale * _TOLERANCE.get(model.dtype, 1e-5))
    passed = error <= tolerance
    place = f"{model.n_layers - 1}.post at position {at[final.error_at]}"
    return Check("lens_equals_logits", error, tolerance, passed, None if passed else place)
