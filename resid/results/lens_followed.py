"""The tokens that lead somewhere along the stream, followed through all of its points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from resid.axes import axes
from resid.results.result import Bools, Floats, Ints, Strings


@dataclass(frozen=True)
class Followed:
    """Every token that is on top at some point, position by position.

    The axis `followed` runs through the tokens of the first position, then of the next; within a
    position they come in the order in which they first lead.
    """

    index: Ints = axes("followed")
    """Of the position, along the lens's `pos` axis."""
    ids: Ints = axes("followed")
    """The tokens; none comes twice at one position."""
    tokens: Strings = axes("followed")
    """Display strings of `ids`."""
    logprob: Floats = axes("point followed")
    """Log-probability, nats; NaN where the point is not finite."""
    leads: Bools = axes("point followed")
    """Whether the token is the most probable one; somewhere it is."""

    def at(self, index: int) -> list[int]:
        """Indices along `followed` of one position's tokens, by the position's own index."""
        return [int(i) for i in np.flatnonzero(self.index == index)]

    def data(self, n_positions: int) -> list[list[dict[str, Any]]]:
        """[pos] lists of tokens as JSON's `followed` holds them."""
        return [[self._token(i) for i in self.at(index)] for index in range(n_positions)]

    def _token(self, i: int) -> dict[str, Any]:
        return {"id": self.ids[i], "token": self.tokens[i], "logprob": self.logprob[:, i]}
