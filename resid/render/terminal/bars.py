"""Numbers as bars in a column."""

from __future__ import annotations

import math

from rich.console import Console
from rich.text import Text

from resid.render.terminal.columns import Column
from resid.render.terminal.console import pick
from resid.results import Floats

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bars(console: Console, values: Floats, width: int) -> Column:
    """A bar for every number, all beginning at zero and the largest as wide as the column.

    Args:
        console: where they will be printed; one without blocks gets number signs.
        values: what is not finite, or below zero, has no bar.
        width: of the column.
    """
    most = max([float(value) for value in values if math.isfinite(value)], default=0.0)
    blocks = bool(pick(console, "█", "") and pick(console, "▏", ""))
    texts = []
    for value in values:
        length = width * float(value) / most if most > 0 and math.isfinite(value) else 0.0
        eighths = round(8 * max(length, 0.0))
        full = _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
        texts.append(Text(full if blocks else "#" * round(length), style="blue"))
    return Column((Text(" " * width),), tuple(texts))
