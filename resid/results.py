"""Frozen results: numpy arrays and strings with their axes, their source and their proofs.

A result is the end of torch and the beginning of every rendering: tables, figures, JSON and CSV
read nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from resid.axes import axes, check_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.integer[Any]]
Strings = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Source:
    """Where a result comes from: enough to make it again."""

    model: str
    """The model's name or folder, as it was asked for."""
    revision: str | None
    """The commit of a model from the hub, where it is known."""
    n_layers: int
    d_model: int
    d_vocab: int
    dtype: str
    """Of the weights that the model ran with, for example "float32"."""
    device: str
    prompt: str | None
    """The prompt's text; None where ids were given in its place."""
    ids: tuple[int, ...]
    """[pos] the ids that the model read, with the beginning-of-sequence token if there is one."""
    tokens: tuple[str, ...]
    """[pos] display strings of the ids."""
    versions: dict[str, str]
    """Of resid, torch, transformers and numpy."""


@dataclass(frozen=True)
class Check:
    """One identity that the result was held against."""

    name: str
    error: float
    """What was measured: an absolute error, in the units that `tolerance` has."""
    tolerance: float
    passed: bool
    where: str | None = None
    """The place of a failure, for example "3.post at position 2"."""


@dataclass(frozen=True)
class Result:
    """What all results share: a source, checks, and the ways out of them."""

    analysis: ClassVar[str]
    source: Source
    checks: tuple[Check, ...]

    def __post_init__(self) -> None:
        check_axes(self)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that did not pass."""
        return tuple(check for check in self.checks if not check.passed)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The result as flat records, one a line of the CSV file."""
        raise TypeError(f"{type(self).__name__} has no rows")

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """The labels of every axis, as JSON's `axes` holds them."""
        raise TypeError(f"{type(self).__name__} has no axes")

    def data(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        raise TypeError(f"{type(self).__name__} has no data")

    # The three below are conveniences for people who hold a result in their hands. They reach up to
    # render/, which reads results and nothing else, so the import happens at the call.

    def to_json(self, indent: int | None = None) -> str:
        """The whole result as JSON text; what is not finite is null."""
        from resid.render.data import to_json

        return to_json(self, indent=indent)

    def to_csv(self) -> str:
        """The rows as CSV text with a header line."""
        from resid.render.data import to_csv

        return to_csv(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The matplotlib Axes on which the result was drawn: those given, or a new figure's."""
        from resid.render.figure import plot

        return plot(self, ax)


@dataclass(frozen=True)
class Track:
    """One token followed through every point and position."""

    id: int
    token: str
    """Display string of the id."""
    rank: Ints = axes("point pos")
    """1 + the number of tokens with a strictly greater logit."""
    logprob: Floats = axes("point pos")
    """Log-probability, nats."""

    def data(self) -> dict[str, Any]:
        """The track as JSON's `target` and `foil` hold it."""
        return {"id": self.id, "token": self.token, "rank": self.rank, "logprob": self.logprob}


@dataclass(frozen=True)
class LogitLens(Result):
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
    """The first point from which the last point's top token stays on top; None where not finite."""
    flips: Ints = axes("pos")
    """How often the top token changes from one point to the next."""
    target: Track | None = None
    foil: Track | None = None

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`point` and `pos`."""
        return {"point": self.points, "pos": self.positions}

    def data(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        data = {
            "top_ids": self.top_ids,
            "top_tokens": self.top_tokens,
            "top_probs": self.top_probs,
            "entropy": self.entropy,
            "kl_to_final": self.kl_to_final,
            "settled_at": self.settled_at,
            "flips": self.flips,
        }
        tracks = {"target": self.target, "foil": self.foil}
        return data | {name: track.data() for name, track in tracks.items() if track is not None}

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
