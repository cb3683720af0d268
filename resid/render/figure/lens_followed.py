"""The followed tokens of the lens as lines: probability over depth, named where they end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.errors import ResidError
from resid.render.figure import style
from resid.render.figure.frame import LINE, caption_lines, write_frame
from resid.render.lens_words import describe_baseline
from resid.render.words import probability
from resid.results import Floats, LogitLens

"""Font size of all labels in points."""

# Okabe and Ito (2008): told apart by every reader; dashes tell apart what has the same colour.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a6a00", "#56b4e9", "#222222")
_DASHES: tuple[object, ...] = ("solid", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
_NAME = 11.0
"""Points from one label to the next."""
_ROOM = 120.0
"""Points that a label may take."""
_LEADER = 14.0
"""Points between the end of a line and its label."""
_Y_LIMITS = (-0.02, 1.02)
"""A little more than probabilities take, so that no line lies on the frame."""
# To the left end of a label, where by default it would run to its middle, through its neighbours.
_LEADER_LINE = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 2, "shrinkB": 2, "relpos": (0, 0.5)}
_MARGIN, _LEFT, _ABOVE, _BELOW = 0.2, 0.65, 0.45, 0.75
_LEAST_HEIGHT, _LEAST_WIDTH, _WIDEST = 2.6, 3.6, 9.0


def draw_followed(lens: LogitLens, ax: Axes, position: int | None = None) -> Axes:
    """Draw the probability of every token that leads somewhere at one position.

    Args:
        lens: read with `follow`.
        ax: where to; the labels stand to its right, as many as its height has room for.
        position: of the prompt; the last one decoded if not given.

    Returns:
        `ax`.

    Raises:
        ResidError: the lens has no followed tokens, or no such position.
    """
    which = _followed(lens, position)
    with style.styled():
        for n, i in enumerate(which):
            _draw_line(lens, ax, i, *_look(n))
        n_points = len(lens.points)
        ax.set(xlim=(-0.3, max(n_points - 1, 0) + 0.3), ylim=_Y_LIMITS)
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"], **style.LABEL)
        ax.set_ylabel("probability", color=style.FAINT, **style.LABEL)
        _label_points(lens.points, ax)
        style.plain_axes(ax)
        _label_lines(lens, which, ax)
    return ax


def followed_figure(lens: LogitLens, position: int | None = None) -> Figure:
    """The lines as a figure of their own, as tall as its labels need.

    Args:
        lens: read with `follow`.
        position: of the prompt; the last one decoded if not given.

    Raises:
        ResidError: as `draw_followed`.
    """
    which = _followed(lens, position)
    longest = max((style.text_width(point, style.SIZE) for point in lens.points), default=0)
    wanted = len(lens.points) * (longest + 8) / 72
    across = min(max(wanted, _LEAST_WIDTH), _WIDEST)
    tall = max(_LEAST_HEIGHT, len(which) * _NAME / 72)
    width = _LEFT + across + (_LEADER + _ROOM) / 72 + _MARGIN
    lines = caption_lines(lens, _notes(lens, position), {}, width - 2 * _MARGIN)
    bottom = _MARGIN + LINE * len(lines) + _BELOW
    height = bottom + tall + _ABOVE
    with style.styled():
        made = Figure(figsize=(width, height))
        place = (_LEFT / width, bottom / height, across / width, tall / height)
        draw_followed(lens, made.add_axes(place), position)
        title = f"Tokens that lead along the layers of {lens.source.model}"
        write_frame(made, title, lines, _MARGIN, bottom - _BELOW + 0.05)
    return made


def _index(lens: LogitLens, position: int | None) -> int:
    if position is None:
        return len(lens.positions) - 1
    if position not in lens.positions:
        raise ResidError(f"position {position} was not decoded; see `positions` of the lens")
    return lens.positions.index(position)


def _followed(lens: LogitLens, position: int | None) -> list[int]:
    if lens.followed is None:
        raise ResidError("no token was followed; ask for it with follow=True, or --follow")
    return lens.followed.at(_index(lens, position))


def _look(n: int) -> tuple[str, object]:
    return _COLOURS[n % len(_COLOURS)], _DASHES[n // len(_COLOURS) % len(_DASHES)]


def _draw_line(lens: LogitLens, ax: Axes, i: int, colour: str, dashes: object) -> None:
    """A line with a dot on it wherever the token leads."""
    assert lens.followed is not None
    values = np.exp(lens.followed.logprob[:, i])
    xs = np.arange(len(values))
    leads = lens.followed.leads[:, i]
    ax.plot(xs, values, color=colour, linestyle=dashes, linewidth=1.4, clip_on=False)
    ax.plot(xs[leads], values[leads], "o", color=colour, markersize=3.5, clip_on=False)


def _label_points(points: Sequence[str], ax: Axes) -> None:
    """The points below the Axes, as many as there is room for, the first among them."""
    names = [style.printable(point) for point in points]
    step = _width(ax) / (max(len(points) - 1, 0) + 0.6)
    wanted = max(style.text_width(name, style.SIZE) for name in names) + 5
    every = next(n for n in range(1, len(points) + 1) if n * step >= wanted or n == len(points))
    shown = list(range(0, len(points), every))
    ax.set_xticks(shown, [names[i] for i in shown], **style.LABEL)
    ax.set_xlabel("point of the residual stream", color=style.FAINT, **style.LABEL)
    ax.tick_params(length=2.5, color=style.FAINT)


def _label_lines(lens: LogitLens, which: Sequence[int], ax: Axes) -> None:
    """Each line's token and its last probability, apart from each other, joined to its line."""
    assert lens.followed is not None
    ends = np.exp(lens.followed.logprob[-1, which])
    ends = np.where(np.isfinite(ends), ends, 0.0)
    height = _height(ax)
    # Where there is no room for all, those stay that end highest.
    order = sorted(range(len(which)), key=lambda n: (-ends[n], n))[: max(int(height / _NAME), 1)]
    low, high = _Y_LIMITS
    targets = np.array([(ends[n] - low) / (high - low) * height for n in order])
    for n, place in zip(order, spread_out(targets, _NAME, height), strict=True):
        colour = _look(n)[0]
        last = probability(float(np.exp(lens.followed.logprob[-1, which[n]])))
        room = _ROOM - style.text_width(f" {last}", style.SIZE)
        name = style.shorten(style.mark_token(lens.followed.tokens[which[n]]), room, style.SIZE)
        arrow = _LEADER_LINE | {"color": colour}
        ax.annotate(
            f"{name} {last}",
            xy=(len(lens.points) - 1, ends[n]),
            xytext=(1 + _LEADER / _width(ax), place / height),
            textcoords="axes fraction",
            color=colour,
            ha="left",
            va="center",
            annotation_clip=False,
            arrowprops=arrow,
            **style.LABEL,
        )


