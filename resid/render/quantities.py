"""What a cell of the lens may show beside its token, for the grid and for the figure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from resid.errors import ResidError
from resid.results import Floats, Ints, LogitLens

SHOWN = ("prob", "entropy", "kl", "rank", "margin")
Scale = Literal["share", "linear", "log"]


@dataclass(frozen=True)
class Quantity:
    """One number for every cell of the lens, with its name and its scale."""

    name: str
    """What is measured, with its unit."""
    token: str | None
    """The display string of the token of which it is measured, if it is always the same one."""
    values: Floats
    """[point, pos] the numbers; NaN where the point is not finite."""
    scale: Scale
    """A share lies between 0 and 1; a log scale begins at 1."""
    more_is_surer: bool
    """Whether a large value means that the point is sure of its token, or near the last point."""

    @property
    def limits(self) -> tuple[float, float]:
        """What the ends of its scale stand for: fixed where the quantity has ends of its own."""
        low, least = {"share": (0.0, 1.0), "linear": (0.0, 1e-6), "log": (1.0, 10.0)}[self.scale]
        finite = self.values[np.isfinite(self.values)]
        return low, least if self.scale == "share" else max([least, *finite.tolist()])


def lens_quantity(lens: LogitLens, show: str) -> Quantity:
    """The quantity that `show` names: prob, entropy, kl, margin, or the target's rank.

    Raises:
        ResidError: there is no such quantity, or rank is asked for without a target.
    """
    if show == "prob":
        return _quantity(lens, "probability of the top token", lens.top_probs[:, :, 0], "share")
    if show == "entropy":
        return _quantity(lens, "entropy, nats", lens.entropy, "linear")
    if show == "kl":
        return _quantity(lens, "KL(final || point), nats", lens.kl_to_final, "linear")
    if show == "margin":
        name = "margin of the top token, nats"
        return replace(_quantity(lens, name, lens.margin, "linear"), more_is_surer=True)
    if show != "rank":
        raise ResidError(f"there is no {show!r} to show; choose one of {', '.join(SHOWN)}")
    if lens.target is None:
        raise ResidError('the rank of which token? name it, for example --target " Paris"')
    return _quantity(lens, "rank", lens.target.rank, "log", lens.target.token)


def _quantity(
    lens: LogitLens, name: str, values: Floats | Ints, scale: Scale, token: str | None = None
) -> Quantity:
    finite = (lens.top_ids[:, :, 0] >= 0) & np.isfinite(values)
    shown = np.where(finite, values, np.nan)
    return Quantity(name, token, shown, scale, more_is_surer=scale == "share")
