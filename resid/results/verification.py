"""The result of verification: every check on every prompt, and the worst of each kind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from resid.axes import axes
from resid.results.result import Check, ModelResult


@dataclass(frozen=True)
class Line:
    """One kind of check in one number format: the run that came closest to failing, or failed."""

    group: str
    dtype: str
    check: Check
    prompt: int | None
    """Index of the prompt of that run; None where the check is of the model as a whole."""
    runs: int
    """How many times it was made."""

    @property
    def place(self) -> str:
        """Where it failed, or which prompt came closest."""
        if self.check.where is not None:
            return self.check.where
        return "the model" if self.prompt is None else f"prompt {self.prompt}"


@dataclass(frozen=True)
class Verification(ModelResult):
    """A certificate: whether this model, on this machine, gives numbers that prove themselves."""

    analysis: ClassVar[str] = "verify"
    checks: tuple[Check, ...] = axes("check")
    groups: tuple[str, ...] = axes("check")
    """identities, recording, batching or unembedding."""
    dtypes: tuple[str, ...] = axes("check")
    """The number format that the check was made in: the model's own, or float64."""
    runs: tuple[int | None, ...] = axes("check")
    """Index of the prompt that was read; None where the check is of the model as a whole."""
    prompts: tuple[str | None, ...] = axes("prompt")
    """Texts; None where ids were given or drawn in their place."""
    prompt_ids: tuple[tuple[int, ...], ...] = axes("prompt")

    @property
    def passed(self) -> bool:
        """Whether every check did."""
        return not self.failures

    def lines(self) -> list[Line]:
        """The checks, one line for all prompts, in the order in which they were made."""
        made: dict[tuple[str, str, str], list[tuple[int | None, Check]]] = {}
        for group, dtype, prompt, check in self._each():
            made.setdefault((dtype, group, check.name), []).append((prompt, check))
        found = []
        for (dtype, group, _), runs in made.items():
            prompt, check = max(runs, key=lambda run: strain(run[1]))
            found.append(Line(group, dtype, check, prompt, len(runs)))
        return found

    def _each(self) -> Iterator[tuple[str, str, int | None, Check]]:
        return zip(self.groups, self.dtypes, self.runs, self.checks, strict=True)

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`check`, by name and as often as it was made, and `prompt`."""
        return {
            "check": [check.name for check in self.checks],
            "prompt": list(range(len(self.prompts))),
        }

    def data(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        texts = zip(self.prompts, self.prompt_ids, strict=True)
        return {
            "passed": self.passed,
            "prompts": [{"prompt": prompt, "ids": ids} for prompt, ids in texts],
            "groups": [
                {
                    "group": line.group,
                    "dtype": line.dtype,
                    "check": line.check.name,
                    "error": line.check.error,
                    "tolerance": line.check.tolerance,
                    "passed": line.check.passed,
                    "prompt": line.prompt,
                    "runs": line.runs,
                }
                for line in self.lines()
            ],
            "group": self.groups,
            "dtype": self.dtypes,
            "run": self.runs,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every check on every prompt."""
        for group, dtype, prompt, check in self._each():
            yield {
                "group": group,
                "dtype": dtype,
                "check": check.name,
                "prompt": prompt,
                "error": check.error,
                "tolerance": check.tolerance,
                "passed": check.passed,
                "where": check.where,
            }


def strain(check: Check) -> float:
    """The error in units of the tolerance; infinite where the check failed."""
    if not check.passed:
        return math.inf
    return check.error / check.tolerance if check.tolerance else 0.0
