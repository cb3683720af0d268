"""What the results of all experiments share: how they were made, and what was found."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from resid.results.result import Result


@dataclass(frozen=True)
class LabSource:
    """Where an experiment's numbers come from: enough to make them again."""

    experiment: str
    """Its name on the command line, for example "depth"."""
    subject: str
    """What the numbers are about, in a few words: a model's name, or what was built."""
    settings: dict[str, Any]
    """Everything that decides the numbers beside the seed, by name, in the order that is shown."""
    seed: int | None
    """Of whatever was drawn; None where nothing was."""
    versions: dict[str, str]
    """Of resid and of the libraries that made the numbers."""
    revision: str | None = None
    """The commit of a model from the hub; None for anything else."""


@dataclass(frozen=True)
class LabResult(Result):
    """The result of an experiment.

    A subclass gives `finding`, and its arrays through `measured`, to which `data` adds the finding.
    """

    source: LabSource

    @property
    def finding(self) -> str:
        """What was found, in one plain sentence made from the numbers of this result."""
        raise TypeError(f"{type(self).__name__} has no finding")

    def measured(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        raise TypeError(f"{type(self).__name__} has no data")

    def data(self) -> dict[str, Any]:
        """The finding, then the arrays under the names that JSON's `data` has for them."""
        return {"finding": self.finding} | self.measured()


def brief(value: float) -> str:
    """A number in a sentence, in two significant digits or whole: 0.0064, 2e-13, 1,099, 3.5e9."""
    if not math.isfinite(value):
        return "n/a"
    if 100 <= abs(value) < 1_000_000:
        return f"{value:,.0f}"
    return re.sub(r"e([+-])0*", r"e\1", f"{value:.2g}").replace("e+", "e")
