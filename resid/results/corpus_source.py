"""Where a corpus reading comes from: the model, the text, and how the text was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TextFile:
    """One file of the corpus."""

    name: str
    """As it was found; "-" is standard input."""
    bytes: int | None
    sha256: str | None
    """Of the file as it is on disk; None for standard input."""


@dataclass(frozen=True)
class BadLine:
    """A line that could not be read and was left out."""

    file: str
    line: int
    """From 1."""
    reason: str


@dataclass(frozen=True)
class CorpusSource:
    """Enough to make a corpus reading again."""

    model: str
    revision: str | None
    n_layers: int
    d_model: int
    d_vocab: int
    dtype: str
    device: str
    files: tuple[dict[str, Any], ...]
    """`name`, `bytes` and `sha256` of every file of the text."""
    settings: dict[str, Any]
    """How the text was cut and read: `context`, `stride`, `bos`, `split`, `field`, `max_tokens`,
    `batch_tokens`, and what the analysis adds."""
    shards: tuple[tuple[int, int], ...]
    """Which parts of the text were read, (2, 8) for the second of eight; none: all of it."""
    documents: int
    """With at least one token."""
    empty_documents: int
    tokens: int
    """Tokens of text that were read, each counted once."""
    bad_lines: int
    """Lines that were left out because they could not be read."""
    bad_lines_first: tuple[dict[str, Any], ...]
    """The first of them: `file`, `line`, `reason`."""
    versions: dict[str, str]

    def text(self) -> dict[str, Any]:
        """What was read, and how; not with which model."""
        names = ("files", "settings", "shards", "documents", "tokens")
        return {name: getattr(self, name) for name in names}

    @property
    def subject(self) -> str:
        """The model's name."""
        return self.model
