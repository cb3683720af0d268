"""What every result has: a source, checks, axes that fit, and the ways out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from resid.axes import check_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]
Strings = npt.NDArray[np.object_]


class Origin(Protocol):
    """Where any result comes from: a dataclass that says enough to make the result again."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def subject(self) -> str:
        """What the numbers are about, in a few words: a model's name, or what was built."""

    @property
    def revision(self) -> str | None:
        """The commit of a model from the hub; None for anything else."""

    @property
    def versions(self) -> dict[str, str]:
        """Of resid and of the libraries that made the numbers."""


@dataclass(frozen=True)
class Source:
    """Where a reading of a model comes from: enough to make it again."""

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

    @property
    def subject(self) -> str:
        """The model's name."""
        return self.model


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

    @classmethod
    def of_finite(cls, finite: Bools, place: Callable[..., str]) -> Check:
        """The check `finite`: how many numbers are not, and the place of the first of them.

        Args:
            finite: whether each number is, on axes of any kind.
            place: from a number's indices, one an axis, to words for its place.
        """
        lost = np.argwhere(~finite)
        where = place(*map(int, lost[0])) if len(lost) else None
        return cls("finite", float(len(lost)), 0.0, where is None, where)


@dataclass(frozen=True)
class Result:
    """What all results share: a source, checks, and the ways out of them."""

    analysis: ClassVar[str]
    source: Origin
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

    # The four below are conveniences for people who hold a result in their hands. They reach up to
    # render/, which reads results and nothing else, so the import happens at the call.

    def to_json(self, indent: int | None = None) -> str:
        """The whole result as JSON text; what is not finite is null."""
        from resid.render.data import to_json

        return to_json(self, indent=indent)

    def to_csv(self) -> str:
        """The rows as CSV text with a header line."""
        from resid.render.data import to_csv

        return to_csv(self)

    def _repr_html_(self) -> str:
        """What a notebook shows of the result; it prints and draws nothing."""
        from resid.render.html import to_html

        return to_html(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The matplotlib Axes on which the result was drawn: those given, or a new figure's."""
        from resid.render.figure import plot

        return plot(self, ax)


@dataclass(frozen=True)
class ModelResult(Result):
    """A result that was read off one model, on a prompt where it has one."""

    source: Source
