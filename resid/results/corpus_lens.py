"""The result of the logit lens over text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from resid.axes import axes
from resid.results.corpus_source import CorpusSource
from resid.results.result import Floats, Ints, Result

_MEANS = ("cross_entropy", "kl_to_final", "entropy", "agreement")


@dataclass(frozen=True)
class CorpusLens(Result):
    """What every point of the stream says of the next token, averaged over a text.

    Standard errors are by document: documents, not tokens, are what is drawn at random.
    """

    analysis: ClassVar[str] = "corpus_lens"
    source: CorpusSource
    documents: int
    """With at least one token."""
    tokens: int
    """Tokens of text read, each once."""
    not_finite: int
    """Those left out because a number was not finite: KL, entropy, agreement and settling are over
    all others."""
    scored: int
    """Tokens that are predicted, what cross-entropy is over: all but each document's first and
    those left out."""
    points: tuple[str, ...] = axes("point")
    """The points in stream order, shallowest first."""
    cross_entropy: Floats = axes("point")
    """Mean of -log probability of the true next token, nats; at the last point the model's loss."""
    cross_entropy_se: Floats = axes("point")
    kl_to_final: Floats = axes("point")
    """Mean KL(final || point), nats."""
    kl_to_final_se: Floats = axes("point")
    entropy: Floats = axes("point")
    """Mean entropy of the decoded distribution, nats."""
    entropy_se: Floats = axes("point")
    agreement: Floats = axes("point")
    """Share of tokens at which the point's top token is the model's own."""
    agreement_se: Floats = axes("point")
    settled_histogram: Ints = axes("point")
    """At how many tokens the model's own top token is on top from this point on, and not before."""

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`point`."""
        return {"point": self.points}

    def data(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        names = [name + end for name in _MEANS for end in ("", "_se")]
        counts = {
            name: getattr(self, name) for name in ("documents", "tokens", "not_finite", "scored")
        }
        means = {name: getattr(self, name) for name in names}
        return counts | means | {"settled_histogram": self.settled_histogram}

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every point, shallowest first."""
        for i, point in enumerate(self.points):
            row: dict[str, Any] = {"point": point}
            for name in _MEANS:
                row[name] = getattr(self, name)[i]
                row[f"{name}_se"] = getattr(self, f"{name}_se")[i]
            yield row | {"settled": self.settled_histogram[i]}
