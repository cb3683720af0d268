"""A race as a figure: the loss of every variant over the steps, and every pair's interval."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from resid.render.figure import style
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.lab_race_words import IDENTITIES, loss, pairing, rule, runs
from resid.results.lab import LabRace

_COLOURS = {"worse": "#c4500b", "better": "#08519c", "noise": "#7d7d7d", "none": "#7d7d7d"}
_MARKERS = {"worse": "s", "better": "D", "noise": "o", "none": "o"}
_REFERENCE = "#222222"
_SMALL = style.PLAIN_TEXT | {"size": 7.5}
_MOST_COLUMNS = 4
# In inches.
_MARGIN = 0.2
_TITLE = 0.65
_LEFT, _CURVE, _APART, _RIGHT = 0.65, 1.25, 0.12, 0.3
_CURVE_HEIGHT, _HEAD = 1.0, 0.27
_BARS, _ROW = 3.0, 0.24
_BELOW = 0.55
_LEAST_HEIGHT = 1.6


def race_figure(race: LabRace) -> Figure:
    """A small panel of curves for every variant on the left, the intervals on the right.

    Args:
        race: what to draw.
    """
    others = list(range(1, len(race.variants))) or [0]
    columns = min(_MOST_COLUMNS, len(others))
    rows = math.ceil(len(others) / columns)
    names = max((style.text_width(name, 7.5) for name in _pair_names(race)), default=0.0) / 72
    curves = columns * (_CURVE + _APART) - _APART
    beside = _LEFT + curves + 0.35 + names + 0.15
    width = max(beside + _BARS + _RIGHT, 7.0)
    notes = [race.finding, *_notes(race)]
    lines = caption_lines(race, notes, IDENTITIES, width - 2 * _MARGIN)
    bottom = _MARGIN + LINE * len(lines) + _BELOW
    every = rows * (_CURVE_HEIGHT + _HEAD) - _HEAD
    bars = _ROW * max(len(race.first), 1)
    tall = max(every, bars, _LEAST_HEIGHT)
    height = bottom + tall + _TITLE
    with style.styled():
        figure = Figure(figsize=(width, height))

        def place(left: float, lowest: float, across: float, upward: float) -> Axes:
            inches = (left / width, lowest / height, across / width, upward / height)
            return figure.add_axes(inches)

        # The first of all, for whoever asks for the figure's Axes.
        draw_race(race, place(beside, bottom + tall - bars, _BARS, bars))
        for i, variant in enumerate(others):
            row, column = divmod(i, columns)
            left = _LEFT + column * (_CURVE + _APART)
            # Curves begin at the top, as the intervals do.
            lowest = bottom + tall - (row + 1) * (_CURVE_HEIGHT + _HEAD) + _HEAD
            ax = place(left, lowest, _CURVE, _CURVE_HEIGHT)
            _draw_variant(race, variant, ax)
            ax.tick_params(labelleft=column == 0, labelbottom=i + columns >= len(others))
            if column == 0 and row == rows // 2:
                ax.set_ylabel("held-out loss, nats a byte", color=style.FAINT, **_SMALL)
            if i == len(others) - columns // 2 - 1 or len(others) == 1:
                ax.set_xlabel("steps", color=style.FAINT, **_SMALL)
        title = f"A race of {race.source.subject}, {runs(race)} each"
        write_frame(figure, title, lines, _MARGIN, bottom - _BELOW)
    return figure


def draw_race(race: LabRace, ax: Axes) -> Axes:
    """Draw the difference of every pair with its interval; filled where it is a finding.

    Args:
        race: what to draw.
        ax: where to.

    Returns:
        `ax`.
    """
    with style.styled():
        style.plain_axes(ax)
        ax.grid(visible=False)
        ax.axvline(0, color=style.INK, linewidth=0.8)
        for row, verdict in enumerate(race.verdicts):
            colour = _COLOURS[verdict]
            low, middle, high = (float(of[row]) for of in (race.low, race.difference, race.high))
            if verdict != "none":
                ax.plot([low, high], [row, row], color=colour, linewidth=2.0)
            ax.plot(
                [middle], [row], _MARKERS[verdict], color=colour, markersize=5,
                markerfacecolor=colour if verdict in ("worse", "better") else "white",
            )  # fmt: skip
            at = high if verdict != "none" else middle
            if math.isfinite(at):
                text = "no verdict" if verdict == "none" else verdict
                ax.annotate(
                    text, (at, row), xytext=(5, 0), textcoords="offset points", va="center",
                    color=colour, annotation_clip=False, **_SMALL,
                )  # fmt: skip
        names = [style.printable(name) for name in _pair_names(race)]
        ax.set_yticks(range(len(names)), names, **_SMALL)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
        ax.spines["left"].set_visible(False)
        low, high = ax.get_xlim()
        ax.set_xlim(low, high + 0.14 * (high - low))  # Room for the last verdict.
        ax.locator_params(axis="x", nbins=6)
        one = len(set(race.first)) == 1
        name = f"that of {race.variants[race.first[0]]}" if one else "that of the second"
        ax.set_xlabel(
            f"final loss minus {name}, nats a byte; {100 * race.confidence:.3g}% intervals",
            color=style.FAINT,
            **_SMALL,
        )
    return ax


def _pair_names(race: LabRace) -> list[str]:
    """The variants, or the pairs where they are not all held against the same one."""
    one = len(set(race.first)) == 1
    return [
        race.variants[b] if one else f"{race.variants[b]} - {race.variants[a]}"
        for a, b in zip(race.first, race.second, strict=True)
    ]


def _draw_variant(race: LabRace, variant: int, ax: Axes) -> None:
    """The variant's loss over the steps before that of the first variant: mean and spread."""
    style.plain_axes(ax)
    verdicts = {
        b: v for a, b, v in zip(race.first, race.second, race.verdicts, strict=True) if a == 0
    }
    colour = _COLOURS[verdicts.get(variant, "none")]
    for i, shade, line in ((0, _REFERENCE, (0, (2, 1.5))), (variant, colour, "-")):
        each = race.loss[i]
        low, high = each.min(0), each.max(0)
        ax.fill_between(race.steps, low, high, color=shade, alpha=0.22, linewidth=0)
        ax.plot(race.steps, each.mean(0), color=shade, linestyle=line, linewidth=1.3)
    ax.axhline(race.unigram_loss, color=style.FAINT, linewidth=0.7, linestyle=(0, (1, 2)))
    finite = race.loss[np.isfinite(race.loss)]
    ax.set_yscale("log")
    if len(finite):
        ax.set_ylim(0.88 * float(finite.min()), 1.12 * float(finite.max()))
    low, high = ax.get_ylim()
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 7, 10) if low <= tick <= high]
    if len(ticks) > 4:
        ticks = [tick for tick in ticks if tick in (0.1, 0.2, 0.5, 1, 2, 4, 10)]
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks], **_SMALL)
    ax.set_xticks([0, race.steps[-1]], ["0", f"{race.steps[-1]:,}"], **_SMALL)
    title = style.shorten(style.printable(race.variants[variant]), (_CURVE + _APART) * 72 - 3, 7.5)
    ax.set_title(title, loc="left", color=style.INK, pad=3, **_SMALL)


def _notes(race: LabRace) -> list[str]:
    first = race.variants[0]
    curves = (
        f"Curves: mean and full spread over seeds, in the colour of the verdict; dashed {first}; "
        f"dotted a predictor that knows how often each byte is ({loss(race.unigram_loss)})."
    )
    return [curves, f"{rule(race)[0].upper()}{rule(race)[1:]}.", f"{pairing(race).capitalize()}."]
