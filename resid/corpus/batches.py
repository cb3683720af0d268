"""What a process reads of a corpus: packets of whole documents, and batches of their windows.

A packet is a run of neighbouring documents, and where it ends depends on the text alone. Batches
never reach over a packet's end. So whoever reads a packet computes the same numbers to the last
bit, which is what makes shards, processes and interrupted runs agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from resid.corpus.text import Corpus, Document
from resid.corpus.windows import Origin, UncuttableError, Window, cut_windows, tokenized
from resid.results.corpus_source import BadLine

# Windows of so many batches are sorted by length, so that little is padded.
_SORTED_TOGETHER = 4
# A packet is closed after so many characters for every token of a batch: some four batches.
_CHARACTERS = 4 * _SORTED_TOGETHER


@dataclass(frozen=True)
class Cutting:
    """How text is cut."""

    context: int
    """Tokens of text in a window."""
    stride: int
    batch_tokens: int
    """Tokens in a batch, padding included, as far as one window allows."""
    max_tokens: int | None = None
    """Tokens of text to read, from the beginning of the corpus; None: all."""
    bos: int | None = None
    """Token to put in front of every window; it is never counted itself."""


@dataclass(frozen=True)
class Batch:
    """Windows that the model reads at once.

    A row is a position that counts. Axes: row.
    """

    windows: list[Window]
    bos: int | None

    @property
    def ids(self) -> list[list[int]]:
        """What the model reads, one list for each window."""
        front = [] if self.bos is None else [self.bos]
        return [front + window.ids for window in self.windows]

    @property
    def tokens(self) -> int:
        """Tokens of text that count."""
        return sum(len(window.ids) - window.counted for window in self.windows)

    @cached_property
    def whole(self) -> bool:
        """Whether every position of every window counts, and all are equally long."""
        alike = len({len(window.ids) for window in self.windows}) == 1
        return self.bos is None and alike and not any(w.counted for w in self.windows)

    @cached_property
    def window(self) -> npt.NDArray[np.int64]:
        """[row] which window of the batch."""
        return self._rows(lambda i, window: np.full(len(window.ids) - window.counted, i))

    @cached_property
    def place(self) -> npt.NDArray[np.int64]:
        """[row] which position of what the model reads."""
        shift = int(self.bos is not None)
        return self._rows(lambda i, window: np.arange(window.counted, len(window.ids)) + shift)

    @cached_property
    def document(self) -> npt.NDArray[np.int64]:
        """[row] which document of the corpus."""
        return self._origins(lambda origin: origin.document)

    @cached_property
    def file(self) -> npt.NDArray[np.int64]:
        """[row] which file of the corpus the document is in."""
        return self._origins(lambda origin: origin.file)

    @cached_property
    def line(self) -> npt.NDArray[np.int64]:
        """[row] the line of the file with which the document begins."""
        return self._origins(lambda origin: origin.line)

    @cached_property
    def pos(self) -> npt.NDArray[np.int64]:
        """[row] which of the document's tokens."""
        starts = np.array([window.start for window in self.windows])
        return starts[self.window] + self.place - int(self.bos is not None)

    @cached_property
    def next(self) -> npt.NDArray[np.int64]:
        """[row] the token that follows in the document, or `NONE`."""
        return self._rows(
            lambda i, window: np.array([*window.ids[window.counted + 1 :], window.next])
        )

    def _origins(self, of: Callable[[Origin], int]) -> npt.NDArray[np.int64]:
        return np.array([of(window.origin) for window in self.windows])[self.window]

    def _rows(self, of: Callable[[int, Window], Any]) -> npt.NDArray[np.int64]:
        return np.concatenate([of(i, window) for i, window in enumerate(self.windows)])


@dataclass(frozen=True)
class PacketEnd:
    """All batches of a packet have gone by."""

    packet: int
    documents: int
    """With at least one token."""
    empty: int


