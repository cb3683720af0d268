"""Norms over text, as numbers that merge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from resid.corpus.labels import Label, is_points, is_size
from resid.corpus.statistics import (
    RESOLUTION,
    Array,
    Arrays,
    Counts,
    DocumentSums,
    LogHistogram,
)
from resid.corpus.totals import Shape, Totals
from resid.results.corpus_norms import QUANTILES, CorpusGrowth, CorpusNorms, Spread
from resid.results.corpus_source import CorpusSource


class NormsTotals(Totals):
    """L2 norms of the stream by point and of what is written by layer, and how they grow.

    Position 0 of what the model reads is kept apart: GPT-2 has massive activations there.
    """

    analysis = "norms"
    labels: ClassVar[Label] = {"points": is_points, "n_layers": is_size}

    def __init__(self, points: Sequence[str], n_layers: int) -> None:
        super().__init__({"points": list(points), "n_layers": n_layers})
        self.points, self.n_layers = tuple(points), n_layers
        writes = [f"{i}.{name}" for name in ("attn_out", "mlp_out") for i in range(n_layers)]
        self.places = (*self.points, *writes)
        # Mean norm [place], mean log norm of L.post [layer], the slope of that log, and the share
        # of growing steps.
        self.rest = DocumentSums(len(self.places) + n_layers + 2)
        self.first = DocumentSums(len(self.places))
        self.spread = LogHistogram(len(self.places))
        self.counted = Counts(2)  # Tokens at position 0, and all others.
        self.parts = {
            "rest": self.rest,
            "first": self.first,
            "spread": self.spread,
            "counted": self.counted,
        }
        depth = np.arange(n_layers) - (n_layers - 1) / 2
        self.slope = depth / (depth**2).sum() if n_layers > 1 else np.zeros(n_layers)

    @classmethod
    def could_hold(cls, shape: Shape, arrays: Arrays) -> bool:
        """See `Totals`."""
        return arrays["spread.counts"].shape[:1] == (len(shape["points"]) + 2 * shape["n_layers"],)

    def take(self, document: Array, norms: Array, at_start: Array) -> None:
        """Take in tokens.

        Args:
            document: [row]
            norms: [place, row]
            at_start: [row] whether it is position 0.
        """
        rest = norms[:, ~at_start]
        by_name = dict(zip(self.places, rest, strict=True))
        with np.errstate(divide="ignore"):
            logs = np.log([by_name[f"{layer}.post"] for layer in range(self.n_layers)])
        logs = np.where(np.isfinite(logs), logs, np.log(np.finfo(np.float32).tiny))
        steps = [by_name["embed"], *(by_name[f"{layer}.post"] for layer in range(self.n_layers))]
        grows = (np.diff(steps, axis=0) > 0).mean(0)
        values = [*rest, *logs, self.slope @ logs, grows]
        self.rest.add(document[~at_start], np.array(values))
        self.first.add(document[at_start], norms[:, at_start])
        self.spread.add(rest)
        self.counted.counts += [at_start.sum(), (~at_start).sum()]

    def result(self, source: CorpusSource) -> CorpusNorms:
        """Means with their standard errors by document, quantiles, growth."""
        mean, error = self.rest.mean(), self.rest.standard_error()
        quantiles = self.spread.quantiles(QUANTILES)
        n, layers = len(self.points), self.n_layers
        first = self.first.mean()

        def spread(begin: int, end: int) -> Spread:
            part = slice(begin, end)
            return Spread(mean[part], error[part], quantiles[part], first[part])

        return CorpusNorms(
            source=source,
            checks=self.result_checks(),
            documents=source.documents,
            tokens=source.tokens,
            not_finite=self.not_finite,
            tokens_at_start=int(self.counted.counts[0]),
            resolution=RESOLUTION,
            points=self.points,
            layers=tuple(range(layers)),
            quantile_shares=QUANTILES,
            l2=spread(0, n),
            attn_out=spread(n, n + layers),
            mlp_out=spread(n + layers, n + 2 * layers),
            growth=self._growth(mean[len(self.places) :], error[len(self.places) :]),
        )

    def _growth(self, mean: Array, error: Array) -> CorpusGrowth:
        logs, slope, steps = mean[: self.n_layers], mean[-2], mean[-1]
        if self.n_layers < 2:
            slope = np.nan
        depth = np.arange(self.n_layers) - (self.n_layers - 1) / 2
        with np.errstate(over="ignore", invalid="ignore"):  # Sums that somebody has made up.
            fitted = logs.mean() + slope * depth
            total = ((logs - logs.mean()) ** 2).sum()
            r_squared = 1 - ((logs - fitted) ** 2).sum() / total if total > 0 else np.nan
            factor = float(np.exp(slope))
            norms = np.exp(fitted)
        return CorpusGrowth(
            per_layer=factor,
            per_layer_se=factor * float(error[-2]),
            r_squared=float(r_squared),
            growing_steps=float(steps),
            growing_steps_se=float(error[-1]),
            fitted_l2=norms,
        )
