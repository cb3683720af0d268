"""The logit lens over text: every point decoded, with one pass of the unembedding for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from resid import prediction, unembed
from resid.corpus.batches import Batch
from resid.corpus.lens_totals import LensTotals
from resid.corpus.reading import RecordedReading, Rows, Sample
from resid.corpus.statistics import Array
from resid.corpus.totals import Worst
from resid.errors import ResidError
from resid.model import Model
from resid.points import stream_points
from resid.rounding import tolerance

# As for a single prompt; twice, since two logits take part in a loss.


class LensReading(RecordedReading):
    """Each point goes through ln_final, its statistics recomputed, and through the unembedding."""

    totals: LensTotals

    def __init__(self, model: Model, points: str = "post") -> None:
        """Begin with nothing read.

        Args:
            model: with a language-model head.
            points: "post" or "all".

        Raises:
            ResidError: the model has no head.
        """
        self.points = points
        _ = model.W_U  # Refused now, not after the first batch.
        super().__init__(model, LensTotals(stream_points(model.n_layers, mids=points == "all")))

    def take(self, batch: Batch, rows: Rows, sample: Sample | None) -> None:
        """Decode every point at every position that counts."""
        follows: Array = batch.next >= 0
        if (batch.next >= self.model.d_vocab).any():
            worst = int(batch.next.max())
            raise ResidError(
                f"the text has token {worst}; the model predicts 0 to {self.model.d_vocab - 1}"
            )
        device = rows[self.totals.points[-1]].device
        ids = torch.from_numpy(np.where(follows, batch.next, 0))[:, None].to(device)
        found, final = self._decode(rows, ids)
        finite: Array = np.logical_and.reduce(found.finite)
        self.totals.leave_out(batch.document[~finite], batch.pos[~finite])
        self._add(batch, found, finite, follows)
        if sample is not None:
            self._check(batch, sample, found, final.largest_logit)

    def _decode(self, rows: Rows, ids: torch.Tensor) -> tuple[_Found, prediction.Final]:
        model, points = self.model, self.totals.points
        last = rows[points[-1]]
        said, final = prediction.decode_last(model, last, 1)
        # So many points at a time that their rows fill a block.
        together = max(1, unembed.BLOCK_ROWS // len(last))
        earlier = points[:-1]
        groups = [earlier[i : i + together] for i in range(0, len(earlier), together)]
        parts = []
        for group in groups:
            stream = torch.cat([rows[point] for point in group])
            decoded = unembed.decode(model, stream, 1)
            parts.append(self._found(stream, decoded, said, final, ids))
        parts.append(self._found(last, said, said, final, ids))
        return _Found(*(np.concatenate(every) for every in zip(*parts, strict=True))), final

    def _found(
        self,
        stream: torch.Tensor,
        decoded: unembed.Decoded,
        said: unembed.Decoded,
        final: prediction.Final,
        ids: torch.Tensor,
    ) -> tuple[Array, ...]:
        """What is kept of some points, each [point, row]."""
        loss = -unembed.logprobs_of(self.model, stream, decoded, ids)[:, 0]
        kl = prediction.divergence(self.model, stream, decoded, final)
        top = decoded.top_ids[:, 0].view(-1, len(ids))
        finite = decoded.finite & torch.isfinite(loss) & torch.isfinite(kl)
        kept = (loss, kl, decoded.entropy, top == said.top_ids[:, 0], finite)
        return tuple(values.reshape(-1, len(ids)).cpu().numpy() for values in kept)

    def _add(self, batch: Batch, found: _Found, finite: Array, follows: Array) -> None:
        totals = self.totals
        scored: Array = finite & follows
        totals.scored.add(batch.document[scored], found.loss[:, scored])
        read = np.concatenate([found.kl, found.entropy, found.agrees])[:, finite]
        totals.read.add(batch.document[finite], read)
        # From how many points, counted from the end, agreement is unbroken: at least from the last.
        unbroken = np.logical_and.accumulate(found.agrees[::-1, finite]).sum(0)
        n = len(totals.points)
        totals.settled.counts += np.bincount(n - unbroken, minlength=n)

    def _check(self, batch: Batch, sample: Sample, found: _Found, largest: float) -> None:
        """The last point's loss against the model's own."""
        rows = np.flatnonzero(batch.window == sample.window)[: len(sample.ids) - sample.first]
        rows = rows[(batch.next[rows] >= 0) & found.finite[:, rows].all(0)]
        if not len(rows):
            return
        logits = self.model.own_logits(sample.ids, [int(place) for place in batch.place[rows]])
        logprobs = torch.log_softmax(logits.double(), -1).cpu().numpy()
        own = -logprobs[np.arange(len(rows)), batch.next[rows]]
        error = float(np.abs(found.loss[-1, rows] - own).max())
        allowed = max(2e-5, largest * tolerance(self.model.dtype, full=2e-5))
        document = int(batch.document[rows[0]])
        self.totals.check("loss_equals_own", Worst(error, allowed, document))


@dataclass(frozen=True)
class _Found:
    """Axes: point, row."""

    loss: Array
    kl: Array
    entropy: Array
    agrees: Array
    finite: Array
