"""What the three readings of a corpus share: rows out of a padded batch, and a sample to check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from resid.corpus.batches import Batch
from resid.corpus.totals import Totals
from resid.forward_pass import evaluating
from resid.model import Model
from resid.recording import recording

# Positions of each packet at which a reading is held against the model itself.
_SAMPLED = 64


@dataclass(frozen=True)
class Sample:
    """The beginning of one window, in which a reading checks itself."""

    window: int
    """Which window of the batch."""
    ids: list[int]
    """What the model reads up to there."""
    first: int
    """The first place that counts."""

    def part(self, passing: torch.Tensor) -> torch.Tensor:
        """[place, width] its part of [window, place, width], from the first place that counts."""
        return passing[self.window, self.first : len(self.ids)]


class Reading(ABC):
    """One analysis of one model, batch after batch.

    Attributes:
        model: that is read.
        totals: what was found so far.
    """

    def __init__(self, model: Model, totals: Totals) -> None:
        self.model, self.totals = model, totals

    @abstractmethod
    def read(self, batch: Batch, first: bool) -> None:
        """Run the model over a batch, without logits, and take in what it shows.

        Args:
            batch: of windows.
            first: whether it is the first of its packet, in which the reading is checked.
        """


class RecordedReading(Reading):
    """A reading of the stream, which takes a batch in when the model has gone through it.

    Attributes:
        points: what to record, see `resid.points.resolve`.
        checked: what to record beside it where the reading is checked.
    """

    points: str
    checked: str = ""

    def read(self, batch: Batch, first: bool) -> None:
        """Record a batch, and take it in."""
        with evaluating(self.model.hf), torch.no_grad():
            points = f"{self.points},{self.checked}" if first and self.checked else self.points
            with recording(self.model, points) as captured:
                self.model.run_blocks(batch.ids)
            self.take(batch, Rows(batch, captured), sample_of(batch) if first else None)

    @abstractmethod
    def take(self, batch: Batch, rows: Rows, sample: Sample | None) -> None:
        """Take in what was recorded; with a sample, also check it there."""


class Rows:
    """What a batch left behind, by name: only the positions that count."""

    def __init__(self, batch: Batch, captured: Mapping[str, torch.Tensor]) -> None:
        self.batch, self.captured = batch, captured

    def __getitem__(self, name: str) -> torch.Tensor:
        """[row, width] of the positions that count."""
        return rows_of(self.batch, self.captured[name])

    def of(self, name: str, sample: Sample) -> torch.Tensor:
        """[place, width] a sample's part, from its first place that counts."""
        return sample.part(self.captured[name])


def rows_of(batch: Batch, passing: torch.Tensor) -> torch.Tensor:
    """[row, width] the positions that count, of [window, place, width]."""
    if batch.whole:
        return passing.flatten(0, 1)
    window, place = (torch.from_numpy(at).to(passing.device) for at in (batch.window, batch.place))
    return passing[window, place]


def sample_of(batch: Batch) -> Sample:
    """Of the window that counts from the earliest place on."""
    window = min(range(len(batch.windows)), key=lambda i: batch.windows[i].counted)
    ids = batch.ids[window]
    first = batch.windows[window].counted + (batch.bos is not None)
    return Sample(window, ids[: first + _SAMPLED], first)
