"""A certificate as a figure: how much of its tolerance each check needs, on a logarithmic axis."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render import words
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.figure.style import ALARM, FAINT, INK, PLAIN_TEXT, styled, text_width
from resid.results import Result, Verification
from resid.results.verification import Line

_SIZE = 7.5
_ROW, _MARGIN, _ACROSS, _GAP = 0.17, 0.2, 4.0, 0.12
_HOLDS = "#2f6db3"
# Ratios below and above are drawn at the edge: 0 has no logarithm.
_LEAST, _MOST = 1e-8, 1e2
_TICKS = {1e-8: "1e-8", 1e-6: "1e-6", 1e-4: "1e-4", 1e-2: "0.01", 1: "1", 1e2: "100"}
_MOST_FAILURES = 3


def verification_figure(found: Verification) -> Figure:
    """One row a check and number format, its worst run a dot; right of 1 it failed."""
    lines = found.lines()
    left = max(text_width(_name(line), _SIZE) for line in lines) / 72 + _GAP
    right = max(text_width(_words(line), _SIZE) for line in lines) / 72 + _GAP
    width = 2 * _MARGIN + left + _ACROSS + right
    source = found.source
    notes = [
        f"{source.dtype} on {source.device}, {words.count(len(found.prompts), 'prompt')}. Each dot"
        " is the run that came closest to its tolerance, or passed it; an error of 0 lies at the"
        " left edge."
    ]
    # Every kind of check has its row; the caption tells of failures only.
    told = Result(source, found.failures[:_MOST_FAILURES])
    caption = caption_lines(told, notes, {}, width - 2 * _MARGIN)
    below, tall = 0.5, len(lines) * _ROW
    bottom = _MARGIN + LINE * len(caption) + below
    height = bottom + tall + 0.6
    with styled():
        figure = Figure(figsize=(width, height))
        place = ((_MARGIN + left) / width, bottom / height, _ACROSS / width, tall / height)
        draw_verification(found, figure.add_axes(place))
        verdict = "passes" if found.passed else "FAILS"
        title = f"{source.model} {verdict} verification"
        write_frame(figure, title, caption, _MARGIN, bottom - below)
    return figure


def draw_verification(found: Verification, ax: Axes) -> Axes:
    """The dots, the checks' names to their left and their numbers to their right."""
    lines = found.lines()
    colours = [_HOLDS if line.check.passed else ALARM for line in lines]
    ratios = [_ratio(line) for line in lines]
    ax.set_xscale("log")
    ax.set_xticks([*_TICKS], [*_TICKS.values()], **PLAIN_TEXT)
    ax.minorticks_off()
    ax.set_xlim(_LEAST, _MOST)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    ax.hlines(range(len(lines)), _LEAST, ratios, colors=colours, linewidth=0.8)
    ax.scatter(ratios, range(len(lines)), s=14, c=colours, zorder=3, clip_on=False)
    ax.axvline(1, color=FAINT, linewidth=0.8)
    names = [_name(line) for line in lines]
    ax.set_yticks(range(len(lines)), names, fontsize=_SIZE, **PLAIN_TEXT)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=_SIZE, colors=FAINT)
    ax.set_xlabel("error / tolerance", fontsize=_SIZE, color=FAINT, **PLAIN_TEXT)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)
    for y, line in enumerate(lines):
        ax.annotate(
            _words(line),
            xy=(1, y),
            xycoords=("axes fraction", "data"),
            xytext=(72 * _GAP, 0),
            textcoords="offset points",
            va="center",
            fontsize=_SIZE,
            color=INK if line.check.passed else ALARM,
            annotation_clip=False,
            **PLAIN_TEXT,
        )
    return ax


def _ratio(line: Line) -> float:
    check = line.check
    if check.tolerance == 0 or not math.isfinite(check.error):
        return _LEAST if check.passed else _MOST
    return min(max(check.error / check.tolerance, _LEAST), _MOST)


def _name(line: Line) -> str:
    return f"{line.check.name}, {line.dtype}"


def _words(line: Line) -> str:
    verdict = "ok" if line.check.passed else "FAILED"
    if line.check.tolerance == 0:
        return f"{verdict}, exact"
    return f"{verdict}, {words.short(line.check.error)} of {words.short(line.check.tolerance)}"
