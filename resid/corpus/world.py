"""Which of several processes this one is, as torchrun says it."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class World:
    """The processes of a run.

    Attributes:
        rank: which one this is, from 0.
        size: how many there are.
        local_rank: which one of those on this machine.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def is_first(self) -> bool:
        """Whether this process writes the result."""
        return self.rank == 0


def find_world() -> World:
    """The processes that torchrun has started, or this one alone."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    if not all(name in os.environ for name in names):
        return World()
    rank, size, local_rank = (int(os.environ[name]) for name in names[:3])
    return World(rank, size, local_rank)
