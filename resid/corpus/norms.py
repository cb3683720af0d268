"""Norms over text: the stream at every point, and what attention and MLP write to it."""

from __future__ import annotations

import numpy as np
import torch

from resid.corpus.batches import Batch
from resid.corpus.norms_totals import NormsTotals
from resid.corpus.reading import RecordedReading, Rows, Sample
from resid.corpus.statistics import Array
from resid.corpus.totals import Worst
from resid.model import Model
from resid.points import stream_points
from resid.rounding import tolerance


class NormsReading(RecordedReading):
    """L2 norms, accumulated in float64 whatever the model's own numbers are."""

    totals: NormsTotals

    def __init__(self, model: Model, points: str = "post") -> None:
        """Begin with nothing read.

        Args:
            model: to read.
            points: "post" or "all".
        """
        self.points = f"{points},attn_out,mlp_out"
        names = stream_points(model.n_layers, mids=points == "all")
        super().__init__(model, NormsTotals(names, model.n_layers))

    def take(self, batch: Batch, rows: Rows, sample: Sample | None) -> None:
        """Measure every vector at every position that counts."""
        norms = np.stack([self._l2(rows[place]) for place in self.totals.places])
        finite = np.isfinite(norms).all(0)
        self.totals.leave_out(batch.document[~finite], batch.pos[~finite])
        self.totals.take(batch.document[finite], norms[:, finite], batch.place[finite] == 0)
        if sample is not None:
            self._check(batch, rows, sample)

    def _l2(self, vectors: torch.Tensor) -> Array:
        norms: Array = torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float64).cpu().numpy()
        return norms

    def _check(self, batch: Batch, rows: Rows, sample: Sample) -> None:
        """The embedding and all writes together against the last block's output."""
        layers = range(self.model.n_layers)
        total = rows.of("embed", sample).double()
        for layer in layers:
            total = total + rows.of(f"{layer}.attn_out", sample).double()
            total = total + rows.of(f"{layer}.mlp_out", sample).double()
        last = rows.of(f"{layers[-1]}.post", sample).double()
        errors = (total - last).norm(dim=1) / last.norm(dim=1).clamp(min=1e-12)
        errors = errors[torch.isfinite(last).all(1)]  # What is not finite is told of apart.
        if not len(errors):
            return
        document = batch.windows[sample.window].origin.document
        worst = Worst(float(errors.max()), tolerance(self.model.dtype), document)
        self.totals.check("stream_adds_up", worst)
