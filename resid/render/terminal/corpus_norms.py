"""Norms over text in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from rich.console import Console
from rich.text import Text

from resid.render import corpus_words as words
from resid.render.terminal import cells
from resid.render.terminal.bars import bars
from resid.render.terminal.columns import Column, beside, column, print_columns, titled
from resid.render.terminal.console import pick, plain, say
from resid.render.terminal.corpus import fit, print_end
from resid.render.terminal.frame import print_source
from resid.render.words import count, number
from resid.results import CorpusNorms, Floats

_BAR = 10


def render_corpus_norms(norms: CorpusNorms, console: Console) -> None:
    """Print the norm at every point, and what attention and MLP wrote on the way to it.

    Args:
        norms: what to print.
        console: where to.
    """
    print_source(console, "corpus norms", norms)
    rest = norms.tokens - norms.not_finite - norms.tokens_at_start
    start = f"{norms.tokens_at_start:,} at position 0 apart"
    say(console, f"L2 norms over {count(rest, 'token')}; {start}")
    say(console, "")
    sign = pick(console, "±", "+-")
    pairs = [words.pair(m, e, sign) for m, e in zip(norms.l2.mean, norms.l2.se, strict=True)]
    shares = [f"{100 * share:.0f}%" for share in norms.quantile_shares]
    low, middle, high = 0, len(shares) // 2, len(shares) - 1
    mean = beside([_right(one for one, _ in pairs), _right((two for _, two in pairs), cells.QUIET)])
    parts = {
        "point": column("point", map(Text, norms.points)),
        "mean": titled(Text("mean"), mean),
        "quantiles": beside(
            [_numbers(shares[i], norms.l2.quantiles[:, i]) for i in (low, middle, high)], 2
        ),
        "bar": bars(console, norms.l2.mean, _BAR),
        "pos 0": _numbers("pos 0", norms.l2.mean_at_start),
        "attention": _written(norms, norms.attn_out.mean, "attention", "mid"),
        "MLP": _written(norms, norms.mlp_out.mean, "MLP", "post"),
    }
    if not np.isfinite(norms.l2.mean_at_start).any():
        del parts["pos 0"]
    dispensable = [name for name in ("bar", "quantiles", "MLP", "attention") if name in parts]
    missing = fit(console, parts, dispensable)
    print_columns(console, [*parts.values()])
    say(console, "")
    say(console, plain(console, words.describe_growth(norms)))
    say(console, words.describe_steps(norms))
    resolution = f"quantiles are known to {100 * norms.resolution:.1f}%"
    what = f"± standard error by document; {resolution}; attention, MLP: mean norm of what it wrote"
    say(console, plain(console, what), cells.QUIET)
    print_end(console, norms, norms.source, missing)


def _right(texts: Iterable[str], style: str = "") -> Column:
    return Column((), tuple(Text(text, style) for text in texts), right=True)


def _numbers(head: str, values: Floats) -> Column:
    shown = [Text(number(value)) if math.isfinite(value) else cells.absent() for value in values]
    return column(head, shown, right=True)


def _written(norms: CorpusNorms, values: Floats, head: str, kind: str) -> Column:
    """What a sublayer wrote, beside the point after it."""
    texts = []
    for point in norms.points:
        layer, _, which = point.partition(".")
        here = which == kind or (which == "post" and f"{layer}.mid" not in norms.points)
        texts.append(Text(number(values[int(layer)]) if here else ""))
    return titled(Text("wrote"), column(head, texts, right=True))
