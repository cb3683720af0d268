"""Which files a text is made of, and what tells one from another."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from resid.errors import ResidError
from resid.headers import refuse_pipe
from resid.results.corpus_source import TextFile

STANDARD_INPUT = "-"
_SUFFIXES = (".txt", ".jsonl")


def find_files(names: Sequence[str], tell: Callable[[str], None]) -> list[str]:
    """The text files that names stand for: files as they are, folders searched in sorted order.

    Args:
        names: files, folders, or "-" for standard input.
        tell: is told, in a line, of files in a folder that are not text.

    Raises:
        ResidError: something does not exist or cannot be read, or there is no text.
    """
    found: list[str] = []
    for name in names:
        path = Path(name)
        if name == STANDARD_INPUT:
            found.append(name)
        elif path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.is_file())
            fitting = [str(file) for file in inside if kind_of(file.name)]
            others = len(inside) - len(fitting)
            if not fitting:
                raise ResidError(f"the folder '{name}' holds no .txt and no .jsonl file")
            if others:
                files = f"{others} file{'s' * (others > 1)}"
                tell(f"left out of '{name}', as neither .txt nor .jsonl: {files}")
            found += fitting
        elif not _exists(path):
            raise ResidError(f"there is no file '{name}'")
        elif not kind_of(path.name):
            raise ResidError(f"'{name}' is not a text to read\ngive .txt or .jsonl, also with .gz")
        else:
            found.append(name)
    spelled: dict[str, str] = {}
    for name in found:
        # Not where links lead, as `Path.resolve` says: a folder may hold one text by two names.
        one = name if name == STANDARD_INPUT else os.path.abspath(name)  # noqa: PTH100
        if one in spelled:
            also = "" if spelled[one] == name else f", as '{spelled[one]}' too"
            raise ResidError(f"'{name}' is given twice{also}")
        spelled[one] = name
    return found


def _exists(path: Path) -> bool:
    """Whether there is a file; a pipe or a device, which cannot be read twice, is refused."""
    try:
        refuse_pipe(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ResidError(f"cannot read '{path}': {error.strerror or error}") from None
    except ValueError:  # A NUL in the name.
        return False
    return True


def kind_of(name: str) -> str:
    """Which of .txt and .jsonl a name ends with, before .gz if that is there; else empty."""
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    return suffix if suffix in _SUFFIXES else ""


def identify(name: str) -> TextFile:
    """A file with its size and the hash of its bytes; standard input has neither."""
    if name == STANDARD_INPUT:
        return TextFile(name, None, None)
    digest, size = hashlib.sha256(), 0
    try:
        refuse_pipe(Path(name))
        with Path(name).open("rb") as opened:
            while piece := opened.read(1 << 20):
                digest.update(piece)
                size += len(piece)
    except OSError as error:
        raise ResidError(f"cannot read '{name}': {error.strerror or error}") from None
    return TextFile(name, size, digest.hexdigest())
