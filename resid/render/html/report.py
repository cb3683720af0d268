"""What one page shows of one prompt on one model: all readings there are, each in its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from resid.results import (
    Attribution,
    LogitLens,
    MlpMemory,
    ParamComparison,
    ParamCount,
    Result,
    Source,
    StreamNorms,
)


@dataclass(frozen=True)
class Report:
    """The readings of one prompt on one model, as the page's panels need them."""

    source: Source
    lens: LogitLens | None = None
    norms: StreamNorms | None = None
    memory: MlpMemory | None = None
    attributions: tuple[Attribution, ...] = ()
    """One for every position that is explained."""
    params: tuple[ParamCount, ...] = ()
    """The model's; several where models were compared."""

    @classmethod
    def of(cls, results: Iterable[Result]) -> Report:
        """The report that holds these results.

        Raises:
            TypeError: there are none, or one of them has no panel; see `has_panel`.
        """
        found: dict[str, Result] = {}
        attributions: list[Attribution] = []
        params: list[ParamCount] = []
        source: Source | None = None
        for result in results:
            if isinstance(result, Attribution):
                attributions.append(result)
            elif isinstance(result, ParamCount):
                params.append(result)
            elif isinstance(result, ParamComparison):
                params += result.counts
            elif type(result) in _PANELS:
                found[_PANELS[type(result)]] = result
            else:
                raise TypeError(f"{type(result).__name__} has no panel")
            assert isinstance(result.source, Source)  # As all of these have.
            # Counting parameters knows the model and no prompt.
            if source is None or (not source.ids and result.source.ids):
                source = result.source
        if source is None:
            raise TypeError("a report needs a result")
        return cls(source, attributions=tuple(attributions), params=tuple(params), **found)  # type: ignore[arg-type]

    @property
    def subject(self) -> str:
        """The model's name; the names of all where several were compared."""
        if len(self.params) > 1:
            return ", ".join(count.source.model for count in self.params)
        return self.source.model

    @property
    def results(self) -> list[Result]:
        """All of them, in the order of the page."""
        single = (self.lens, self.norms, *self.attributions, self.memory, *self.params)
        return [result for result in single if result is not None]


def has_panel(result: Result) -> bool:
    """Whether the page shows this kind of result as more than its table."""
    return isinstance(result, (Attribution, ParamCount, ParamComparison, *_PANELS))


_PANELS: dict[type[Result], str] = {LogitLens: "lens", StreamNorms: "norms", MlpMemory: "memory"}