def spread_out(wanted: Floats, apart: float, room: float) -> Floats:
    """Places as near to the wanted ones as may be, at least `apart` from each other.

    Args:
        wanted: highest first.
        apart: least distance.
        room: places lie between 0 and this; it has to hold them all.
    """
    places = np.array(wanted, dtype=float)
    for n in range(len(places)):  # Downwards: nothing higher than its neighbour allows.
        ceiling = room if n == 0 else places[n - 1] - apart
        places[n] = min(places[n], ceiling)
    for n in reversed(range(len(places))):  # Upwards: nothing below the floor.
        floor = 0.0 if n == len(places) - 1 else places[n + 1] + apart
        places[n] = max(places[n], floor)
    return places


def _notes(lens: LogitLens, position: int | None) -> list[str]:
    index = _index(lens, position)
    at = lens.positions[index]
    token = style.mark_token(lens.source.tokens[at])
    return [
        f"Every token that is the most probable one at some point, after position {at}, {token};"
        " a dot where it is; at the end of a line its last probability.",
        *describe_baseline(lens, index),
    ]


def _width(ax: Axes) -> float:
    return float(ax.get_window_extent().width * 72 / ax.figure.dpi)


def _height(ax: Axes) -> float:
    return float(ax.get_window_extent().height * 72 / ax.figure.dpi)
