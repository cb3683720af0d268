"""Deep stacks in the terminal: what norm and shortcut do to sizes, and what depth does."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.text import Text

from resid.render.lab_words import IDENTITIES, digits
from resid.render.terminal import cells
from resid.render.terminal.columns import Column, column, print_columns, titled, total_width
from resid.render.terminal.console import pick, say
from resid.render.terminal.frame import print_checks, print_source
from resid.results import Floats
from resid.results.lab import LabDepth

# The columns that a narrow terminal does without, the first to go first.
_DISPENSABLE = ("range of sizes", "range of gradients", "gradient at the end", "cosine", "size")


def render_depth(depth: LabDepth, console: Console) -> None:
    """Print the deepest stacks under all wirings, then the last layer's gradient by depth.

    Args:
        depth: what to print.
        console: where to.
    """
    print_source(console, "lab depth", depth)
    last = depth.points[-1]
    say(console, f"{depth.layers} layers, untrained; medians over {_seeds(depth)}; end: {last}")
    say(console, "")
    missing = _print_wirings(depth, console)
    say(console, "")
    say(console, "gradient of the last layer's W_out, by the number of layers")
    say(console, "")
    _print_depths(depth, console)
    say(console, "")
    say(console, Text(depth.finding, style="bold"))
    for line in filter(None, (_band(depth), _parameters(depth), *_how(missing))):
        say(console, line, cells.QUIET)
    print_checks(console, depth, IDENTITIES)


def _print_wirings(depth: LabDepth, console: Console) -> list[str]:
    """Print the columns that fit; the names of those that do not."""
    rows = [(i, j) for i in range(len(depth.inits)) for j in range(len(depth.wirings))]
    sizes = [depth.rms[i, j, :, -1] for i, j in rows]
    reached = [depth.stream_gradient[i, j, :, 0] for i, j in rows]
    ends = [depth.stream_gradient[i, j, :, -1] for i, j in rows]
    through = [depth.came_through(i, depth.wirings[j]) for i, j in rows]
    times = pick(console, "×", "x")
    parts = {
        "weights": column("weights", [Text("" if j else depth.inits[i]) for i, j in rows]),
        "wiring": column("wiring", [Text(depth.wirings[j]) for _, j in rows]),
        "size": _numbers("stream", "at the end", sizes),
        "range of sizes": _ranges(sizes),
        "cosine": _numbers("cosine of", "its tokens", [depth.cosine[i, j, :, -1] for i, j in rows]),
        "gradient at the end": _numbers("gradient", "at the end", ends),
        "gradient": _numbers("gradient", "at the input", reached),
        "range of gradients": _ranges(reached),
        "through": column("ratio", [_number(value, times) for value in through], right=True),
    }
    missing: list[str] = []
    for name in _DISPENSABLE:
        if total_width(list(parts.values())) <= console.width:
            break
        del parts[name]
        missing.append(name)
    print_columns(console, list(parts.values()))
    return missing


def _numbers(title: str, head: str, values: list[Floats]) -> Column:
    texts = [_number(float(np.median(each))) for each in values]
    return titled(Text(title), column(head, texts, right=True))


def _ranges(values: list[Floats]) -> Column:
    spans = [(float(each.min()), float(each.max())) for each in values]
    texts = [Text(f"{digits(low)}..{digits(high)}", style=cells.QUIET) for low, high in spans]
    return column("range", texts)


def _number(value: float, before: str = "") -> Text:
    return Text(before + digits(value)) if np.isfinite(value) else cells.absent()


def _print_depths(depth: LabDepth, console: Console) -> None:
    times = pick(console, "×", "x")
    shown = [depth.wirings.index(name) for name in ("pre-LN", "post-LN")]
    rows = [(i, j) for i in range(len(depth.inits)) for j in shown]
    columns = [
        column("weights", [Text(depth.inits[i] if j == shown[0] else "") for i, j in rows]),
        column("wiring", [Text(depth.wirings[j]) for _, j in rows]),
    ]
    for k, layers in enumerate(depth.depths):
        medians = [float(np.median(depth.last_gradient[i, j, :, k])) for i, j in rows]
        columns.append(column(str(layers), map(_number, medians), right=True))
    trends = [depth.trend(i, depth.wirings[j]) for i, j in rows]
    head = f"{depth.depths[0]} to {depth.depths[-1]}"
    columns.append(column(head, [_number(value, times) for value in trends], right=True))
    print_columns(console, columns)


def _seeds(depth: LabDepth) -> str:
    n = len(depth.seeds)
    return "1 seed" if n == 1 else f"{n} seeds"


def _band(depth: LabDepth) -> str:
    """Where the pre-LN stream lies in the band that the theory has for weights that keep sizes."""
    if "1/sqrt(n_in)" not in depth.inits:
        return ""
    i, j = depth.inits.index("1/sqrt(n_in)"), depth.wirings.index("pre-LN")
    squares = (depth.rms[i, j] ** 2).mean(axis=0)
    inside = (squares >= depth.band_low * (1 - 1e-9)) & (squares <= depth.band_high * (1 + 1e-9))
    return (
        f"pre-LN, 1/sqrt(n_in): mean square {digits(squares[-1])} at the end, Xiong et al.'s "
        f"bounds {digits(depth.band_low[-1])} and {digits(depth.band_high[-1])}; between them at "
        f"{inside.sum()} of {len(inside)} points"
    )


def _parameters(depth: LabDepth) -> str:
    ratio = depth.mlp_weights / depth.attention_weights
    return (
        f"weights of a block: attention {depth.attention_weights:,}, MLP {depth.mlp_weights:,}, "
        f"{ratio:.3g} times as many"
    )


def _how(missing: list[str]) -> list[str]:
    lines = ["stream: root mean square; ratio: gradient at the input over that at the end"]
    if missing:
        lines.append(f"not shown at this width: {', '.join(missing)}")
    return lines
