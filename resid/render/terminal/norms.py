"""The stream's norms in the terminal: a row a point, statistics over positions, one table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from rich.console import Console
from rich.text import Text

from resid.render import norm_summary as summary
from resid.render.terminal import cells
from resid.render.terminal.bars import bars
from resid.render.terminal.columns import (
    GAP,
    Column,
    beside,
    column,
    print_columns,
    titled,
    total_width,
)
from resid.render.terminal.console import pick, plain, say
from resid.render.terminal.frame import print_checks, print_source
from resid.render.words import number
from resid.results import Floats, StreamNorms

_BAR = 8
_WIDE_BAR = 24
# The columns that a narrow terminal does without, the first to go first. The others stay.
_DISPENSABLE = (
    "centred norm",
    "times embed",
    "cosines of the writes",
    "cosine to previous",
    "bar",
    "range",
    "cosine to final",
    "growth",
    "cosine to embed",
    "MLP",
    "attention",
)


def render_norms(norms: StreamNorms, console: Console) -> None:
    """Print the norm at every point, embed first, beside what attention and MLP wrote.

    Args:
        norms: what to print.
        console: where to.
    """
    print_source(console, "stream norms", norms)
    say(console, f"L2 norm over {summary.describe_positions(norms)}")
    say(console, "")
    columns, missing = _fit(console, norms)
    print_columns(console, columns)
    say(console, "")
    say(console, plain(console, summary.describe_growth(norms)))
    for line in filter(None, [summary.describe_steps(norms), *summary.describe_outliers(norms)]):
        say(console, line)
    if not {"attention", "MLP"} & set(missing):
        how = "attention, MLP: median norm of what the block wrote, and its median size beside the"
        say(console, f"{how} stream that it was added to", cells.QUIET)
    if missing:
        say(console, f"not shown at this width: {', '.join(missing)}", cells.QUIET)
    print_checks(console, norms, summary.IDENTITIES)


def _fit(console: Console, norms: StreamNorms) -> tuple[list[Column], list[str]]:
    """The columns that fit the console, in order, and the names of those that do not."""
    parts = _parts(console, norms)
    missing: list[str] = []
    for name in (None, *_DISPENSABLE):
        if parts.pop(name or "", None) is not None:
            missing.append(name or "")
        columns = _arranged(parts)
        if total_width(columns) <= console.width:
            break
    spare = console.width - total_width(columns)
    if "bar" in parts and spare > 0:
        width = min(_BAR + spare, _WIDE_BAR)
        parts["bar"] = bars(console, summary.spread(norms, norms.l2).median, width)
    return _arranged(parts), missing


def _arranged(parts: dict[str, Column]) -> list[Column]:
    """The columns side by side; what belongs together under one title."""
    groups = (
        ("", ("point",)),
        ("L2 norm", ("median", "range", "bar")),
        ("", ("growth",)),
        ("", ("apart",)),
        ("", ("centred norm",)),
        ("wrote", ("attention", "MLP")),
        ("their cosines", ("cosines of the writes",)),
        ("cosine to", ("cosine to previous", "cosine to embed", "cosine to final")),
        ("", ("times embed",)),
    )
    columns = []
    for title, names in groups:
        here = [parts[name] for name in names if name in parts]
        if here:
            joined = beside(here, 1 if title == "L2 norm" else GAP)
            columns.append(titled(Text(title), joined) if title else here[0])
    return columns


def _parts(console: Console, norms: StreamNorms) -> dict[str, Column]:
    """Every column by name."""
    l2 = summary.spread(norms, norms.l2)
    whole = np.isfinite(l2.median)

    def plain(head: str, values: Floats, spell: Callable[[float], str]) -> Column:
        return column(head, map(_cell, map(spell, values), values, whole), right=True)

    def median(head: str, values: Floats, spell: Callable[[float], str]) -> Column:
        return plain(head, summary.spread(norms, values).median, spell)

    several = len(summary.shown(norms)) > 1
    steps, times = summary.steps(norms), pick(console, "×", "x")
    parts = {
        "point": column("point", map(Text, norms.points)),
        "median": plain("median" if several else "", l2.median, number),
        "bar": bars(console, l2.median, _BAR),
        "growth": plain("growth", steps, lambda value: times + _factor(value)),
        "centred norm": titled(Text("centred"), median("norm", norms.centred_l2, number)),
        "attention": _writes(norms, "attn_out", "attention"),
        "MLP": _writes(norms, "mlp_out", "MLP"),
        "cosines of the writes": _write_cosines(norms),
        "cosine to previous": median("previous", norms.cosine_to_previous, summary.share),
        "cosine to embed": median("embed", norms.cosine_to_embed, summary.share),
        "cosine to final": median("final", norms.cosine_to_final, summary.share),
        "times embed": titled(
            Text("times"), median("embed", norms.embed_coefficient, summary.share)
        ),
    }
    if several:
        parts["range"] = column("range", map(_range, l2.low, l2.high))
    if summary.apart(norms):
        parts["apart"] = _apart(norms)
    return parts


def _cell(text: str, value: float, whole: bool) -> Text:
    """A number; nothing where it has no meaning, loud where the vector is not finite."""
    if math.isfinite(value):
        return Text(text)
    return Text() if whole else cells.absent()


def _range(low: float, high: float) -> Text:
    if not math.isfinite(low + high):
        return cells.absent()
    return Text(f"{number(low)}..{number(high)}", style=cells.QUIET)


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 100 else number(value)


def _apart(norms: StreamNorms) -> Column:
    """The norm at the positions that the statistics leave out: their median, if several."""
    indices = summary.apart(norms)
    values = np.median(norms.l2[:, indices].astype(np.float64), axis=1)
    one = norms.positions[indices[0]] if len(indices) == 1 else None
    head = "left out" if one is None else f"pos {one}"
    return column(head, (_cell(number(v), v, False) for v in values), right=True)


def _writes(norms: StreamNorms, sublayer: str, head: str) -> Column:
    """What a sublayer wrote on the way to every point: its norm and its size beside the stream."""
    sizes = summary.spread(norms, getattr(norms, f"{sublayer}_l2")).median
    ratios = summary.spread(norms, getattr(norms, f"{sublayer}_ratio")).median
    layers = [dict(norms.writes_before(point)).get(sublayer) for point in norms.points]
    pair = (
        Column((), tuple(_written(sizes, layers, number, loud=True)), right=True),
        Column((), tuple(_written(ratios, layers, summary.percent)), right=True),
    )
    return titled(Text(head), beside(pair))


def _written(
    values: Floats, layers: list[int | None], spell: Callable[[float], str], loud: bool = False
) -> Iterable[Text]:
    for layer in layers:
        if layer is None:
            yield Text()
        elif math.isfinite(values[layer]):
            yield Text(spell(values[layer]))
        else:
            yield cells.absent() if loud else Text()


def _write_cosines(norms: StreamNorms) -> Column:
    """How far each sublayer wrote along the stream that it found."""
    columns = []
    for sublayer, head in (("attn_out", "attn"), ("mlp_out", "MLP")):
        values = summary.spread(norms, getattr(norms, f"{sublayer}_cosine")).median
        layers = [dict(norms.writes_before(point)).get(sublayer) for point in norms.points]
        columns.append(column(head, _written(values, layers, summary.share), right=True))
    return beside(columns, GAP)
