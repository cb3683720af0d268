"""The logit lens over text in the terminal: loss against depth."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from resid.render import corpus_words as words
from resid.render.terminal import cells
from resid.render.terminal.bars import bars
from resid.render.terminal.columns import (
    Column,
    beside,
    column,
    print_columns,
    titled,
    total_width,
)
from resid.render.terminal.console import pick, plain, say
from resid.render.terminal.frame import print_checks, print_source
from resid.render.words import NOT_FINITE, count, nats
from resid.results import CorpusLens, Floats, Result
from resid.results.corpus_source import CorpusSource

_BAR, _WIDE_BAR = 10, 30


def render_corpus_lens(lens: CorpusLens, console: Console) -> None:
    """Print the loss, the divergence and the agreement of every point.

    Args:
        lens: what to print.
        console: where to.
    """
    print_source(console, "corpus lens", lens)
    over = f"{count(lens.tokens - lens.not_finite, 'token')} (loss: {lens.scored:,} predicted)"
    say(console, plain(console, f"means over {over}, ± standard error by document"))
    say(console, "")
    parts = {
        "point": column("point", map(Text, lens.points)),
        "loss": titled(Text("loss"), means(console, lens.cross_entropy, lens.cross_entropy_se)),
        "bar": bars(console, lens.cross_entropy, _BAR),
        "KL to final": titled(
            Text("KL to final"), means(console, lens.kl_to_final, lens.kl_to_final_se)
        ),
        "entropy": titled(Text("entropy"), means(console, lens.entropy, lens.entropy_se)),
        "agrees": column("agrees", _shares(lens.agreement), right=True),
        "settled": column("settled", _shares(_settled(lens)), right=True),
        "perplexity": column("perplexity", _perplexities(lens.cross_entropy), right=True),
    }
    missing = fit(console, parts, ("perplexity", "entropy", "bar", "KL to final", "settled"))
    spare = console.width - total_width([*parts.values()])
    if "bar" in parts and spare > 0:
        parts["bar"] = bars(console, lens.cross_entropy, min(_BAR + spare, _WIDE_BAR))
    print_columns(console, [*parts.values()])
    say(console, "")
    settled = "settled: where the model's own top token comes to stay"
    say(
        console, f"loss: nats a token; agrees: top token is the model's own; {settled}", cells.QUIET
    )
    print_end(console, lens, lens.source, missing)


def _settled(lens: CorpusLens) -> Floats:
    total = int(lens.settled_histogram.sum()) or math.nan
    shares: Floats = lens.settled_histogram / total
    return shares


def _shares(values: Floats) -> list[Text]:
    return [Text(words.percent(value)) if math.isfinite(value) else _absent() for value in values]


def _perplexities(losses: Floats) -> list[Text]:
    return [Text(words.perplexity(loss)) if math.isfinite(loss) else _absent() for loss in losses]


def _absent() -> Text:
    return Text(NOT_FINITE, style=cells.LOUD)


def means(console: Console, values: Floats, errors: Floats) -> Column:
    """Means with two decimals, and their standard errors as far as those tell."""
    sign = pick(console, "±", "+-")
    shown = [Text(nats(value)) if math.isfinite(value) else _absent() for value in values]
    quiet = [
        Text(f"{sign}{nats(error)}" if math.isfinite(error) else "", cells.QUIET)
        for error in errors
    ]
    return beside([Column((), tuple(shown), right=True), Column((), tuple(quiet), right=True)])


def fit(console: Console, parts: dict[str, Column], dispensable: Sequence[str]) -> list[str]:
    """Take columns away until the rest fit the console; returns the names of those."""
    missing = []
    for name in dispensable:
        if total_width([*parts.values()]) <= console.width:
            break
        del parts[name]
        if name != "bar":
            missing.append(name)
    return missing


def print_end(
    console: Console, result: Result, source: CorpusSource, missing: Sequence[str]
) -> None:
    """What stands below every table of a corpus reading."""
    say(console, words.describe_windows(source), cells.QUIET)
    for line in words.describe_left_out(source):
        say(console, line)
    if missing:
        say(console, f"not shown at this width: {', '.join(missing)}", cells.QUIET)
    print_checks(console, result, words.IDENTITIES)
