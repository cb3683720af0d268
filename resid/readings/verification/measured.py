"""Errors on two axes, made into a check that names the place of the largest."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from resid.results import Check


def exact(vectors: torch.Tensor) -> torch.Tensor:
    """In float64 on the CPU, where every device's numbers can be held against each other."""
    return vectors.detach().cpu().double()


def worst(
    name: str,
    errors: torch.Tensor,
    tolerance: float,
    places: Sequence[str],
    positions: Sequence[int],
) -> Check:
    """The check of the largest of errors [place, pos]; one that is not a number is larger yet."""
    assert errors.shape == (len(places), len(positions))
    i, j = divmod(int(torch.nan_to_num(errors, nan=torch.inf).argmax()), len(positions))
    error = float(errors[i, j])
    passed = error <= tolerance
    where = f"{places[i]} at position {positions[j]}"
    return Check(name, error, tolerance, passed, None if passed else where)
