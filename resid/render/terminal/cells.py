"""What stands in the cells of a table: tokens between quiet quotes, probabilities by their size."""

from __future__ import annotations

import math

from rich.console import Console
from rich.text import Text

from resid.render import words
from resid.render.terminal.console import safe, shorten
from resid.tokens import quote

LOUD = "bold red"
QUIET = "dim"

_PROBABILITY_STYLES = ((0.5, "green"), (0.2, "cyan"), (0.05, ""), (-math.inf, QUIET))


def token(console: Console, display: str, room: int | None = None, style: str = "") -> Text:
    """The token between quotes; cut where it takes more than `room` cells."""
    shown = (
        safe(console, quote(display)) if room is None else shorten(console, quote(display), room)
    )
    text = Text(shown)
    if style:
        text.stylize(style, 1, len(shown) - 1)
    text.stylize(QUIET, 0, 1)
    text.stylize(QUIET, len(shown) - 1)
    return text


def absent() -> Text:
    """In place of a token or a number that is not finite."""
    return Text(words.NOT_FINITE, style=LOUD)


def probability(value: float) -> Text:
    """A probability, coloured by its size."""
    if not math.isfinite(value):
        return absent()
    return Text(words.probability(value), style=probability_style(value))


def probability_style(value: float) -> str:
    """Brighter for more."""
    return next(style for least, style in _PROBABILITY_STYLES if value >= least)


def nats(value: float) -> Text:
    """An entropy or a divergence."""
    return Text(words.nats(value)) if math.isfinite(value) else absent()
