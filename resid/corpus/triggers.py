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
    file: Array
    line: Array
    pos: Array
    context: Array
    """[candidate, BEFORE + 1 + AFTER] ids, `NONE` where the window ends."""


_FIELDS = ("neuron", "activation", "document", "file", "line", "pos", "context")


class Triggers:
    """The strongest tokens of every neuron of one layer, the strongest first.

    Of equal activations the earlier document, then the earlier position comes first, so that the
    order in which tokens are seen plays no part.

    Attributes:
        activation: [neuron, k] 0 where there are fewer.
        document, file, line, pos: [neuron, k] `NONE` where there are fewer.
        context: [neuron, k, around] ids.
    """

    BYTES = 4 + 8 + 4 + 8 + 8 + 4 * (BEFORE + 1 + AFTER)
    """Of one token of one neuron."""

    def __init__(self, neurons: int, top: int) -> None:
        self.activation = np.zeros((neurons, top), dtype=np.float32)
        self.document = np.full((neurons, top), NONE, dtype=np.int64)
        self.file = np.full((neurons, top), NONE, dtype=np.int32)
        self.line = np.full((neurons, top), NONE, dtype=np.int64)
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
        held = self._held(np.flatnonzero(np.bincount(new.neuron)))
        old = {name: self._flat(name)[held] for name in ("activation", "document", "pos")}
        order, neuron = _strongest_first(
            np.concatenate([held // self.top, new.neuron]),
            *(np.concatenate([old[name], getattr(new, name)]) for name in old),
        )
        begins = np.flatnonzero(np.diff(neuron, prepend=NONE))
        rank = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
        kept = rank < self.top
        order, place = order[kept], (neuron * self.top + rank)[kept]
        # Most of what was held stays where it was: only what moves and what is new is written.
        entering = order >= len(held)
        entered, chosen = place[entering], order[entering] - len(held)
        target, source = place[~entering], held[order[~entering]]
        moves = target != source
        target, source = target[moves], source[moves]
        for name in _FIELDS[1:]:
            field = self._flat(name)
            # To take is to copy: nothing is overwritten before it has moved.
            field[target] = field.take(source, axis=0)
            field[entered] = getattr(new, name).take(chosen, axis=0)

    @property
    def top(self) -> int:
        """Tokens that are kept of every neuron, at most."""
        return self.activation.shape[1]

    def _flat(self, name: str) -> Array:
        """A field by place, which is neuron * top + k: the same memory."""
        field: Array = getattr(self, name)
        return field.reshape(-1, *field.shape[2:])

    def _held(self, neurons: Array) -> Array:
        """The places at which some neurons have a token."""
        place = (neurons[:, None] * self.top + np.arange(self.top)).ravel()
        has: Array = self._flat("document")[place] != NONE
        return place[has]

    def arrays(self) -> Arrays:
        """All of it, as arrays."""
        return {name: getattr(self, name) for name in _FIELDS[1:]}

    def add_arrays(self, arrays: Arrays) -> None:
        """Add what `arrays` of another, or of an earlier self, has returned."""
        other = Triggers(0, 0)
        for name in _FIELDS[1:]:
            setattr(other, name, arrays[name])
        held = other._held(np.arange(len(other.activation)))
        self.add(Candidates(held // other.top, *(other._flat(n)[held] for n in _FIELDS[1:])))


def _strongest_first(
    neuron: Array, activation: Array, document: Array, pos: Array
) -> tuple[Array, Array]:
    """The order by neuron, by activation, by document and by position; and the neurons in it."""
    # Bits of positive floats sort like the floats: one key for the neuron and the activation.
    strength = activation.astype(np.float32).view(np.int32).astype(np.int64)
    key = (neuron.astype(np.int64) << 32) - strength
    order = key.argsort(kind="stable")
    if (np.diff(key[order]) == 0).any():
        order = np.lexsort((pos, document, key))
    return order, neuron[order]


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
