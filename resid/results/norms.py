"""The result of measuring the stream: norms, writes, growth and outliers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from resid.axes import axes
from resid.results.result import Floats, ModelResult

SUBLAYERS = ("attn_out", "mlp_out")
"""What writes to the stream, in the order in which a block does."""


@dataclass(frozen=True)
class Growth:
    """How the norm grows from block to block: a straight line through its logarithm."""

    per_layer: float
    """Factor by which the L2 norm grows per layer; NaN where `reason` says why there is none."""
    r_squared: float
    """Share of the variance of the mean log norm that the line explains; NaN where it has none."""
    growing_steps: float
    """Share of the steps from embed to 0.post, 1.post, ... at which the norm grows, 0 to 1."""
    excluded_positions: tuple[int, ...]
    """Positions read, but left out of all of the above."""
    fitted_l2: Floats = axes("layer")
    """The line at every L.post, as an L2 norm."""
    reason: str | None = None
    """Why there is no number."""


@dataclass(frozen=True)
class Outlier:
    """One dimension that holds a large part of a vector's squared norm."""

    point: str
    pos: int
    dim: int
    value: float
    share: float
    """Of the squared L2 norm, 0 to 1."""
    times_median: float
    """Its magnitude over the median magnitude of its vector; infinite where that is 0."""
    massive: bool
    """Whether Sun et al. 2024 would call it massive: above 100, and 1,000 x the median."""


@dataclass(frozen=True)
class OutlierRule:
    """What counts as an outlier: both must hold."""

    share: float
    """Least share of the squared L2 norm."""
    times_median: float
    """Least magnitude, in medians of the vector's magnitudes."""


@dataclass(frozen=True)
class StreamNorms(ModelResult):
    """How long the stream is at every chosen point, what writes to it, and where it points."""

    analysis: ClassVar[str] = "stream_norms"
    growth: Growth
    outliers: tuple[Outlier, ...]
    """Largest share first."""
    outlier_rule: OutlierRule
    points: tuple[str, ...] = axes("point")
    """The points in stream order, shallowest first."""
    positions: tuple[int, ...] = axes("pos")
    """The positions read, indices into `source.ids`."""
    layers: tuple[int, ...] = axes("layer")
    l2: Floats = axes("point pos")
    """L2 norm of the stream."""
    centred_l2: Floats = axes("point pos")
    """L2 norm after subtracting the mean over d_model: what LayerNorm sees."""
    cosine_to_previous: Floats = axes("point pos")
    """Cosine with the point before it in `points`; NaN at the first."""
    cosine_to_final: Floats = axes("point pos")
    """Cosine with the last block's raw output."""
    cosine_to_embed: Floats = axes("point pos")
    """Cosine with the embedding."""
    embed_coefficient: Floats = axes("point pos")
    """How many embeddings the stream holds: its projection onto the embedding, over that's norm."""
    attn_out_l2: Floats = axes("layer pos")
    """L2 norm of what attention wrote."""
    attn_out_ratio: Floats = axes("layer pos")
    """That norm over the norm of the stream that it was added to."""
    attn_out_cosine: Floats = axes("layer pos")
    """Cosine of what attention wrote with the stream that it was added to."""
    mlp_out_l2: Floats = axes("layer pos")
    """L2 norm of what the MLP wrote."""
    mlp_out_ratio: Floats = axes("layer pos")
    """That norm over the norm of the stream that it was added to."""
    mlp_out_cosine: Floats = axes("layer pos")
    """Cosine of what the MLP wrote with the stream that it was added to."""

    @property
    def kept(self) -> npt.NDArray[np.bool_]:
        """[pos] which positions the growth is taken over."""
        return ~np.isin(self.positions, self.growth.excluded_positions)

    def writes_before(self, point: str) -> tuple[tuple[str, int], ...]:
        """What was written between this point and the shown one before it: sublayers and layers.

        An L.post answers for its whole block, unless L.mid is shown and answers for attention.
        """
        if point == "embed":
            return ()
        layer, kind = int(point.split(".")[0]), point.split(".")[1]
        split = f"{layer}.mid" in self.points
        names = SUBLAYERS if not split else SUBLAYERS[:1] if kind == "mid" else SUBLAYERS[1:]
        return tuple((name, layer) for name in names)

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`point`, `pos` and `layer`."""
        return {"point": self.points, "pos": self.positions, "layer": self.layers}

    def data(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        own = {field.name for field in dataclasses.fields(ModelResult)}
        labels = {"points", "positions", "layers"}
        fields = [field.name for field in dataclasses.fields(self)]
        data = {name: getattr(self, name) for name in fields if name not in own | labels}
        return data | {
            "growth": dict(vars(self.growth)),
            "outliers": [dict(vars(outlier)) for outlier in self.outliers],
            "outlier_rule": dict(vars(self.outlier_rule)),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every point and position; a write stands beside the point it led to."""
        for i, point in enumerate(self.points):
            writes = dict(self.writes_before(point))
            for j, position in enumerate(self.positions):
                row: dict[str, Any] = {
                    "point": point,
                    "pos": position,
                    "input_id": self.source.ids[position],
                    "input_token": self.source.tokens[position],
                    "in_growth": bool(self.kept[j]),
                }
                for name in _BY_POINT:
                    row[name] = getattr(self, name)[i, j]
                for sublayer in SUBLAYERS:
                    for what in ("l2", "ratio", "cosine"):
                        name = f"{sublayer}_{what}"
                        layer = writes.get(sublayer)
                        row[name] = None if layer is None else getattr(self, name)[layer, j]
                yield row


_BY_POINT = (
    "l2",
    "centred_l2",
    "cosine_to_previous",
    "cosine_to_final",
    "cosine_to_embed",
    "embed_coefficient",
)
