"""A document's tokens, cut into windows that a model can read, each token counted once."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

NONE = -1
"""In place of a token where there is none."""

# Long enough that cutting costs nothing, short enough that a long document is never held whole.
PIECE = 1 << 15
# As many characters are encoded at once at most; it takes 200 to 800 bytes for each.
_LONGEST = 1 << 22
# Where no token of GPT-2's tokenizer reaches over, whatever stands around: between a word and a
# space that begins the next one, where other tokenizers have none either; before any white space;
# and between a letter or digit and a comma or the like, for scripts without spaces.
_SEAMS = (
    r"(?<=[^\W_])(?= [^\W\d_])",
    r"(?<=\S)(?=[ \t\r\n])",
    r"(?<=[0-9A-Za-z\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3])(?=[,;、。，！？；：」])",
)
_BLANKS = (" ", "  ", "\n", "\n\n", "\r\n", "\t", " \n ")
_PROBES = (
    *("the cat", "In 1999 we", "a b c", "Don't say that", "x y"),
    *(f"x{mark}{blank}y" for mark in f"a9é中。{string.punctuation}" for blank in _BLANKS),
    *(f"{left}{mark}{right}" for left in "a0中すがガパ" for mark in ",;、。，！？；：」"
      for right in ("b", "0", " x", "文", "'s", ",")),
)  # fmt: skip


@dataclass(frozen=True)
class Origin:
    """Where a document stands."""

    document: int
    """In the whole corpus, from 0."""
    file: int
    """Which of the corpus's files, from 0."""
    line: int
    """Where it begins there, from 1."""


@dataclass(frozen=True)
class Window:
    """A stretch of one document that the model reads at once, from position 0."""

    origin: Origin
    start: int
    """Which of the document's tokens is the first here."""
    ids: list[int]
    counted: int
    """From which of `ids` on they count; those before were counted in the window before this."""
    next: int
    """The document's token after these, or `NONE` where it ends."""


def cut_windows(
    origin: Origin, ids: Iterable[list[int]], context: int, stride: int
) -> Iterator[Window]:
    """The windows of a document, in order.

    Windows begin every `stride` tokens and hold `context`. Every token counts in the first window
    that it is in, where it has the most context. Each position's next token is the document's, also
    after a window's last position: so every token but the document's first is predicted once.

    Args:
        origin: of the document.
        ids: the document's tokens, piece by piece.
        context: tokens in a window.
        stride: from one window to the next, 1 to `context`; equal to it, windows do not overlap.
    """
    held: list[int] = []
    start = counted = 0
    for piece in ids:
        held += piece
        first = 0
        while len(held) - first > context:
            end = first + context
            yield Window(origin, start + first, held[first:end], counted, held[end])
            first += stride
            counted = context - stride
        del held[:first]
        start += first
    if len(held) > counted:
        yield Window(origin, start, held, counted, NONE)


def tokenized(
    pieces: Iterable[str],
    encode: Callable[[str], list[int]],
    seam: re.Pattern[str] | None,
) -> Iterator[list[int]]:
    """The ids of a text that comes in pieces, the same as those of the text as a whole.

    Args:
        pieces: of the text.
        encode: text to ids.
        seam: where the text may be cut, see `find_seam`; None: it is encoded as a whole.

    Raises:
        UncuttableError: so much of it has no place to cut it at that memory might not suffice.
    """
    held: list[str] = []
    length = 0
    seamless = False  # Whether what is held has been looked through in vain.
    for piece in pieces:
        # A seam may lie on the border of two pieces: a sign before it and two behind.
        border = "".join(held[-1:])[-3:]
        held.append(piece)
        length += len(piece)
        if seam and length >= PIECE and (not seamless or seam.search(border + piece)):
            text = "".join(held)
            begin = 0
            while len(text) - begin >= PIECE:
                found = seam.search(text, begin + PIECE // 2 + 1)
                if found is None:
                    break
                yield encode(text[begin : found.start()])
                begin = found.start()
            held = [text[begin:]]
            length = len(held[0])
            seamless = length >= PIECE
        if length > _LONGEST:
            raise UncuttableError(f"{_LONGEST:,} characters without a place to cut them at")
    if length:
        yield encode("".join(held))


class UncuttableError(ValueError):
    """So much text can only be made tokens of at once that it is left out."""


def find_seam(
    encode: Callable[[str], list[int]], added: Iterable[str] = ()
) -> re.Pattern[str] | None:
    """Where a text may be cut so that its parts have the ids of the whole; None: nowhere.

    Args:
        encode: text to ids.
        added: the tokens that its tokenizer looks for before all else, which may hold white space
            and may swallow what stands around them.
    """
    around = [f"x{token}{blank}y,{blank}{token},b" for token in added for blank in _BLANKS]
    clean = [seam for seam in _SEAMS if _cuts_cleanly(encode, re.compile(seam), around)]
    return re.compile("|".join(clean)) if clean else None


def _cuts_cleanly(
    encode: Callable[[str], list[int]], seam: re.Pattern[str], around: Sequence[str]
) -> bool:
    return all(
        encode(text) == encode(text[: found.start()]) + encode(text[found.start() :])
        for text in (*_PROBES, *around)
        for found in seam.finditer(text)
    )
