"""The logit lens over text, as numbers that merge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from resid.corpus.labels import Label, is_points
from resid.corpus.statistics import Arrays, Counts, DocumentSums
from resid.corpus.totals import Shape, Totals, split_rows
from resid.results.corpus_lens import CorpusLens
from resid.results.corpus_source import CorpusSource


class LensTotals(Totals):
    """Cross-entropy, KL, entropy and agreement by point, and where predictions settle."""

    analysis = "lens"
    labels: ClassVar[Label] = {"points": is_points}

    def __init__(self, points: Sequence[str]) -> None:
        super().__init__({"points": list(points)})
        self.points = tuple(points)
        n = len(self.points)
        # Over tokens that have a next one: cross-entropy [point].
        self.scored = DocumentSums(n)
        # Over all tokens: KL, entropy, agreement [3 x point].
        self.read = DocumentSums(3 * n)
        self.settled = Counts(n)
        self.parts = {"scored": self.scored, "read": self.read, "settled": self.settled}

    @classmethod
    def could_hold(cls, shape: Shape, arrays: Arrays) -> bool:
        """See `Totals`."""
        return arrays["settled.counts"].shape == (len(shape["points"]),)

    def result(self, source: CorpusSource) -> CorpusLens:
        """Means with their standard errors by document."""
        n = len(self.points)
        kl, entropy, agreement = split_rows(self.read.mean(), n)
        kl_se, entropy_se, agreement_se = split_rows(self.read.standard_error(), n)
        return CorpusLens(
            source=source,
            checks=self.result_checks(),
            documents=source.documents,
            tokens=source.tokens,
            not_finite=self.not_finite,
            scored=self.scored.tokens,
            points=self.points,
            cross_entropy=self.scored.mean(),
            cross_entropy_se=self.scored.standard_error(),
            kl_to_final=kl,
            kl_to_final_se=kl_se,
            entropy=entropy,
            entropy_se=entropy_se,
            agreement=agreement,
            agreement_se=agreement_se,
            settled_histogram=self.settled.counts.copy(),
        )
