"""A document's tokens, cut into windows that a model can read, each token counted once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from resid.errors import ResidError

NONE = -1
"""In place of a token where there is none."""

# Long enough that cutting costs nothing, short enough that a long document is never held whole.
PIECE = 1 << 15
# As many characters are encoded at once at most; it takes some 200 bytes for each.
_LONGEST = 1 << 24
# Between a word and a space that begins the next one, no tokenizer of GPT-2's kind has a token.
_SEAM = re.compile(r"(?<=[^\W_])(?= [^\W\d_])")


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
    cuts: bool,
    what: str = "the text",
) -> Iterator[list[int]]:
    """The ids of a text that comes in pieces, the same as those of the text as a whole.

    Args:
        pieces: of the text.
        encode: text to ids.
        cuts: whether the text may be encoded in parts that end with a word, see `cuts_cleanly`;
            else it is encoded as a whole.
        what: names the text, for the error.

    Raises:
        ResidError: so much of it has no place to cut it at that memory might not suffice.
    """
    held: list[str] = []
    length = 0
    seamless = False  # Whether what is held has been looked through in vain.
    for piece in pieces:
        # A seam may lie on the border of two pieces: a sign before it and two behind.
        border = "".join(held[-1:])[-3:]
        held.append(piece)
        length += len(piece)
        if cuts and length >= PIECE and (not seamless or _SEAM.search(border + piece)):
            text = "".join(held)
            begin = 0
            while len(text) - begin >= PIECE:
                seam = _SEAM.search(text, begin + PIECE // 2 + 1)
                if seam is None:
                    break
                yield encode(text[begin : seam.start()])
                begin = seam.start()
            held = [text[begin:]]
            length = len(held[0])
            seamless = length >= PIECE
        if length > _LONGEST:
            raise ResidError(
                f"{what} has {_LONGEST:,} characters that can only be made tokens of at once\n"
                "put line breaks into it and read it with --split lines"
            )
    if length:
        yield encode("".join(held))


def cuts_cleanly(encode: Callable[[str], list[int]]) -> bool:
    """Whether a tokenizer gives the parts of a text that `tokenized` makes the ids of the whole."""
    probes = ("the cat", "In 1999 we", "a b c", "Don't say that", "x y")
    return all(
        encode(text) == encode(text[: seam.start()]) + encode(text[seam.start() :])
        for text in probes
        for seam in _SEAM.finditer(text)
    )
