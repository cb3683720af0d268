"""What a run over text is to do, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Plan:
    """What to read, and how."""

    files: tuple[str, ...]
    """As `resid.corpus.files.find_files` gives them."""
    context: int | None = None
    """Tokens of text in a window; None: as many as the model reads."""
    stride: int | None = None
    """From window to window; None: `context`, so that none overlap."""
    bos: bool = False
    """Put a beginning-of-sequence token in front of every window; it is not counted."""
    split: str = "file"
    field: str | None = None
    max_tokens: int | None = None
    batch_tokens: int = 4096
    strict: bool = False
    """Make bad lines errors."""
    shard: tuple[int, int] = (1, 1)
    """Read the k-th of n parts of the text, counted from 1."""
    folder: Path | None = None
    """Where to save the run."""
    resume: bool = False
    """Go on with a run that is in the folder, if there is one."""
    save_every: float = 60.0
    """Seconds from one saving to the next."""


@dataclass(frozen=True)
class Step:
    """How far a run has come."""

    bytes_read: int
    """Of the files, as far as this process has gone through them."""
    tokens_seen: int
    """From the beginning of the text, where there is a limit to them."""
    tokens: int
    """That this process has read now, without those of a run taken up."""
