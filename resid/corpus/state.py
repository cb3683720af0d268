"""A run on disk: one safetensors file, whole at every moment, that knows what it was made from."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resid import seals
from resid.corpus.labels import check, check_run
from resid.corpus.lens_totals import LensTotals
from resid.corpus.memory_totals import MemoryTotals
from resid.corpus.norms_totals import NormsTotals
from resid.corpus.totals import Totals
from resid.errors import ResidError, brief_name, first_line
from resid.results.corpus_source import BadLine, CorpusSource

try:
    import fcntl
except ImportError:  # Windows.
    fcntl = None  # type: ignore[assignment]

FILE = "state.safetensors"
"""The file, in a run's folder, that holds the run."""
_VERSION = "3"
_TOTALS: dict[str, type[Totals]] = {
    kind.analysis: kind for kind in (LensTotals, NormsTotals, MemoryTotals)
}
# How many bad lines are kept by name; all are counted.
_BAD_LINES = 100


@dataclass
class Tally:
    """What was read, in numbers that add up."""

    documents: int = 0
    empty_documents: int = 0
    tokens: int = 0
    bad_lines: int = 0
    first_bad: list[tuple[int, int, str]] = field(default_factory=list)
    """(index of the file, line, reason) of the first bad lines."""

    def add_bad(self, file: int, line: int, reason: str) -> None:
        """Count a line that cannot be read."""
        self.bad_lines += 1
        self._keep([(file, line, reason)])

    def add(self, other: Tally) -> None:
        """Add what another has counted."""
        self.documents += other.documents
        self.empty_documents += other.empty_documents
        self.tokens += other.tokens
        self.bad_lines += other.bad_lines
        self._keep(other.first_bad)

    def _keep(self, more: Sequence[tuple[int, int, str]]) -> None:
        self.first_bad = sorted([*self.first_bad, *more])[:_BAD_LINES]


@dataclass
class Run:
    """One run, or what several runs were merged to.

    Attributes:
        fingerprint: what it depends on: `model`, `text`, `settings`; equal for all that merge.
        about: what else is told of it: names, sizes, versions.
        shards: (k, n) of the parts of the text that it covers; none for all of it.
        packet: the packet that is being read.
        batch: how many batches of that packet are in the totals.
        finished: whether its part of the text has been read.
    """

    fingerprint: dict[str, Any]
    about: dict[str, Any]
    totals: Totals
    tally: Tally
    shards: tuple[tuple[int, int], ...] = ()
    packet: int = 0
    batch: int = 0
    finished: bool = False

    def source(self) -> CorpusSource:
        """Where the result comes from."""
        names = [file["name"] for file in self.about["files"]]
        bad = [BadLine(names[file], line, reason) for file, line, reason in self.tally.first_bad]
        settings = self.fingerprint["settings"]
        about = {name: value for name, value in self.about.items() if name != "files"}
        return CorpusSource(
            **about,
            dtype=self.fingerprint["model"]["dtype"],
            files=tuple(self.about["files"]),
            settings=dict(settings),
            shards=self.shards,
            documents=self.tally.documents,
            empty_documents=self.tally.empty_documents,
            tokens=self.tally.tokens,
            bad_lines=self.tally.bad_lines,
            bad_lines_first=tuple(vars(line) for line in bad),
        )

    def add(self, other: Run) -> None:
        """Add the totals of another part of the same text; see `resid.corpus.merging` first."""
        record, arrays = other.totals.record(), other.totals.arrays()
        self.totals.add(record, arrays)
        self.tally.add(other.tally)

    def to_bytes(self) -> bytes:
        """The run as the bytes of a safetensors file."""
        from safetensors.numpy import save

        header = {
            "version": _VERSION,
            seals.NAME: seals.OPEN,
            "analysis": self.totals.analysis,
            "fingerprint": self.fingerprint,
            "about": self.about,
            "totals": self.totals.record(),
            "tally": vars(self.tally),
            "shards": self.shards,
            "packet": self.packet,
            "batch": self.batch,
            "finished": self.finished,
        }
        arrays = {name: array.copy() for name, array in sorted(self.totals.arrays().items())}
        # In one entry: safetensors puts several in any order, and equal runs are to be equal files.
        return seals.sealed(bytes(save(arrays, {"corpus": json.dumps(header)})))


