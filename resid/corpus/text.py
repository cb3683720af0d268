"""Documents out of text files: what counts as one, what is bad, and how far reading has come."""

from __future__ import annotations

import codecs
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

from resid.corpus.files import STANDARD_INPUT, kind_of
from resid.errors import ResidError, brief
from resid.results.corpus_source import BadLine

SPLITS = ("file", "blank-lines", "lines")
"""What a .txt file holds: one document, one a paragraph, or one a line."""

# So much of a line, or of a whole file, is held at a time.
_PIECE = 1 << 16
# A line that is one document is held whole, up to this: a few KiB of .gz can hold a line of any
# length.
_LONGEST = 1 << 25
_TOO_LONG = f"longer than {_LONGEST - 1:,} bytes"


@dataclass(frozen=True)
class Document:
    """One document; its text can be read once, and before the next document."""

    index: int
    """In the whole corpus, from 0, whichever process reads it."""
    file: str
    line: int
    """Where it begins, from 1."""
    pieces: Iterator[str]


class Corpus:
    """Text files as one sequence of documents, read anew by every call of `documents`.

    Attributes:
        bytes_read: how far reading has come, in bytes of the files as they are on disk.
    """

    def __init__(
        self,
        files: Sequence[str],
        *,
        split: str = "file",
        field: str | None = None,
        on_bad: Callable[[BadLine], None],
    ) -> None:
        """Remember what to read.

        Args:
            files: as `find_files` gives them.
            split: one of `SPLITS`, for .txt.
            field: of a .jsonl line that holds the text, "text" if not given; given, it also says
                that standard input is .jsonl.
            on_bad: is called with every line that cannot be read, in order; the line is left out,
                but for the beginning of one that is longer than what is held of a document at a
                time, of which the reason then tells.

        Raises:
            ResidError: there is no such split.
        """
        if split not in SPLITS:
            raise ResidError(f"the split is {brief(split)}; choose one of {', '.join(SPLITS)}")
        self.files, self.split, self.field, self.on_bad = tuple(files), split, field, on_bad
        self.bytes_read = 0

    def documents(self) -> Iterator[Document]:
        """Every document in order. One that is not read to its end is skipped.

        Raises:
            ResidError: a file cannot be read or unpacked.
        """
        self.bytes_read = 0
        index = 0
        for name in self.files:
            before = self.bytes_read
            for line, pieces in self._of_file(name, before):
                yield Document(index, name, line, pieces)
                for _ in pieces:
                    pass
                index += 1

    def _of_file(self, name: str, before: int) -> Iterator[tuple[int, Iterator[str]]]:
        jsonl = kind_of(name) == ".jsonl" or (name == STANDARD_INPUT and self.field is not None)
        try:
            with _open(name) as (raw, opened):
                # The lines of .jsonl are read whole: each is one document.
                whole = jsonl or self.split == "lines"
                pieces = self._pieces(name, raw, opened, _LONGEST if whole else _PIECE, before)
                if jsonl:
                    yield from self._json_documents(name, pieces)
                else:
                    yield from self._text_documents(name, pieces)
        except OSError as error:
            raise ResidError(f"cannot read '{name}': {error.strerror or error}") from None

    def _pieces(
        self, name: str, raw: IO[bytes], opened: Any, most: int, before: int
    ) -> Iterator[bytes]:
        """Lines of a file, at most so many bytes at a time."""
        try:
            while piece := opened.readline(most):
                self.bytes_read = before + (raw.tell() if raw.seekable() else 0)
                yield piece
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ResidError(f"'{name}' cannot be unpacked: {error}") from None
        except OSError as error:
            raise ResidError(f"cannot read '{name}': {error.strerror or error}") from None

    def _json_documents(
        self, name: str, lines: Iterator[bytes]
    ) -> Iterator[tuple[int, Iterator[str]]]:
        field = self.field or "text"
        number, begins = 1, True
        for line in lines:
            if begins and (line.strip() or _is_too_long(line)):
                try:
                    text = _text_of(line, field)
                except ValueError as error:
                    self.on_bad(BadLine(name, number, str(error)))
                else:
                    yield number, iter((text,))
            begins = line.endswith(b"\n")
            number += begins

    def _text_documents(
        self, name: str, pieces: Iterator[bytes]
    ) -> Iterator[tuple[int, Iterator[str]]]:
        lines = self._decoded(name, pieces)
        if self.split == "file":
            yield 1, (text for _, text, _ in lines)
        elif self.split == "lines":
            for number, text, _ in lines:
                if text.strip():
                    yield number, iter((text.rstrip("\r\n"),))
        else:
            yield from _paragraphs(lines)

    def _decoded(self, name: str, pieces: Iterator[bytes]) -> Iterator[tuple[int, str, bool]]:
        """(line, text, whether the line begins here) of what is UTF-8."""
        number, begins, bad, read = 1, True, False, 0
        decoder = codecs.getincrementaldecoder("utf-8-sig")()  # A mark of byte order is no text.
        for piece, ends in _with_ends(pieces):
            if not bad:
                try:
                    if self.split == "lines" and _is_too_long(piece):
                        raise ValueError(_TOO_LONG)
                    text = decoder.decode(piece, final=ends)
                except ValueError as error:
                    before = f"; its first {read:,} characters were read" if read else ""
                    self.on_bad(BadLine(name, number, _why_bad(error) + before))
                    bad = True
                else:
                    yield number, text, begins
                    read += len(text)
            begins = ends
            if ends:
                number, bad, read = number + 1, False, 0
                decoder = codecs.getincrementaldecoder("utf-8")()


