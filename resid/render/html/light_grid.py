"""The lens as a small table of coloured cells that needs neither script nor style sheet."""

from __future__ import annotations

import math
from dataclasses import dataclass

from resid.render.words import nats, probability
from resid.results import LogitLens
from resid.tokens import mark_spaces, quote

MOST_POSITIONS = 24
# From pale to dark, as in the page and in the figures.
_RAMP = (
    "#f7fbff",
    "#deebf7",
    "#c6dbef",
    "#9ecae1",
    "#6baed6",
    "#4292c6",
    "#2171b5",
    "#08519c",
    "#08306b",
)
# White has more contrast with these than black has (W3C relative luminance).
_FIRST_DARK = 6


@dataclass(frozen=True)
class Cell:
    """One point at one position."""

    token: str
    colour: str
    ink: str
    told: str
    """What stands there when one points at it."""
    settles: bool
    """Whether the final answer stays on top from here up."""


@dataclass(frozen=True)
class Row:
    """One point at all positions shown."""

    point: str
    cells: list[Cell]


@dataclass(frozen=True)
class LightGrid:
    """The rows from the deepest point down, and the tokens that were read."""

    rows: list[Row]
    inputs: list[str]
    caption: str

    @classmethod
    def of(cls, lens: LogitLens) -> LightGrid:
        """The last positions of the lens, as many as a notebook has room for."""
        n = len(lens.positions)
        shown = range(max(0, n - MOST_POSITIONS), n)
        rows = [
            Row(point, [_cell(lens, i, j) for j in shown]) for i, point in enumerate(lens.points)
        ]
        inputs = [
            f"{lens.positions[j]} {mark_spaces(lens.source.tokens[lens.positions[j]])}"
            for j in shown
        ]
        caption = "darker: a more probable top token; orange: from here up the answer stays on top"
        if len(shown) < n:
            caption += f"; the last {len(shown)} of {n} positions"
        return cls(rows[::-1], inputs, caption)


def _cell(lens: LogitLens, i: int, j: int) -> Cell:
    probs = lens.top_probs[i, j]
    if not math.isfinite(probs[0]):
        return Cell("n/a", "#ffffff", "#b00020", "not finite at this point", False)
    step = min(len(_RAMP) - 1, int(probs[0] * len(_RAMP)))
    best = [
        f"{quote(token)} {probability(prob)}"
        for token, prob in zip(lens.top_tokens[i, j], probs, strict=True)
    ]
    told = f"{lens.points[i]}, position {lens.positions[j]}: {', '.join(best)}; "
    told += f"entropy {nats(lens.entropy[i, j])}, KL {nats(lens.kl_to_final[i, j])} nats"
    return Cell(
        token=mark_spaces(lens.top_tokens[i, j][0]),
        colour=_RAMP[step],
        ink="#ffffff" if step >= _FIRST_DARK else "#000000",
        told=told,
        settles=lens.settled_at[j] == lens.points[i],
    )
