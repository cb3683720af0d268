"""The residual stream as a vector: how long it is, what writes to it, and where it points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from resid.errors import ResidError
from resid.model import Model
from resid.points import resolve, resolve_points, resolve_positions, stream_points
from resid.recording import Recording, check_made_by
from resid.results import Check
from resid.results.norms import SUBLAYERS, Growth, Outlier, OutlierRule, StreamNorms

Array = npt.NDArray[Any]

_TOLERANCE = 1e-4
# Sun et al. 2024 (2402.17762), section 2: a massive activation is above 100 and at least about
# 1,000 times the median magnitude of its vector.
_MASSIVE_VALUE, _MASSIVE_TIMES_MEDIAN = 100.0, 1000.0
# Their second bound cannot be met in a narrow model. A share needs a bound of this kind beside it:
# in 16 dimensions an ordinary number holds a twentieth of the squared norm.
_TIMES_MEDIAN = 10.0


def stream_norms(
    model: Model,
    recording: Recording,
    *,
    points: str | Sequence[str] = "post",
    positions: Sequence[int] | None = None,
    exclude: Sequence[int] = (0,),
    outlier_share: float = 0.05,
) -> StreamNorms:
    """How long the residual stream is, what attention and MLP write to it, and what it keeps.

    Norms are L2 and are accumulated in float64, whatever the model's own numbers are. The check
    `stream_adds_up` holds the embedding and all writes together against the last block's output.

    The growth per layer is exp of the least-squares slope of the mean log norm over every L.post,
    as Heimersheim & Turner 2023 ("Residual stream norms grow exponentially over the forward pass")
    measure it. They leave position 0 out, and so does `exclude`: GPT-2 keeps massive activations
    there, which would hide every other position in a mean.

    Args:
        model: the one that made the recording.
        recording: one prompt's, with every L.mid and L.post, and all that attention and MLP wrote.
        points: "post", "all", or names; see `resid.points.resolve`. Growth and writes cover
            every layer, whatever is chosen here.
        positions: which to read; negative ones count from the end; None: all.
        exclude: positions to leave out of the growth, and of nothing else; () leaves out none.
        outlier_share: least share of a vector's squared norm, above 0 and up to 1, that makes a
            dimension an outlier; it must also be 10 x the vector's median magnitude.

    Returns:
        StreamNorms, its axes [point, pos] and [layer, pos]. Where a vector is not finite its
        numbers are NaN, and the check `finite` names it. A cosine with a vector of norm 0 is NaN.

    Raises:
        ResidError: a vector was not recorded or the recording is another model's, a position is
            outside of the prompt, or a point is not on the stream.

    Source: outliers follow Sun et al. 2024 (2402.17762), whose own bounds are the flag `massive`.
    """
    check_made_by(model, recording)
    names = resolve_points(points, recording.source.n_layers)
    at = resolve_positions(positions, len(recording.ids))
    excluded = resolve_positions(exclude, len(recording.ids)) if len(exclude) else []
    if not 0 < outlier_share <= 1:
        raise ResidError(f"outlier_share is {outlier_share}; it is above 0 and up to 1")
    rule = OutlierRule(outlier_share, _TIMES_MEDIAN)
    with torch.no_grad():
        vectors = _Vectors(recording, at)
        by_point = _by_point(vectors, names)
        writes = _writes(vectors)
        checks = (_stream_adds_up(vectors), _finite(vectors))
        outliers = _outliers(vectors, names, rule)
    return StreamNorms(
        source=recording.source,
        checks=checks,
        points=names,
        positions=tuple(at),
        layers=tuple(range(model.n_layers)),
        growth=_growth(vectors, tuple(position for position in excluded if position in at)),
        outliers=outliers,
        outlier_rule=rule,
        **by_point,
        **writes,
    )


class _Vectors:
    """A recording's vectors at the positions read, with their norms.

    Attributes:
        at: the positions.
        n_layers: of the model.
        dtype: of the recording's numbers.
        every: names of all points and writes, in the order of the forward pass.
        l2: [pos] by name; NaN where the vector is not finite.
    """

    def __init__(self, recording: Recording, at: list[int]) -> None:
        self._recording, self.at = recording, at
        self.n_layers = recording.source.n_layers
        self.dtype = recording["embed"].dtype
        self.every = resolve(["all", *SUBLAYERS], self.n_layers)
        # Every other vector is held against these two.
        self._ends = {name: self._exact(name) for name in ("embed", self.last)}
        self.l2 = {name: _norm(self[name]) for name in self.every}

    def __getitem__(self, name: str) -> torch.Tensor:
        """[pos, d_model] in float64: squares of what fits in float32 fit, and no sum rounds."""
        return self._ends[name] if name in self._ends else self._exact(name)

    def _exact(self, name: str) -> torch.Tensor:
        vectors = self._recording[name][self.at]
        # Apple's MPS has no float64.
        return (vectors.cpu() if vectors.device.type == "mps" else vectors).double()

    @property
    def last(self) -> str:
        """The last point: the raw output of the last block."""
        return f"{self.n_layers - 1}.post"

    def cosine(self, a: str, b: str) -> torch.Tensor:
        """[pos] NaN where one of the two is not finite or has no direction."""
        dot: torch.Tensor = torch.linalg.vecdot(self[a], self[b])
        return (dot / (self.l2[a] * self.l2[b])).clamp(-1, 1)

    def before(self, name: str) -> str:
        """The point that a write is added to."""
        layer, kind = name.split(".")
        if kind == "mlp_out":
            return f"{layer}.mid"
        return "embed" if layer == "0" else f"{int(layer) - 1}.post"

    def numbers(self, rows: Sequence[torch.Tensor]) -> Array:
        """[row, pos] in the precision of the recording, float32 at least."""
        precision = torch.promote_types(self.dtype, torch.float32)
        return torch.stack(list(rows)).to(precision).cpu().numpy()


def _norm(vectors: torch.Tensor) -> torch.Tensor:
    l2 = vectors.norm(dim=-1)
    return torch.where(l2.isfinite(), l2, torch.nan)


def _by_point(vectors: _Vectors, names: tuple[str, ...]) -> dict[str, Array]:
    """The fields of StreamNorms that are [point, pos]."""
    l2 = vectors.l2
    unknown = torch.full_like(l2["embed"], torch.nan)
    previous = [vectors.cosine(a, b) for a, b in pairwise(names)]
    to_embed = [vectors.cosine(name, "embed") for name in names]
    coefficients = [
        cosine * l2[name] / l2["embed"] for name, cosine in zip(names, to_embed, strict=True)
    ]
    rows = {
        "l2": [l2[name] for name in names],
        "centred_l2": [_centred(vectors[name]) for name in names],
        "cosine_to_previous": [unknown, *previous],
        "cosine_to_final": [vectors.cosine(name, vectors.last) for name in names],
        "cosine_to_embed": to_embed,
        "embed_coefficient": coefficients,
    }
    return {field: vectors.numbers(values) for field, values in rows.items()}


def _centred(vectors: torch.Tensor) -> torch.Tensor:
    return _norm(vectors - vectors.mean(dim=-1, keepdim=True))


def _writes(vectors: _Vectors) -> dict[str, Array]:
    """The fields of StreamNorms that are [layer, pos]."""
    fields: dict[str, Array] = {}
    for sublayer in SUBLAYERS:
        names = [f"{layer}.{sublayer}" for layer in range(vectors.n_layers)]
        pairs = [(name, vectors.before(name)) for name in names]
        rows = {
            "l2": [vectors.l2[name] for name in names],
            "ratio": [vectors.l2[name] / vectors.l2[stream] for name, stream in pairs],
            "cosine": [vectors.cosine(name, stream) for name, stream in pairs],
        }
        fields |= {f"{sublayer}_{what}": vectors.numbers(values) for what, values in rows.items()}
    return fields


def _growth(vectors: _Vectors, excluded: tuple[int, ...]) -> Growth:
    names = stream_points(vectors.n_layers)
    kept = [i for i, position in enumerate(vectors.at) if position not in excluded]
    l2 = torch.stack([vectors.l2[name] for name in names]).cpu().numpy()[:, kept]
    posts = l2[1:]
    nothing = np.full(len(posts), np.nan)
    reason = _no_growth(posts)
    finite = l2.size > 0 and bool(np.isfinite(l2).all())
    growing = float((l2[1:] > l2[:-1]).mean()) if finite else np.nan
    if reason is not None:
        return Growth(np.nan, np.nan, growing, excluded, nothing, reason)
    layers = np.arange(len(posts)) - (len(posts) - 1) / 2
    log_norm = np.log(posts).mean(1)
    deviation = log_norm - log_norm.mean()
    slope = float(layers @ deviation / (layers @ layers))
    fitted = log_norm.mean() + slope * layers
    spread, residual = float(deviation @ deviation), log_norm - fitted
    # Norms that differ by rounding alone have no variance to explain.
    varies = spread > len(posts) * 1e-24
    r_squared = 1 - float(residual @ residual) / spread if varies else np.nan
    return Growth(float(np.exp(slope)), r_squared, growing, excluded, np.exp(fitted))


def _no_growth(posts: Array) -> str | None:
    """Why no line can be laid through the norms [layer, pos], if so."""
    if posts.shape[1] == 0:
        return "no position is left"
    if len(posts) == 1:
        return "one layer has no slope"
    if not np.isfinite(posts).all():
        return "not every norm is finite"
    return "a norm is 0" if (posts == 0).any() else None


def _outliers(vectors: _Vectors, names: tuple[str, ...], rule: OutlierRule) -> tuple[Outlier, ...]:
    found = []
    for name in names:
        values = vectors[name]
        shares = (values / vectors.l2[name][:, None]) ** 2
        # Only the few vectors that have a large share at all pay for a median; NaN has none.
        rows = (shares >= rule.share).any(1).nonzero()[:, 0]
        sizes = values[rows].abs().cpu().numpy()
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = sizes / np.median(sizes, axis=1, keepdims=True)
        chosen = shares[rows].cpu().numpy()
        for i, dim in np.argwhere((chosen >= rule.share) & (ratios >= rule.times_median)):
            massive = sizes[i, dim] > _MASSIVE_VALUE and ratios[i, dim] >= _MASSIVE_TIMES_MEDIAN
            found.append(
                Outlier(
                    point=name,
                    pos=vectors.at[int(rows[i])],
                    dim=int(dim),
                    value=float(values[rows[i], dim]),
                    share=float(chosen[i, dim]),
                    times_median=float(ratios[i, dim]),
                    massive=bool(massive),
                )
            )
    return tuple(sorted(found, key=lambda outlier: -outlier.share))


def _stream_adds_up(vectors: _Vectors) -> Check:
    """The embedding and every write against the last point, at the position that fits worst.

    The model rounds the stream after every write, by at most half a unit in the last place of what
    it then holds. In half precision that is more than the tolerance, and takes its place.
    """
    total = vectors["embed"].clone()
    rounded = torch.zeros_like(vectors.l2["embed"])
    for name in vectors.every[1:]:
        if name.endswith(SUBLAYERS):
            total += vectors[name]
        else:
            rounded += vectors.l2[name]
    last = vectors.l2[vectors.last]
    scale = torch.where(last > 0, last, 1.0)
    errors = (total - vectors[vectors.last]).norm(dim=-1) / scale
    bounds = (torch.finfo(vectors.dtype).eps / 2 * rounded / scale).clamp(min=_TOLERANCE)
    worst = int(torch.nan_to_num(errors / bounds, nan=torch.inf).argmax())
    error, tolerance = float(errors[worst]), float(bounds[worst])
    tolerance = tolerance if np.isfinite(tolerance) else _TOLERANCE
    passed = error <= tolerance
    where = f"{vectors.last} at position {vectors.at[worst]}"
    return Check("stream_adds_up", error, tolerance, passed, None if passed else where)


def _finite(vectors: _Vectors) -> Check:
    """Whether every vector is, and the first one that is not, in the order of the forward pass."""
    broken = torch.stack([vectors.l2[name].isnan() for name in vectors.every]).cpu().numpy()
    return Check.of_finite(~broken, lambda i, j: f"{vectors.every[i]} at position {vectors.at[j]}")
