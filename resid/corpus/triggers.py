"""The tokens that fire each neuron most, with where they stand and what stands around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from resid.corpus.windows import NONE

Array = npt.NDArray[Any]
Arrays = dict[str, Array]

BEFORE, AFTER = 15, 4
"""Tokens that are kept before and after the one that fires."""


@dataclass(frozen=True)
class Candidates:
    """Tokens that may be among the strongest of some neurons. Axes: candidate."""

    neuron: Array
    activation: Array
    document: Array
    pos: Array
    context: Array
    """[candidate, BEFORE + 1 + AFTER] ids, `NONE` where the window ends."""

    def some(self, chosen: Array) -> Candidates:
        """Some of them, by index."""
        return Candidates(*(getattr(self, name)[chosen] for name in _FIELDS))


_FIELDS = ("neuron", "activation", "document", "pos", "context")


class Triggers:
    """The strongest tokens of every neuron of one layer, the strongest first.

    Of equal activations the earlier document, then the earlier position comes first, so that the
    order in which tokens are seen plays no part.

    Attributes:
        activation: [neuron, k] 0 where there are fewer.
        document, pos: [neuron, k] `NONE` where there are fewer.
        context: [neuron, k, around] ids.
    """

    BYTES = 4 + 8 + 8 + 4 * (BEFORE + 1 + AFTER)
    """Of one token of one neuron."""

    def __init__(self, neurons: int, top: int) -> None:
        self.activation = np.zeros((neurons, top), dtype=np.float32)
        self.document = np.full((neurons, top), NONE, dtype=np.int64)
        self.pos = np.full((neurons, top), NONE, dtype=np.int64)
        self.context = np.full((neurons, top, BEFORE + 1 + AFTER), NONE, dtype=np.int32)

    @property
    def weakest(self) -> Array:
        """[neuron] an activation below which nothing gets in any more."""
        return self.activation[:, -1]

    def add(self, new: Candidates) -> None:
        """Let tokens in that belong here; all activations are above 0."""
        if not len(new.neuron):
            return
        touched = np.unique(new.neuron)
        old = self._candidates(touched)
        pool = Candidates(
            *(np.concatenate([getattr(old, name), getattr(new, name)]) for name in _FIELDS)
        )
        pool = pool.some(_strongest_first(pool))
        begins = np.flatnonzero(np.diff(pool.neuron, prepend=NONE))
        lengths = np.diff(np.append(begins, len(pool.neuron)))
        rank = np.arange(len(pool.neuron)) - np.repeat(begins, lengths)
        kept = np.flatnonzero(rank < self.activation.shape[1])
        pool, rank = pool.some(kept), rank[kept]
        for name in _FIELDS[1:]:
            getattr(self, name)[pool.neuron, rank] = getattr(pool, name)

    def _candidates(self, neurons: Array) -> Candidates:
        """What some neurons have, as candidates."""
        row, k = np.nonzero(self.document[neurons] != NONE)
        at = neurons[row]
        return Candidates(at, *(getattr(self, name)[at, k] for name in _FIELDS[1:]))

    def arrays(self) -> Arrays:
        """All of it, as arrays."""
        return {name: getattr(self, name) for name in _FIELDS[1:]}

    def add_arrays(self, arrays: Arrays) -> None:
        """Add what `arrays` of another, or of an earlier self, has returned."""
        other = Triggers(0, 0)
        for name in _FIELDS[1:]:
            setattr(other, name, arrays[name])
        self.add(other._candidates(np.arange(len(other.activation))))


def _strongest_first(pool: Candidates) -> Array:
    """The order by neuron, by activation, by document and by position."""
    # Bits of positive floats sort like the floats: one key for the neuron and the activation.
    strength = pool.activation.astype(np.float32).view(np.int32).astype(np.int64)
    key = (pool.neuron.astype(np.int64) << 32) - strength
    order = key.argsort(kind="stable")
    if (np.diff(key[order]) == 0).any():
        order = np.lexsort((pool.pos, pool.document, key))
    return order


def surroundings(windows: list[list[int]], nexts: list[int]) -> Array:
    """[window, place, around] for every place, the ids around it; `NONE` outside of the window.

    Args:
        windows: ids, one list for each.
        nexts: the token that follows each, or `NONE`.
    """
    longest = max(map(len, windows))
    ids = np.full((len(windows), BEFORE + longest + AFTER), NONE, dtype=np.int32)
    for row, window, following in zip(ids, windows, nexts, strict=True):
        row[BEFORE : BEFORE + len(window)] = window
        row[BEFORE + len(window)] = following
    around = np.lib.stride_tricks.sliding_window_view(ids, BEFORE + 1 + AFTER, axis=1)
    return around[:, :longest]
