"""Which positions and which points of two reports stand side by side."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

Pairs = list[tuple[int, int]]


def align_positions(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """Indices that belong together in two prompts.

    Prompts of one length are aligned position by position. Where one is longer, what both begin
    with is aligned from the start and the rest from the end, so that the last positions, which
    make the predictions that one compares, meet; the surplus in between has no partner.

    Args:
        a: the tokens of one.
        b: the tokens of the other.
    """
    shorter = min(len(a), len(b))
    if len(a) == len(b):
        return [(i, i) for i in range(shorter)]
    same = 0
    while same < shorter - 1 and a[same] == b[same]:
        same += 1
    start = [(i, i) for i in range(same)]
    rest = shorter - same
    return start + [(len(a) - rest + i, len(b) - rest + i) for i in range(rest)]


def align_points(a: Sequence[str], b: Sequence[str]) -> Pairs:
    """Indices of points at the same relative depth: every point of the longer list has a partner.

    Both lists begin and end together; of the shorter one the nearest point is taken, the deeper of
    two that are equally near.

    Args:
        a: the points of one, shallowest first.
        b: the points of the other.
    """
    if len(a) < len(b):
        return [(i, j) for j, i in align_points(b, a)]
    if len(b) == 1:
        return [(len(a) - 1, 0)]
    scale = (len(b) - 1) / max(1, len(a) - 1)
    return [(i, min(len(b) - 1, int(i * scale + 0.5))) for i in range(len(a))]
