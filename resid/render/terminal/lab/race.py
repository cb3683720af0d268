"""A race in the terminal: what each variant came to, and what the seeds can tell apart."""

from __future__ import annotations

import math

import numpy as np
from rich.console import Console
from rich.text import Text

from resid.render.lab_race_words import IDENTITIES, loss, pairing, reach, rule, runs, span
from resid.render.terminal import cells
from resid.render.terminal.columns import Column, column, print_columns, titled, total_width
from resid.render.terminal.console import pick, safe, say
from resid.render.terminal.frame import print_checks, print_source
from resid.results import Floats
from resid.results.lab import LabRace

_BLOCKS, _PLAIN = "▁▂▃▄▅▆▇█", ".:-=+*#@"
_STYLES = {"worse": "red", "better": "green", "noise": cells.QUIET, "none": cells.QUIET}
# The columns that a narrow terminal does without, the first to go first.
_DISPENSABLE = ("d_mlp", "d_model", "lowest to highest", "over the steps", "parameters")


def render_race(race: LabRace, console: Console) -> None:
    """Print a row for every variant, then a row for every pair with its verdict.

    Args:
        race: what to print.
        console: where to.
    """
    print_source(console, "lab race", race)
    say(console, f"loss on held-out text in nats a byte, {runs(race)} each")
    counted = f"each byte as often as it is: {loss(race.unigram_loss)}"
    say(console, f"{counted}; as often as it follows the one before: {loss(race.bigram_loss)}")
    say(console, "")
    missing = _print_variants(race, console)
    if race.first:
        say(console, "")
        _print_pairs(race, console)
    say(console, "")
    say(console, Text(safe(console, race.finding), style="bold"))
    for line in filter(None, (rule(race), reach(race), pairing(race))):
        say(console, line, cells.QUIET)
    if missing:
        say(console, f"not shown at this width: {', '.join(missing)}", cells.QUIET)
    print_checks(console, race, IDENTITIES)


def _print_variants(race: LabRace, console: Console) -> list[str]:
    """Print the columns that fit; the names of those that do not."""
    means = race.loss.mean(1)
    several = race.seeds.shape[1] > 1
    parts = {
        "variant": column("variant", [Text(safe(console, name)) for name in race.variants]),
        "parameters": _counts("parameters", race.parameters.tolist()),
        "d_model": _counts("d_model", race.d_model.tolist()),
        "d_mlp": _counts("d_mlp", race.d_mlp.tolist()),
        "over the steps": column("over the steps", _sparks(console, means)),
        "loss": column("mean" if several else "loss", map(_loss, means[:, -1]), right=True),
    }
    if several:
        ranges = [f"{loss(float(each.min()))}..{loss(float(each.max()))}" for each in race.final]
        texts = [Text(each, style=cells.QUIET) for each in ranges]
        parts["lowest to highest"] = column("lowest..highest", texts, right=True)
        parts["loss"] = titled(Text("loss"), parts["loss"])
    missing: list[str] = []
    for name in _DISPENSABLE:
        if total_width(list(parts.values())) <= console.width:
            break
        if parts.pop(name, None) is not None:
            missing.append(name)
    print_columns(console, list(parts.values()))
    return missing


def _print_pairs(race: LabRace, console: Console) -> None:
    """Print every pair that was judged; the interval is simultaneous over all of them."""
    against = {race.variants[a] for a in race.first}
    one = against.pop() if len(against) == 1 else None
    names = [
        race.variants[b] if one else f"{race.variants[b]} - {race.variants[a]}"
        for a, b in zip(race.first, race.second, strict=True)
    ]
    verdicts = ["no verdict" if each == "none" else each for each in race.verdicts]
    styles = [_STYLES[each] for each in race.verdicts]
    spans = [span(float(a), float(b)) for a, b in zip(race.low, race.high, strict=True)]
    columns = [
        column(f"against {one}" if one else "pair", [Text(safe(console, name)) for name in names]),
        column("difference", [_difference(float(each)) for each in race.difference], right=True),
        column(f"{100 * race.confidence:.3g}% interval", map(Text, spans), right=True),
        column("verdict", [Text(v, style=s) for v, s in zip(verdicts, styles, strict=True)]),
    ]
    print_columns(console, columns)


def _sparks(console: Console, means: Floats) -> list[Text]:
    """For every variant the loss at each measurement, all on one scale from 0."""
    signs = pick(console, _BLOCKS, _PLAIN)
    finite = means[np.isfinite(means)]
    peak = float(np.max(finite, initial=1e-9))
    return [Text("".join(_sign(float(each), peak, signs) for each in row)) for row in means]


def _sign(value: float, peak: float, signs: str) -> str:
    if not math.isfinite(value):
        return "?"
    return signs[min(int(value / peak * len(signs)), len(signs) - 1)]


def _counts(head: str, values: list[int]) -> Column:
    return column(head, [Text(f"{value:,}") for value in values], right=True)


def _loss(value: float) -> Text:
    return Text(loss(value)) if math.isfinite(value) else cells.absent()


def _difference(value: float) -> Text:
    return Text(f"{value:+.3f}") if math.isfinite(value) else cells.absent()
