"""The logit lens in the terminal: one position point by point, or the grid of all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.text import Text

from resid.errors import ResidError
from resid.render.terminal import cells
from resid.render.terminal.columns import (
    GAP,
    Column,
    beside,
    column,
    print_columns,
    titled,
    total_width,
)
from resid.render.terminal.console import is_unbounded, say
from resid.render.terminal.frame import print_checks, print_source
from resid.render.terminal.lens_baseline import beneath, print_baseline
from resid.render.terminal.lens_followed import print_followed, print_many_followed
from resid.render.terminal.lens_grid import print_grid
from resid.render.words import count
from resid.results import LogitLens, Track

_WIDEST_TOKEN = 24
_NARROWEST_TOKEN = 5


def render_lens(
    lens: LogitLens,
    console: Console,
    *,
    positions: Sequence[int] | None = None,
    grid: bool = False,
    show: str = "prob",
) -> None:
    """Print what every point would say next.

    Args:
        lens: what to print.
        console: where to.
        positions: of the prompt, one table each; the last decoded one if not given. The grid
            shows these columns only; all if not given.
        grid: print top tokens of points x positions, deepest point on top.
        show: the grid's number beside a token: prob, entropy, kl, margin, or the target's rank.

    Raises:
        ResidError: the lens has no such position, or rank is to be shown without a target.
    """
    print_source(console, "logit lens", lens)
    if grid:
        indices = _indices(lens, positions or lens.positions)
        print_grid(console, lens, indices, show)
        print_many_followed(console, lens, indices)
        print_baseline(console, lens, indices[-1], named=True)
        last_row = "top row"
    else:
        chosen = lens.positions[-1:] if positions is None else positions
        for i, index in enumerate(_indices(lens, chosen)):
            if i > 0:
                say(console, "")
            _print_position(console, lens, index)
        last_row = "last row"
    whole = lens.points[-1] == f"{lens.source.n_layers - 1}.post"
    print_checks(console, lens, {"lens_equals_logits": f"{last_row} = logits"} if whole else {})


def _indices(lens: LogitLens, positions: Sequence[int]) -> list[int]:
    for position in positions:
        if position not in lens.positions:
            decoded = ", ".join(map(str, lens.positions[:8])) + ", ..." * (len(lens.positions) > 8)
            raise ResidError(f"position {position} was not decoded; these were: {decoded}")
    return [lens.positions.index(position) for position in positions]


def _print_position(console: Console, lens: LogitLens, index: int) -> None:
    position = lens.positions[index]
    line = Text(f"next token after position {position}, ")
    say(console, line.append_text(_named(console, lens.source.tokens[position])))
    say(console, "")
    columns, missing = _fit(console, lens, index)
    print_columns(console, columns)
    say(console, "")
    say(console, _settled(console, lens, index))
    if missing:
        say(console, f"not shown at this width: {', '.join(missing)}", cells.QUIET)
    if "KL to final" not in missing:
        margin = "entropy, KL(final || point) and margin (first token over second) in nats"
        plain = "entropy and KL(final || point) in nats"
        say(console, plain if "margin" in missing else margin, cells.QUIET)
    print_baseline(console, lens, index, named=False)
    if lens.followed is not None:
        say(console, "")
        print_followed(console, lens, index)


def _fit(console: Console, lens: LogitLens, index: int) -> tuple[list[Column], list[str]]:
    """The columns that fit the console, best first, and the names of those that do not."""
    point = column("point", [*map(Text, lens.points), *beneath(lens, "nothing", "random")])
    extras = _extras(console, lens, index)
    order = ("margin", "entropy", "foil", "KL to final", "target")
    dispensable = [name for name in order if name in extras]
    cap = _cap(console)
    n_tokens = lens.top_ids.shape[2]
    tokens = [_token_column(console, lens, index, k, cap) for k in range(n_tokens)]
    missing: list[str] = []

    def room() -> int:
        return console.width - total_width([point, *extras.values()]) - GAP

    # The margin is the first to go: it gives way to any of the tokens.
    if total_width(tokens) > room():
        missing.append(dispensable.pop(0))
        del extras["margin"]
    while dispensable and room() < min(tokens[0].width, 20):
        missing.append(dispensable.pop(0))
        del extras[missing[-1]]
    if tokens[0].width > room():
        number = 5  # a space and four characters
        tokens[0] = _token_column(console, lens, index, 0, max(room() - number, _NARROWEST_TOKEN))
    fitting = max(
        (n for n in range(1, n_tokens + 1) if total_width(tokens[:n]) <= room()), default=1
    )
    if fitting < n_tokens:
        first = fitting + 1
        dropped = f"token {first}" if first == n_tokens else f"tokens {first} to {n_tokens}"
        missing.insert(0, f"top {dropped}")
    decoded = titled(Text("top tokens"), beside(tokens[:fitting], GAP))
    return [point, decoded, *extras.values()], missing


def _token_column(console: Console, lens: LogitLens, index: int, k: int, cap: int | None) -> Column:
    tokens, numbers = [], []
    for i in range(len(lens.points)):
        if lens.top_ids[i, index, k] < 0:
            tokens.append(cells.absent())
            numbers.append(Text())
            continue
        style = "bold" if k == 0 else ""
        tokens.append(cells.token(console, lens.top_tokens[i, index, k], cap, style))
        numbers.append(cells.probability(lens.top_probs[i, index, k]))
    if lens.baseline is not None:
        zero = lens.baseline.zero
        said = zero.top_ids[k] >= 0
        shown = cells.token(console, zero.top_tokens[k], cap) if said else cells.absent()
        tokens += beneath(lens, shown)
        numbers += beneath(lens, cells.probability(zero.top_probs[k]) if said else "")
    return beside([Column((), tuple(tokens)), Column((), tuple(numbers), right=True)])


def _extras(console: Console, lens: LogitLens, index: int) -> dict[str, Column]:
    """The columns beside the tokens, by name."""
    entropy = [*map(cells.nats, lens.entropy[:, index])]
    kl = [*map(cells.nats, lens.kl_to_final[:, index])]
    if lens.baseline is not None:
        zero, random = lens.baseline.zero, lens.baseline.random
        entropy += beneath(lens, cells.nats(zero.entropy), cells.nats(random.entropy[0]))
        pair = (zero.kl_to_final[index], random.kl_to_final[0, index])
        kl += beneath(lens, *map(cells.nats, pair))
    columns = {
        "entropy": column("entropy", entropy, right=True),
        "KL to final": titled(Text("KL to"), column("final", kl, right=True)),
    }
    for name, track in (("target", lens.target), ("foil", lens.foil)):
        if track is not None:
            columns[name] = _track_column(console, lens, track, index)
    margin = map(cells.nats, lens.margin[:, index])
    quiet = [Text(text.plain, style=text.style or cells.QUIET) for text in margin]
    columns["margin"] = column("margin", [*quiet, *beneath(lens)], right=True)
    return columns


def _track_column(console: Console, lens: LogitLens, track: Track, index: int) -> Column:
    probabilities = np.exp(track.logprob[:, index].astype(np.float64))
    ranks = (
        Text(str(rank)) if math.isfinite(value) else cells.absent()
        for rank, value in zip(track.rank[:, index], probabilities, strict=True)
    )
    shown = map(cells.probability, probabilities)
    pair = [
        column("rank", [*ranks, *beneath(lens)], right=True),
        column("prob", [*shown, *beneath(lens)], right=True),
    ]
    return titled(_named(console, track.token), beside(pair, GAP))


def _settled(console: Console, lens: LogitLens, index: int) -> Text:
    settled_at = lens.settled_at[index]
    if settled_at is None:
        return Text("not settled: not every point is finite", style=cells.LOUD)
    final = _named(console, lens.top_tokens[-1, index, 0])
    flips = int(lens.flips[index])
    how = f"after {count(flips, 'flip')}" if flips else "without a flip"
    by = cells.nats(lens.margin[-1, index]).plain
    return final.append(f" settled at {settled_at}, {how}; leads by {by} nats")


def _named(console: Console, display: str) -> Text:
    return cells.token(console, display, _cap(console))


def _cap(console: Console) -> int | None:
    return None if is_unbounded(console) else _WIDEST_TOKEN
