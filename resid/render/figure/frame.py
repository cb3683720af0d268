"""What stands around every figure: a short title above, and below where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from resid.render.figure.style import ALARM, FAINT, INK, PLAIN_TEXT, printable, shorten, text_width
from resid.render.words import describe_check, describe_input, told
from resid.results import Result
from resid.tokens import escape_text

TITLE_SIZE = 11
CAPTION_SIZE = 7
LINE = 1.5 * CAPTION_SIZE / 72
"""Height of a caption line in inches."""

_WIDEST_CAPTION = 9.0


def caption_lines(
    result: Result, notes: Sequence[str], identities: Mapping[str, str], width: float
) -> list[tuple[str, str]]:
    """The lines below a figure, each with its colour.

    Args:
        result: names its model, its prompt and its checks.
        notes: how to read the figure, a sentence each.
        identities: by a check's name, words that fit this figure better than the usual ones.
        width: inches that a line may take.
    """
    room = min(width, _WIDEST_CAPTION) * 72
    source = result.source
    model = source.subject + (f" at {source.revision[:7]}" if source.revision else "")
    resid = f"resid {source.versions.get('resid', '')}".strip()
    origin = (f"{resid}, {escape_text(model)}", describe_input(source))
    lines = [(shorten(printable(text), room, CAPTION_SIZE), INK) for text in origin if text]
    lines += [(line, FAINT) for line in _wrap(printable(" ".join(notes)), room)]
    for check in told(result.checks):
        text = printable(describe_check(check, identities.get(check.name)))
        lines += [(line, FAINT if check.passed else ALARM) for line in _wrap(text, room)]
    return lines


def write_frame(
    figure: Figure, title: str, lines: Sequence[tuple[str, str]], left: float, top: float
) -> None:
    """Write the title and the caption.

    Args:
        figure: to write on.
        title: a few words.
        lines: as `caption_lines` makes them.
        left: where the texts begin, in inches from the left.
        top: where the title ends and the caption begins, in inches from their edges.
    """
    width, height = figure.get_size_inches()
    figure.text(
        left / width,
        1 - 0.12 / height,
        shorten(printable(escape_text(title)), (width - 2 * left) * 72, TITLE_SIZE),
        size=TITLE_SIZE,
        color=INK,
        ha="left",
        va="top",
        **PLAIN_TEXT,
    )
    for i, (text, colour) in enumerate(lines):
        figure.text(
            left / width,
            (top - i * LINE) / height,
            text,
            size=CAPTION_SIZE,
            color=colour,
            ha="left",
            va="top",
            **PLAIN_TEXT,
        )


def _wrap(text: str, room: float) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, CAPTION_SIZE) <= room:
            lines[-1] = longer
        else:
            lines.append(shorten(word, room, CAPTION_SIZE))
    return lines