def from_bytes(content: bytes, name: str) -> Run:
    """The run that the bytes of a safetensors file hold.

    Args:
        content: the bytes.
        name: of the file, for errors.

    Raises:
        ResidError: they hold no run, or one of another version of resid, or are damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
        length = int.from_bytes(content[:8], "little")
        header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["corpus"])
        if header["version"] != _VERSION:
            raise ResidError(f"'{name}' is a corpus run of another version of resid")
        check_run(header)
        kind, shape = _TOTALS[header["analysis"]], header["totals"]["shape"]
        check(shape, kind.labels, "totals.shape")
        if not kind.could_hold(shape, arrays):
            raise ValueError("totals.shape is not that of the numbers")
        totals = kind(**shape)
        totals.add(header["totals"], {key: array.copy() for key, array in arrays.items()})
        if totals.files_named() > len(header["about"]["files"]):
            raise ValueError("the numbers are of files that the text does not have")
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        told = brief_name(first_line(error))
        raise ResidError(f"'{name}' is not a corpus run: {told}") from error
    if not seals.is_whole(content):
        raise ResidError(
            f"'{name}' is damaged: it is not what was written, to the bit\n"
            "copy it again, or make the run anew in another folder"
        )
    tally = Tally(**header["tally"])
    tally.first_bad = [(file, line, reason) for file, line, reason in tally.first_bad]
    return Run(
        fingerprint=header["fingerprint"],
        about=header["about"],
        totals=totals,
        tally=tally,
        shards=tuple((k, n) for k, n in header["shards"]),
        packet=header["packet"],
        batch=header["batch"],
        finished=header["finished"],
    )


def read(path: Path) -> Run:
    """The run in a file.

    Raises:
        ResidError: there is none, or it cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ResidError(f"cannot read '{path}': {error.strerror or error}") from None
    return from_bytes(content, str(path))


def open_run(folder: str | Path) -> Run:
    """The finished run in a folder, read without torch.

    Raises:
        ResidError: there is none in it, or it is not finished.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        raise ResidError(f"there is no corpus run in '{folder}': it has no {FILE}")
    run = read(path)
    if not run.finished:
        raise ResidError(
            f"the run in '{folder}' is not finished\ngo on with it: the same command, --resume"
        )
    return run


def save(run: Run, path: Path) -> None:
    """Write the run so that at every moment the file is the old one or the new one, whole.

    Raises:
        ResidError: it cannot be written; what was there before is untouched.
    """
    temporary = None
    try:
        path.parent.mkdir(exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=_TEMPORARY + path.name)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(run.to_bytes())
            opened.flush()
            os.fsync(opened.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        raise ResidError(f"cannot write '{path}': {error.strerror or error}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def owned(folder: Path | None, *, alone: bool) -> Iterator[None]:
    """The folder kept, for the time of the block, from other runs that would save in it.

    Where the system or the disk has no locks for folders nothing is kept.

    Args:
        folder: of the run, made if there is none, and then removed again if it stays empty; None:
            nothing is saved.
        alone: whether one process saves in it, or several of one run.

    Raises:
        ResidError: another run saves in it now, or it cannot be made.
    """
    if folder is None:
        yield
        return
    try:
        made = not folder.exists()
        folder.mkdir(exist_ok=True)
        descriptor = None if fcntl is None else os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise ResidError(f"cannot save a run in '{folder}': {error.strerror or error}") from error
    try:
        if descriptor is not None:
            _lock(descriptor, alone, folder)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
        if made:
            with suppress(OSError):
                folder.rmdir()  # Which does nothing where there is something in it.


def _lock(descriptor: int, alone: bool, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ResidError(
            f"another run is saving in '{folder}'\nwait for its end, or give another folder"
        ) from None
    except OSError as error:
        del error  # The disk has no locks; that is no reason not to read.


_TEMPORARY = ".writing."


def sweep(path: Path) -> None:
    """Remove what a run that was killed while it wrote this file has left beside it."""
    for left in path.parent.glob(f"{_TEMPORARY}{path.name}*"):
        left.unlink(missing_ok=True)
