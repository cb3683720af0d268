"""What a corpus reading has found so far: numbers that merge, and the result made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from resid.corpus.labels import Label
from resid.corpus.statistics import Array, Arrays, DocumentSums
from resid.errors import brief
from resid.results import Check, Result
from resid.results.corpus_source import CorpusSource

Shape = dict[str, Any]


class Part(Protocol):
    """A statistic that merges."""

    def arrays(self) -> Arrays:
        """All of it, as arrays."""

    def add_arrays(self, arrays: Arrays) -> None:
        """Add what `arrays` of another has returned."""


@dataclass(frozen=True)
class Worst:
    """The largest error that an identity was found to have, beside its tolerance."""

    error: float
    tolerance: float
    document: int

    def key(self) -> tuple[float, int]:
        """Larger is worse; what is not a number is worst, and the earliest document tells of it."""
        ratio = self.error / self.tolerance
        return (ratio if ratio == ratio else float("inf"), -self.document)


class Totals(ABC):
    """The statistics of one analysis over what was read.

    Attributes:
        shape: what the constructor was given, as JSON can hold it.
        parts: the statistics by name.
        constants: arrays that depend on the model alone, by name.
        checks: by name, the worst that was measured.
        not_finite: tokens left out because a number was not finite.
        not_finite_at: document and position of the first of them.
    """

    analysis: ClassVar[str]
    labels: ClassVar[Label]
    """What `shape` holds."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.parts: dict[str, Part] = {}
        self.constants: Arrays = {}
        self.checks: dict[str, Worst] = {}
        self.not_finite = 0
        self.not_finite_at: tuple[int, int] | None = None

    @classmethod
    @abstractmethod
    def could_hold(cls, shape: Shape, arrays: Arrays) -> bool:
        """Whether arrays are as large as a shape says; asked before anything is made so large."""

    @abstractmethod
    def result(self, source: CorpusSource) -> Result:
        """The result, whose numbers say what the statistics do."""

    def close(self) -> None:
        """The documents that were read have been read to their ends."""
        for part in self.parts.values():
            if isinstance(part, DocumentSums):
                part.close()

    def check(self, name: str, measured: Worst) -> None:
        """Remember an identity's error, if it is the worst so far."""
        if name not in self.checks or measured.key() > self.checks[name].key():
            self.checks[name] = measured

    def leave_out(self, document: Array, pos: Array) -> None:
        """Count tokens [row] that are not finite."""
        if len(document):
            self.not_finite += len(document)
            first = min(zip(document.tolist(), pos.tolist(), strict=True))
            self.not_finite_at = min(first, self.not_finite_at or first)

    def record(self) -> dict[str, Any]:
        """What is not in arrays, as JSON can hold it."""
        return {
            "shape": self.shape,
            "checks": {
                name: [worst.error, worst.tolerance, worst.document]
                for name, worst in sorted(self.checks.items())
            },
            "not_finite": self.not_finite,
            "not_finite_at": self.not_finite_at,
        }

    def arrays(self) -> Arrays:
        """Every array by name."""
        found = {f"constant.{name}": array for name, array in self.constants.items()}
        for name, part in self.parts.items():
            found |= {f"{name}.{key}": array for key, array in part.arrays().items()}
        return found

    def add(self, record: Mapping[str, Any], arrays: Arrays) -> None:
        """Add what `record` and `arrays` of another, or of an earlier self, have returned.

        Raises:
            ValueError: they are of another shape.
        """
        self._refuse_others(arrays)
        for name, part in self.parts.items():
            inside = {key: array for key, array in arrays.items() if key.startswith(f"{name}.")}
            part.add_arrays({key.removeprefix(f"{name}."): a for key, a in inside.items()})
        for key, array in arrays.items():
            if key.startswith("constant."):
                self.constants[key.removeprefix("constant.")] = array
        for name, (error, tolerance, document) in record["checks"].items():
            self.check(name, Worst(error, tolerance, document))
        self.not_finite += record["not_finite"]
        if record["not_finite_at"] is not None:
            document, pos = record["not_finite_at"]
            first = (int(document), int(pos))
            self.not_finite_at = min(first, self.not_finite_at or first)

    def _refuse_others(self, arrays: Arrays) -> None:
        """Refuse arrays that would not fit, or would be stretched until they do."""
        own = {key: a for key, a in self.arrays().items() if not key.startswith("constant.")}
        for key, array in own.items():
            if key not in arrays:
                raise ValueError(f"{key} is missing")
            other = arrays[key]
            # Of documents that are still open there may be any number.
            free = int(key.endswith((".open", ".open_sums")))
            alike = (other.dtype, other.ndim) == (array.dtype, array.ndim)
            if not alike or other.shape[free:] != array.shape[free:]:
                raise ValueError(f"{key} is {list(other.shape)} numbers of {other.dtype}")
            if array.dtype.kind == "f" and not np.isfinite(other).all():
                raise ValueError(f"{key} holds what is not finite")
            if key.endswith(".counts") and (other < 0).any():
                raise ValueError(f"{key} holds negative counts")
        constants = {}
        for key, array in arrays.items():
            if key.startswith("constant."):
                constants[key.removeprefix("constant.")] = array
            elif key not in own:
                raise ValueError(f"{brief(key)} is unknown")
        self.refuse_constants(constants, arrays)

    def refuse_constants(self, constants: Arrays, arrays: Arrays) -> None:
        """Refuse constants that this analysis does not have, or that its arrays do not fit.

        Raises:
            ValueError: naming what is wrong.
        """
        for name in constants:
            raise ValueError(f"{brief(name)} is unknown")

    def files_named(self) -> int:
        """How many files the text must have, at least, for what is kept to be in it."""
        return 0

    def result_checks(self) -> tuple[Check, ...]:
        """The checks that the result carries."""
        made = []
        for name, worst in sorted(self.checks.items()):
            passed = worst.error <= worst.tolerance
            where = None if passed else f"document {worst.document}"
            made.append(Check(name, worst.error, worst.tolerance, passed, where))
        where = None
        if self.not_finite_at is not None:
            where = "document {} at position {}".format(*self.not_finite_at)
        made.append(Check("finite", float(self.not_finite), 0.0, not self.not_finite, where))
        return tuple(made)


def split_rows(values: Array, rows: int) -> tuple[Array, ...]:
    """An array [quantity, ...] as neighbouring parts of so many quantities."""
    return tuple(np.split(values, range(rows, len(values), rows)))