class Work:
    """The batches of the packets that one process reads, in order, and the packets' ends.

    Attributes:
        tokens_seen: tokens of text up to here, where there is a limit to them; else of the packets
            that this process reads.
    """

    def __init__(
        self,
        corpus: Corpus,
        encode: Callable[[str], list[int]],
        cutting: Cutting,
        mine: Callable[[int], bool],
        seam: re.Pattern[str] | None,
    ) -> None:
        """Remember what to do.

        Args:
            corpus: to read.
            encode: text to ids.
            cutting: how to cut it.
            mine: whether a packet is for this process, by its number.
            seam: where a text may be cut, see `resid.corpus.windows.find_seam`.
        """
        self.corpus, self.encode, self.cutting = corpus, encode, cutting
        self._wanted, self._seam = mine, seam
        self._numbers = {name: i for i, name in enumerate(corpus.files)}
        self.packet = self.tokens_seen = 0
        self._first_packet = 0
        self._begin()

    def _begin(self) -> None:
        """Begin a packet."""
        self._characters = self._documents = self._empty = self._length = 0
        self._is_empty = True
        self._waiting: list[Window] = []

    @property
    def mine(self) -> bool:
        """Whether the packet that is being gone through is read by this process."""
        return self.packet >= self._first_packet and self._wanted(self.packet)

    def run(self, first_packet: int = 0) -> Iterator[Batch | PacketEnd]:
        """Everything of the packets from one on; bad lines before it are told of all the same."""
        self.packet = self.tokens_seen = 0
        self._first_packet = first_packet
        self._begin()
        for document in self.corpus.documents():
            yield from self._document(document)
            if self._done():
                break
            if self._characters >= _CHARACTERS * self.cutting.batch_tokens:
                yield from self._end()
                self.packet += 1
                self._begin()
        yield from self._end()

    def _document(self, document: Document) -> Iterator[Batch]:
        before, self._cut_short = self.tokens_seen, False
        pieces = self._measured(document)
        if not self.mine:
            # Where there is a limit, also tokens that others read must be counted.
            unread = pieces if self.cutting.max_tokens is None else self._ids(document, pieces)
            for _ in unread:
                pass
            return
        for window in self._windows(document, self._ids(document, pieces)):
            self._waiting.append(window)
            self._length += len(window.ids)
            if self._length >= _SORTED_TOGETHER * self.cutting.batch_tokens:
                yield from self._batches()
        some = self.tokens_seen > before
        self._documents += some
        self._empty += not some and not self._cut_short
        self._is_empty = False

    def _end(self) -> Iterator[Batch | PacketEnd]:
        if self.mine and not self._is_empty:
            yield from self._batches()
            yield PacketEnd(self.packet, self._documents, self._empty)

    def _measured(self, document: Document) -> Iterator[str]:
        for piece in document.pieces:
            self._characters += len(piece)
            yield piece

    def _ids(self, document: Document, pieces: Iterator[str]) -> Iterator[list[int]]:
        """The ids of a document, as far as `max_tokens` and memory allow."""
        before = self.tokens_seen
        try:
            for piece in tokenized(pieces, self.encode, self._seam):
                if self.cutting.max_tokens is not None:
                    piece = piece[: self.cutting.max_tokens - self.tokens_seen]
                self.tokens_seen += len(piece)
                yield piece
                if self._done():
                    return
        except UncuttableError as error:
            self._cut_short = True
            read = self.tokens_seen - before
            told = f"{error}; its first {read:,} tokens were read" if read else str(error)
            self.corpus.on_bad(BadLine(document.file, document.line, told))
            for _ in pieces:  # Where the packet ends is not to depend on who reads it.
                pass

    def _windows(self, document: Document, ids: Iterable[list[int]]) -> Iterator[Window]:
        origin = Origin(document.index, self._numbers[document.file], document.line)
        return cut_windows(origin, ids, self.cutting.context, self.cutting.stride)

    def _done(self) -> bool:
        return self.cutting.max_tokens is not None and self.tokens_seen >= self.cutting.max_tokens

    def _batches(self) -> Iterator[Batch]:
        """The waiting windows, shortest first, as many at a time as a batch holds."""
        together: list[Window] = []
        for window in sorted(self._waiting, key=lambda window: len(window.ids)):
            if (len(together) + 1) * len(window.ids) > self.cutting.batch_tokens and together:
                yield Batch(together, self.cutting.bos)
                together = []
            together.append(window)
        if together:
            yield Batch(together, self.cutting.bos)
        self._waiting, self._length = [], 0
