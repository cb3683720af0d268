"""The parameter count in the terminal: one model part by part, or several side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from resid.render import parts
from resid.render.terminal.cells import QUIET
from resid.render.terminal.columns import GAP, Column, beside, column, print_columns, total_width
from resid.render.terminal.console import is_unbounded, pick, safe, say, shorten
from resid.render.terminal.frame import print_checks
from resid.results import ParamComparison, ParamCount
from resid.tokens import escape_text

_WIDEST_BAR = 60
_NARROWEST_BAR = 8
_WIDEST_NAME = 24
# As in the figures.
_COLOURS = {"attention": "green", "mlp": "magenta", "token_embedding": "blue"}


def render_params(count: ParamCount, console: Console) -> None:
    """Print the parts of one model, what one block is made of, and what follows from both."""
    model = safe(console, escape_text(count.source.model))
    line = Text.assemble(("parameters", "bold"), " of ", (model, "bold"))
    sizes = ", ".join(
        f"{number:,} {name}" if name == "blocks" else f"{name} {number:,}"
        for name, number in parts.dimensions(count).items()
    )
    if line.cell_len + 2 + len(sizes) <= console.width:
        say(console, line.append("  " + sizes))
    else:
        say(console, line)
        say(console, sizes)
    _print_origins(console, [count])
    say(console, "")
    _print_fitting(console, [*_whole(count), *_bars(count, console)])
    say(console, "")
    per_block = _per_block(count)
    if total_width(per_block) > console.width:
        per_block = _per_block(count, with_shares=False)
    _print_fitting(console, per_block)
    say(console, "")
    _print_facts(console, count)
    say(console, "")
    print_checks(console, count, {})


def render_comparison(comparison: ParamComparison, console: Console) -> None:
    """Print several models side by side, as many at a time as fit."""
    counts = comparison.counts
    say(console, Text.assemble(("parameters", "bold"), f" of {len(counts)} models"))
    _print_origins(console, counts)
    labels = Column((Text(),), tuple(Text(label) for label, _, _ in _lines(counts[0], counts)))
    groups: list[list[Column]] = [[]]
    for each in [_model_column(console, count, counts) for count in counts]:
        if groups[-1] and total_width([labels, *groups[-1], each]) > console.width:
            groups.append([])
        groups[-1].append(each)
    for group in groups:
        say(console, "")
        _print_fitting(console, [labels, *group])
    say(console, "")
    print_checks(console, comparison, {})


def _print_origins(console: Console, counts: Sequence[ParamCount]) -> None:
    for origin in parts.origins(counts):
        say(console, escape_text(origin), QUIET)


def _whole(count: ParamCount) -> list[Column]:
    """Name, number and share of every part."""
    names, numbers, shares = [], [], []
    for name, number, level in _rows(count):
        shown = parts.unembedding(count) if name == "unembedding" else f"{number:,}"
        style = "bold" if name == "total" else ""
        names.append(Text("  " * level + parts.NAMES.get(name, name), style=style))
        numbers.append(Text(shown, style=style if number else QUIET))
        shares.append(Text(parts.share(number / count.total) if number else "", style=style))
    return [
        column("part", names),
        column("parameters", numbers, right=True),
        column("share", shares, right=True),
    ]


def _rows(count: ParamCount) -> Iterator[tuple[str, int, int]]:
    """Name, size and indentation of every row, in the order of a forward pass."""
    for name in parts.present([count]):
        if name == "attention":
            blocks = sum(block.total for block in count.blocks)
            yield f"{len(count.blocks)} block{'s' * (len(count.blocks) > 1)}", blocks, 0
        if name == "other":
            for kind, number in count.other_parts.items():
                yield f"other: {escape_text(kind)}", number, 0
        else:
            yield name, count.parts[name], int(name in parts.WITHIN_BLOCKS)
    yield "total", count.total, 0


def _bars(count: ParamCount, console: Console) -> list[Column]:
    """A bar for every row, or nothing where there is no room for bars."""
    room = console.width - total_width(_whole(count)) - GAP
    length = 40 if is_unbounded(console) else min(room, _WIDEST_BAR)
    if length < _NARROWEST_BAR:
        return []
    sign = pick(console, "█", "#")
    rows = list(_rows(count))
    scale = length / max(number for name, number, _ in rows if name != "total")
    bars = [
        Text(sign * round(number * scale) * (name != "total"), style=_COLOURS.get(name, QUIET))
        for name, number, _ in rows
    ]
    return [column("", bars)]


def _per_block(count: ParamCount, with_shares: bool = True) -> list[Column]:
    """Every block, equal neighbours as one: its parts with their shares, and its total."""
    listed = list(parts.runs(count.blocks))
    columns = [column("block", (Text(label) for label, _ in listed))]
    for name in parts.present([count]):
        if name in parts.WITHIN_BLOCKS:
            numbers = [(getattr(block, name), block.total) for _, block in listed]
            cells = tuple(Text(f"{number:,}") for number, _ in numbers)
            if with_shares:
                cells = _with_shares(cells, [parts.share(n / total) for n, total in numbers]).cells
            columns.append(Column((Text(parts.NAMES[name]),), cells, right=True))
    totals = column("block total", (Text(f"{block.total:,}") for _, block in listed), right=True)
    return [*columns, totals]


def _with_shares(numbers: Sequence[Text], shares: Sequence[str]) -> Column:
    quiet = tuple(Text(text, style=QUIET) for text in shares)
    return beside([Column((), tuple(numbers), right=True), Column((), quiet, right=True)])


def _print_fitting(console: Console, columns: Sequence[Column]) -> None:
    """Print a table; where it is wider than the console, row by row in words."""
    if total_width(columns) <= console.width:
        print_columns(console, columns)
        return
    first, *others = columns
    for i, label in enumerate(first.cells):
        cells = [(each.head[0].plain.strip(), each.cells[i].plain.split()) for each in others]
        told = ", ".join(" ".join([head, *words]) for head, words in cells if head and words)
        say(console, f"{label.plain.strip()}: {told}" if told else "")


def _print_facts(console: Console, count: ParamCount) -> None:
    flops = count.flops_per_token
    stored = " and ".join(count.dtypes)
    facts = {
        "MLP to attention": f"{parts.ratio(count.mlp_to_attention_weights)} in weights, "
        f"{parts.ratio(count.mlp_to_attention)} with biases",
        "memory": f"{parts.size(count.bytes['float32'])} in float32, "
        f"{parts.size(count.bytes['float16'])} in 16 bits; stored in {stored}",
        "FLOPs per token": f"{flops.total:,} in a forward pass of {flops.length:,} tokens",
        "": f"{parts.share(flops.blocks / flops.total, 1)} blocks, "
        f"{parts.share(flops.attention_mix / flops.total, 1)} between positions, "
        f"{parts.share(flops.unembedding / flops.total, 1)} unembedding",
    }
    width = max(map(len, facts)) + GAP
    if width + max(map(len, facts.values())) <= console.width:
        for name, text in facts.items():
            say(console, Text.assemble((name.ljust(width), QUIET), text))
    else:
        for name, text in facts.items():
            say(console, f"{name}: {text}" if name else text)


def _lines(
    count: ParamCount, counts: Sequence[ParamCount]
) -> Iterator[tuple[str, str, float | None]]:
    """Label, text and share of every row of a comparison."""
    for name, number in parts.dimensions(count).items():
        yield name, f"{number:,}", None
    yield "", "", None
    for name in parts.present(counts):
        number = count.parts[name]
        text = parts.unembedding(count) if name == "unembedding" else f"{number:,}"
        yield parts.NAMES[name], text, count.shares[name] if number else None
    yield "total", f"{count.total:,}", None
    yield "", "", None
    block, alike = count.blocks[0], all(len(list(parts.runs(c.blocks))) == 1 for c in counts)
    yield "each block" if alike else "first block", f"{block.total:,}", None
    for name in parts.WITHIN_BLOCKS:
        if name in parts.present(counts):
            number = getattr(block, name)
            yield f"  {parts.NAMES[name]}", f"{number:,}", number / block.total if number else None
    yield "", "", None
    yield "MLP to attention", parts.ratio(count.mlp_to_attention_weights), None
    yield "  with biases", parts.ratio(count.mlp_to_attention), None
    yield "in float32", parts.size(count.bytes["float32"]), None
    yield "in 16 bits", parts.size(count.bytes["float16"]), None
    yield "FLOPs per token", f"{count.flops_per_token.total:,}", None
    yield "  in a pass of", f"{count.flops_per_token.length:,}", None


def _model_column(console: Console, count: ParamCount, counts: Sequence[ParamCount]) -> Column:
    lines = list(_lines(count, counts))
    numbers = [Text(text, style="bold" if label == "total" else "") for label, text, _ in lines]
    shares = ["" if value is None else parts.share(value, 1) for _, _, value in lines]
    name = shorten(console, escape_text(count.source.model), _WIDEST_NAME)
    over_numbers = max(text.cell_len for text in numbers)
    return Column((Text(name.rjust(over_numbers)),), _with_shares(numbers, shares).cells)
