"""The result of the logit lens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from resid.axes import axes
from resid.results.lens_baseline import Baseline
from resid.results.lens_followed import Followed
from resid.results.result import Floats, Ints, ModelResult, Strings


@dataclass(frozen=True)
class Track:
    """One token followed through every point and position."""

    id: int
    token: str
    """Display string of the id."""
    rank: Ints = axes("point pos")
    """1 + the number of tokens with a strictly greater logit; 0 where the point is not finite."""
    logprob: Floats = axes("point pos")
    """Log-probability, nats."""

    def data(self) -> dict[str, Any]:
        """The track as JSON's `target` and `foil` hold it."""
        rank = self.rank.astype(object)
        rank[self.rank == 0] = None
        return {"id": self.id, "token": self.token, "rank": rank, "logprob": self.logprob}


@dataclass(frozen=True)
class Own:
    """What the model itself says at each position, followed through every point."""

    ids: Ints = axes("pos")
    """The most probable token of the model's own prediction; -1 where that is not finite."""
    tokens: Strings = axes("pos")
    """Display strings of `ids`."""
    rank: Ints = axes("point pos")
    """As a track's: 1 + the number of tokens with a strictly greater logit."""
    logprob: Floats = axes("point pos")
    """Log-probability, nats."""

    def data(self) -> dict[str, Any]:
        """As JSON's `own` holds it."""
        rank = self.rank.astype(object)
        rank[self.rank == 0] = None
        ids = self.ids.astype(object)
        ids[self.ids < 0] = None
        return {"id": ids, "token": self.tokens, "rank": rank, "logprob": self.logprob}


@dataclass(frozen=True)
class LogitLens(ModelResult):
    """Every chosen point of the stream, decoded as if it were the last one."""

    analysis: ClassVar[str] = "logit_lens"
    points: tuple[str, ...] = axes("point")
    """The points in stream order, shallowest first."""
    positions: tuple[int, ...] = axes("pos")
    """The positions decoded, indices into `source.ids`; position p predicts token p + 1."""
    top_ids: Ints = axes("point pos k")
    """Most probable tokens, best first; -1 where the point is not finite."""
    top_tokens: Strings = axes("point pos k")
    """Display strings of `top_ids`; empty where the point is not finite."""
    top_probs: Floats = axes("point pos k")
    """Their probabilities."""
    entropy: Floats = axes("point pos")
    """Entropy of the decoded distribution, nats."""
    kl_to_final: Floats = axes("point pos")
    """KL(final || point): from the model's own prediction to the decoded one, nats."""
    settled_at: tuple[str | None, ...] = axes("pos")
    """The first point from which the model's own top token stays on top to the end; None where it
    is not on top at the last of `points`, or not finite."""
    flips: Ints = axes("pos")
    """How often the top token changes from one point to the next."""
    margin: Floats = axes("point pos")
    """Log-probability of the top token minus that of the second, nats; 0 is a tie."""
    target: Track | None = None
    foil: Track | None = None
    followed: Followed | None = None
    """The tokens that are on top at some point, at all points; where they were asked for."""
    own: Own | None = None
    """The model's own top tokens at all points; where they were asked for."""
    baseline: Baseline | None = None
    """What streams that carry nothing decode to; where that was asked for."""

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`point` and `pos`."""
        return {"point": self.points, "pos": self.positions}

    def data(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        data: dict[str, Any] = {
            "top_ids": self.top_ids,
            "top_tokens": self.top_tokens,
            "top_probs": self.top_probs,
            "entropy": self.entropy,
            "kl_to_final": self.kl_to_final,
            "settled_at": self.settled_at,
            "flips": self.flips,
            "margin": self.margin,
        }
        for name in ("target", "foil", "own", "baseline"):
            if (part := getattr(self, name)) is not None:
                data[name] = part.data()
        if self.followed is not None:
            data["followed"] = self.followed.data(len(self.positions))
        return data

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every point and position, shallowest point first."""
        for i, point in enumerate(self.points):
            for j, position in enumerate(self.positions):
                row: dict[str, Any] = {
                    "point": point,
                    "pos": position,
                    "input_id": self.source.ids[position],
                    "input_token": self.source.tokens[position],
                    "entropy": self.entropy[i, j],
                    "kl_to_final": self.kl_to_final[i, j],
                    "settled_at": self.settled_at[j],
                    "flips": self.flips[j],
                    "margin": self.margin[i, j],
                }
                for name, track in (("target", self.target), ("foil", self.foil)):
                    if track is not None:
                        row[f"{name}_id"] = track.id
                        row[f"{name}_token"] = track.token
                        row[f"{name}_rank"] = track.rank[i, j]
                        row[f"{name}_logprob"] = track.logprob[i, j]
                for k in range(self.top_ids.shape[2]):
                    row[f"top{k + 1}_id"] = self.top_ids[i, j, k]
                    row[f"top{k + 1}_token"] = self.top_tokens[i, j, k]
                    row[f"top{k + 1}_prob"] = self.top_probs[i, j, k]
                yield row
