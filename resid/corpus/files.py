"""Which files a text is made of, and what tells one from another."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
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
        tell: is told, in a line, of what in a folder is not read, and why.

    Raises:
        ResidError: something does not exist or cannot be read, or there is no text.
    """
    found: list[str] = []
    for name in names:
        path = Path(name)
        if name == STANDARD_INPUT:
            found.append(name)
        elif path.is_dir():
            fitting, left_out = _search(path)
            for why, files in left_out.items():
                tell(f"left out of '{name}', as {why}: {_some(files)}")
            if not fitting:
                raise ResidError(f"the folder '{name}' holds no .txt and no .jsonl file")
            found += map(str, fitting)
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


def _search(folder: Path) -> tuple[list[Path], dict[str, list[Path]]]:
    """The text files in a folder and below in sorted order, and the rest by why it is left out.

    Raises:
        ResidError: a folder cannot be read.
    """
    fitting: list[Path] = []
    left_out: dict[str, list[Path]] = defaultdict(list)

    def refuse(error: OSError) -> None:
        raise ResidError(f"cannot read '{error.filename}': {error.strerror or error}")

    for here, folders, names in os.walk(folder, onerror=refuse):
        for link in (Path(here, name) for name in folders):
            if link.is_symlink():  # It may lead in a circle.
                left_out["a link to a folder"].append(link)
        for file in (Path(here, name) for name in names):
            if not kind_of(file.name):
                left_out["neither .txt nor .jsonl"].append(file)
            elif file.is_file():
                fitting.append(file)
            else:  # A link that leads nowhere, a pipe, a device.
                left_out["no file that can be read"].append(file)
    return sorted(fitting), left_out


def _some(files: Sequence[Path]) -> str:
    names = ", ".join(f"'{file.name}'" for file in sorted(files)[:2])
    return names + (f" and {len(files) - 2:,} more" if len(files) > 2 else "")


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
