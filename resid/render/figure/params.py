"""Parameters as stacked bars: the shares of the parts, and how many there are where."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from resid.render import parts
from resid.render.figure import style
from resid.render.figure.norms import WRITERS
from resid.results import ParamComparison, ParamCount
from resid.tokens import escape_text

Row = tuple[str, Mapping[str, int]]

LEGEND_COLUMNS = 3
WIDEST_LABEL = 130.0
"""Points that a label beside a bar may take."""

# The sublayers have the colours that they have in the other figures.
_SUBLAYERS = {name: colour for _, name, colour, _ in WRITERS}
COLOURS = {
    "token_embedding": "#2171b5",
    "position_embedding": "#9ecae1",
    "attention": _SUBLAYERS["attention"],
    "cross_attention": "#a6dba0",
    "mlp": _SUBLAYERS["MLP"],
    "norms": style.MARK,
    "unembedding": "#08306b",
    "other": "#969696",
}
_BAR = 0.78
_FONT_SIZES = (style.SIZE, 7.0, 6.0)
_UNITS = ((1_000_000, "parameters, millions"), (1_000, "parameters, thousands"), (1, "parameters"))


def draw_params(result: ParamCount | ParamComparison, ax: Axes, legend: bool = True) -> Axes:
    """Draw how many parameters there are: in every place of one model, or in each of several.

    Args:
        result: what to draw.
        ax: where to; its height decides how many bars have labels.
        legend: name the colours above the Axes.

    Returns:
        `ax`.
    """
    rows = places(result)
    largest = max(sum(sizes.values()) for _, sizes in rows)
    scale, unit = next((scale, unit) for scale, unit in _UNITS if largest >= scale or scale == 1)
    with style.styled():
        _stack(rows, ax, scale)
        _label_rows(rows, ax)
        _write_numbers(rows, ax, scale)
        end = largest / scale
        ticks = MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(0, end)
        _finish(ax, end, [tick for tick in ticks if tick <= end], unit)
        if legend:
            draw_legend(result, ax)
    return ax


def draw_shares(result: ParamCount | ParamComparison, ax: Axes, legend: bool = True) -> Axes:
    """Draw the shares of the parts: of one model and of its blocks, or of each of several models.

    Args:
        result: what to draw.
        ax: where to.
        legend: name the colours above the Axes.

    Returns:
        `ax`.
    """
    rows = wholes(result)
    totals = [max(sum(sizes.values()), 1) for _, sizes in rows]
    percents = [
        (label, {kind: 100 * number / total for kind, number in sizes.items()})
        for (label, sizes), total in zip(rows, totals, strict=True)
    ]
    with style.styled():
        _stack(percents, ax, 1)
        _label_rows(rows, ax)
        _write_shares(percents, ax)
        _finish(ax, 100, range(0, 101, 20), "share of parameters, percent")
        if legend:
            draw_legend(result, ax)
    return ax


def kinds(result: ParamCount | ParamComparison) -> list[str]:
    """The parts that have a colour in this figure: those of which there is anything."""
    counts = parts.counts_of(result)
    return [kind for kind in COLOURS if any(_by_kind(count)[kind] for count in counts)]


def places(result: ParamCount | ParamComparison) -> list[Row]:
    """The bars of `draw_params`, from the bottom: the places of one model, or the models."""
    if isinstance(result, ParamComparison):
        return wholes(result)
    rows: list[Row] = [
        ("token embedding", {"token_embedding": result.token_embedding}),
        ("position embedding", {"position_embedding": result.position_embedding}),
    ]
    for block in result.blocks:
        sizes = {name: getattr(block, name) for name in parts.WITHIN_BLOCKS}
        rows.append((f"block {block.layer}", sizes))
    rows.append(("ln_final", {"norms": result.ln_final}))
    if result.unembedding:
        rows.append(("unembedding", {"unembedding": result.unembedding}))
    if result.other:
        rows.append(("other", {"other": result.other}))
    return rows


def wholes(result: ParamCount | ParamComparison) -> list[Row]:
    """The bars of `draw_shares`, from the bottom: the first model is on top."""
    if isinstance(result, ParamComparison):
        return [(_name(count), _by_kind(count)) for count in reversed(result.counts)]
    in_blocks = {name: result.parts[name] for name in parts.WITHIN_BLOCKS}
    return [("blocks", in_blocks), ("whole model", _by_kind(result))]


def draw_legend(result: ParamCount | ParamComparison, ax: Axes) -> None:
    """Name the colours above the Axes."""
    handles = [Patch(color=COLOURS[kind], label=parts.NAMES[kind]) for kind in kinds(result)]
    style.plain_legend(
        ax,
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(-0.012, 1.0),
        ncols=LEGEND_COLUMNS,
        handlelength=1.0,
        handleheight=0.9,
        columnspacing=1.6,
    )


def _by_kind(count: ParamCount) -> dict[str, int]:
    sizes = dict(count.parts)
    sizes["norms"] += sizes.pop("ln_final")
    return sizes


def _name(count: ParamCount) -> str:
    return style.printable(escape_text(count.source.model))


def _stack(rows: Sequence[tuple[str, Mapping[str, float]]], ax: Axes, scale: float) -> None:
    for kind, colour in COLOURS.items():
        lefts = [_before(sizes, kind) / scale for _, sizes in rows]
        widths = [sizes.get(kind, 0) / scale for _, sizes in rows]
        if any(widths):
            ax.barh(range(len(rows)), widths, _BAR, lefts, color=colour, linewidth=0)
    ax.set_ylim(-0.5, len(rows) - 0.5)


def _before(sizes: Mapping[str, float], kind: str) -> float:
    """Where a part begins: after all that stand before it."""
    order = list(COLOURS)
    return sum(sizes.get(other, 0) for other in order[: order.index(kind)])


def _write_shares(percents: Sequence[tuple[str, Mapping[str, float]]], ax: Axes) -> None:
    """A number in every piece that has room for one."""
    per_percent = ax.get_window_extent().width * 72 / ax.figure.dpi / 100
    for i, (_, sizes) in enumerate(percents):
        for kind, value in sizes.items():
            text = parts.share(value / 100, 1) if math.isfinite(value) else ""
            room = value * per_percent - 3
            size = next((s for s in _FONT_SIZES if style.text_width(text, s) <= room), None)
            if text and size is not None:
                ax.text(
                    _before(sizes, kind) + value / 2,
                    i,
                    text,
                    color=style.ink_on(to_rgb(COLOURS[kind])),
                    ha="center",
                    va="center_baseline",
                    **(style.LABEL | {"size": size}),
                )


def _label_rows(rows: Sequence[tuple[str, Mapping[str, float]]], ax: Axes) -> None:
    """Names beside the bars, as many as there is room for."""
    height = _row_height(rows, ax)
    rounds = (factor * 10**power for power in range(6) for factor in (1, 2, 5))
    step = next(distance for distance in rounds if distance * height >= 1.15 * style.SIZE)
    shown = range(0, len(rows), step)
    labels = [style.shorten(rows[i][0], WIDEST_LABEL, style.SIZE) for i in shown]
    ax.set_yticks(shown, labels, **style.LABEL)


def _write_numbers(rows: Sequence[Row], ax: Axes, scale: float) -> None:
    """The number that a bar stands for at its end; once for neighbours that are all the same."""
    start = 0
    for i, (_, sizes) in enumerate(rows):
        if i + 1 < len(rows) and rows[i + 1][1] == sizes:
            continue
        number = sum(sizes.values())
        if (i + 1 - start) * _row_height(rows, ax) >= style.SIZE:
            ax.annotate(
                f"{number:,}" + (" each" if start < i else ""),
                (number / scale, (start + i) / 2),
                (4, 0),
                textcoords="offset points",
                color=style.FAINT,
                va="center_baseline",
                annotation_clip=False,
                **style.LABEL,
            )
        start = i + 1


def _row_height(rows: Sequence[tuple[str, Mapping[str, float]]], ax: Axes) -> float:
    """In points."""
    return float(ax.get_window_extent().height) * 72 / ax.figure.dpi / len(rows)


def _finish(ax: Axes, end: float, ticks: Sequence[float], label: str) -> None:
    ax.set_xlim(0, end)
    ax.set_xticks(ticks, [f"{tick:,.6g}" for tick in ticks], **style.LABEL)
    ax.set_xlabel(label, color=style.FAINT, **style.LABEL)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(length=2.5, color=style.FAINT)
    ax.tick_params(axis="y", length=0)