_GZIP = b"\x1f\x8b"  # No UTF-8 begins so.


class _open:  # noqa: N801
    """A file's bytes as they are on disk, and unpacked."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> tuple[IO[bytes], Any]:
        if self.name == STANDARD_INPUT:
            if sys.stdin is None:
                raise ResidError("cannot read standard input: it is closed")
            # It has no name that would say so, but in memory, not from a stream, it is plain text.
            peek = getattr(sys.stdin.buffer, "peek", lambda size: b"")
            return sys.stdin.buffer, self._unpacked(sys.stdin.buffer, peek(2)[:2] == _GZIP)
        self.raw = Path(self.name).open("rb")
        return self.raw, self._unpacked(self.raw, self.name.lower().endswith(".gz"))

    @staticmethod
    def _unpacked(raw: Any, packed: bool) -> Any:
        return gzip.GzipFile(fileobj=raw) if packed else raw

    def __exit__(self, *_: object) -> None:
        if self.name != STANDARD_INPUT:
            self.raw.close()


def _with_ends(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Pieces of lines, and whether a line ends with them."""
    piece = next(pieces, None)
    while piece is not None:
        following = next(pieces, None)
        yield piece, piece.endswith(b"\n") or following is None
        piece = following


def _is_too_long(line: bytes) -> bool:
    """Whether this is only the beginning of a line, of those that are read whole."""
    return len(line) == _LONGEST and not line.endswith(b"\n")


def _why_bad(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: byte 0x{error.object[error.start]:02x}"
    return str(error)


def _text_of(line: bytes, field: str) -> str:
    """The text that a line of .jsonl holds.

    Raises:
        ValueError: it holds none; the message says why.
    """
    if _is_too_long(line):
        raise ValueError(_TOO_LONG)
    try:
        # Only the text is looked at: of how many digits a number is, is all the same.
        record = json.loads(line.decode("utf-8-sig"), parse_int=float)
    except UnicodeDecodeError as error:
        raise ValueError(_why_bad(error)) from None
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(record, dict) or field not in record:
        raise ValueError(f"no field '{field}'")
    text = record[field]
    if not isinstance(text, str):
        raise ValueError(f"the field '{field}' is not text")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("not valid Unicode: half a surrogate pair") from None
    return text


def _paragraphs(pieces: Iterator[tuple[int, str, bool]]) -> Iterator[tuple[int, Iterator[str]]]:
    """(first line, pieces of text) of what stands between lines that hold nothing."""
    lines = _blank_or_not(pieces)

    def rest(text: str) -> Iterator[str]:
        breaks = ""  # Those before a blank line stay out.
        for _, following, begins in chain(lines, [(0, "", True)]):
            body = text.rstrip("\r\n")
            if body:
                yield breaks + body
            breaks = ("" if body else breaks) + text[len(body) :]
            text = following
            if begins and not text.strip():
                break

    for number, text, _ in lines:
        if text.strip():
            yield number, rest(text)


def _blank_or_not(pieces: Iterator[tuple[int, str, bool]]) -> Iterator[tuple[int, str, bool]]:
    """The same, with the blank beginning of a long line put to what comes after it."""
    held: tuple[int, str] | None = None
    for number, text, begins in pieces:
        if held is not None and begins:
            yield *held, True
        elif held is not None:
            text, begins = held[1] + text, True
        held = None
        if begins and not text.strip() and not text.endswith("\n"):
            held = number, text
        else:
            yield number, text, begins
    if held is not None:
        yield *held, True
