"""How figures look, and how text gets into them: no TeX, no missing glyph, no overlap."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font

from resid.render.escapes import cut, escape_unless
from resid.tokens import mark_spaces

# DejaVu Sans comes with matplotlib: the same figure everywhere, and known glyphs.
_FONT = "DejaVu Sans"

PLAIN_TEXT: dict[str, Any] = {"parse_math": False, "usetex": False, "fontfamily": _FONT}
"""For every text that is written, also on Axes that somebody else made."""

SIZE = 8.0
"""Font size in points of labels."""

LABEL: dict[str, Any] = PLAIN_TEXT | {"size": SIZE}
"""For every label that is written."""

INK = "#222222"
FAINT = "#6b6b6b"
ALARM = "#b00020"
MARK = "#e8710a"
GRID = "#e8e8e8"

_STYLE: dict[Any, Any] = {
    # Hinted glyphs take whole pixels: up to 4 % more than `text_width` measures.
    "text.hinting": "none",
    "font.family": [_FONT],
    "font.size": 8,
    "text.color": INK,
    "axes.labelcolor": FAINT,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "white",
    "axes.grid": False,
    "axes.labelsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "white",
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
    "savefig.facecolor": "auto",
    "savefig.bbox": None,
    "hatch.linewidth": 0.5,
    # Outlines need no font where the file is opened.
    "svg.fonttype": "path",
    "svg.hashsalt": "resid",
    "pdf.fonttype": 42,
}


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """The style of all figures, for as long as the `with` lasts."""
    with matplotlib.rc_context(_STYLE):
        yield


def plain_axes(ax: Axes) -> None:
    """Two spines, a faint grid behind what is drawn, small ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=2.5, color=FAINT, labelsize=SIZE)


def plain_legend(ax: Axes, **look: Any) -> None:
    """Name what is drawn, without a frame; text is taken as it is.

    Args:
        ax: what to name.
        **look: of the legend, as matplotlib takes it.
    """
    made = ax.legend(
        frameon=False,
        prop={"family": _FONT, "size": SIZE},
        labelspacing=0.35,
        borderpad=0.2,
        **look,
    )
    for text in made.get_texts():
        text.set_parse_math(False)
        text.set_usetex(False)


def surer_is_darker(more_is_surer: bool) -> Colormap:
    """One hue from pale to dark, safe for the colour-blind and in grey."""
    return matplotlib.colormaps["Blues" if more_is_surer else "Blues_r"]


def ink_on(colour: Iterable[float]) -> str:
    """Dark or white, whichever can be read on the colour (W3C relative luminance)."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return INK if luminance > 0.21 else "white"


def mark_token(display: str) -> str:
    """The token as figures show it: spaces visible, signs without a glyph escaped."""
    return printable(mark_spaces(display))


def printable(text: str) -> str:
    """The text with everything escaped for which the font has no glyph."""
    return escape_unless(_has_glyph, text)


def shorten(text: str, room: float, size: float) -> str:
    """The text, or its beginning and an ellipsis, in at most `room` points at the font size."""
    return cut(text, room, lambda part: text_width(part, size))


def text_width(text: str, size: float) -> float:
    """The width in points of a text at a font size in points."""
    return size * sum(map(_advance, text))


def _has_glyph(sign: str) -> bool:
    return sign.isprintable() and _font().get_char_index(ord(sign)) != 0


@functools.cache
def _advance(sign: str) -> float:
    """The width of one sign at size 1."""
    glyph = _font().load_char(ord(sign))
    return glyph.linearHoriAdvance / 65536 / _MEASURED_AT


_MEASURED_AT = 64


@functools.cache
def _font() -> FT2Font:
    # An object of our own: setting the size of matplotlib's would change its texts.
    font = FT2Font(findfont(FontProperties(family=_FONT)))
    font.set_size(_MEASURED_AT, 72)
    return font
