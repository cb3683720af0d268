"""Where results go: standard output in one format, files by their suffix, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from resid.commands.notes import tell
from resid.errors import ResidError

if TYPE_CHECKING:
    from resid.results import Check, Result

# In a click context's meta: some check of some result did not pass.
FAILED = "resid.check_failed"
_FIGURES = (".png", ".svg", ".pdf")
_SUFFIXES = (*_FIGURES, ".html", ".json", ".csv")
# Lines at most on the checks that failed.
_TOLD = 3


@dataclass(frozen=True)
class Output:
    """What a command was asked to produce."""

    files: tuple[Path, ...]
    format: str | None
    """Of standard output: table, json or csv; None: nothing."""

    @classmethod
    def check(cls, files: Sequence[str], format: str | None) -> Output:
        """The request, refused before anything is loaded where it cannot be met."""
        paths = tuple(Path(file) for file in files)
        for path in paths:
            refuse(path)
        return cls(paths, format or (None if paths else "table"))

    @property
    def only_table(self) -> bool:
        """Whether nothing but the table in the terminal was asked for."""
        return not self.files and self.format == "table"

    @property
    def has_page(self) -> bool:
        """Whether one of the files is a web page."""
        return any(path.suffix.lower() == ".html" for path in self.files)

    def emit(
        self,
        result: Result,
        *,
        table: dict[str, Any],
        figure: dict[str, Any],
        quiet: bool,
        recheck: Callable[[], Sequence[Check]] | None = None,
    ) -> None:
        """Write the files and print on standard output.

        Args:
            result: what to write.
            table: options of the result's terminal renderer.
            figure: options of its figure.
            quiet: do not tell on standard error which files were written.
            recheck: the same checks made in float64, called only where one has failed.
        """
        # Every file is made before the first is put in its place.
        contents = [(path, _content(path, result, figure)) for path in self.files]
        for path, content in contents:
            write_whole(path, content)
            if not quiet:
                tell(f"wrote {path}")
        if self.format == "table":
            from resid.render.terminal import make_console, render

            render(result, make_console(sys.stdout), **table)
        elif self.format == "json":
            from resid.render.data import to_json

            unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
            sys.stdout.write(to_json(result, ensure_ascii=not unicode) + "\n")
        elif self.format == "csv":
            from resid.render.data import to_csv

            sys.stdout.write(to_csv(result))
        tell_failures(
            result.failures, None if recheck is None else partial(_again, result, recheck)
        )


def _again(result: Result, recheck: Callable[[], Sequence[Check]]) -> list[Check]:
    """Of a result's checks made once more, those that have failed at first."""
    made = {check.name: check for check in recheck()}
    return [made[check.name] for check in result.failures]


def tell_failures(failures: Sequence[Check], recheck: Callable[[], Sequence[Check]] | None) -> None:
    """Name the first checks that failed, say whether float64 finds the same, end with status 3.

    Args:
        failures: the checks.
        recheck: makes them once more in float64 and returns them in the same order.
    """
    if not failures:
        return
    click.get_current_context().meta[FAILED] = True
    # What is broken for good fails nearly everywhere: the first places tell most.
    named = failures if len(failures) <= _TOLD else failures[: _TOLD - 1]
    for check in named:
        tell(f"check failed: {check.name} at {check.where}")
    if len(named) < len(failures):
        tell(f"{len(failures) - len(named)} more checks failed")
    if recheck is None:
        return
    from resid.render.words import describe_recheck

    sys.stdout.flush()  # The copy takes a while, and the numbers are there.
    try:
        again = recheck()
    except ResidError as error:
        tell(f"not checked in float64: {error}")
        return
    for check in again[: len(named)]:
        tell(describe_recheck(check, named=len(failures) > 1))


def _content(path: Path, result: Result, figure: dict[str, Any]) -> bytes:
    suffix = path.suffix.lower()
    if suffix == ".json":
        return (result.to_json() + "\n").encode()
    if suffix == ".csv":
        return result.to_csv().encode()
    if suffix == ".html":
        from resid.render.html import page_of

        return page_of(result, _spelled_for(result), **figure).encode()
    import io

    from resid.render.figure import save

    buffer = io.BytesIO()
    save(result, buffer, format=suffix.removeprefix("."), **figure)
    return buffer.getvalue()


def _spelled_for(result: Result) -> list[str]:
    """The command line that makes this result again."""
    from resid.commands.spelling import spelled

    return spelled(click.get_current_context(), result.source)


def refuse(path: Path, suffixes: Sequence[str] = _SUFFIXES) -> None:
    """Refuse a path that could not be written, before any work is done for it."""
    if path.suffix.lower() not in suffixes:
        told = f"has the suffix '{path.suffix}'" if path.suffix else "has no suffix"
        raise click.BadParameter(
            f"'{path}' {told}; choose one of {' '.join(suffixes)}",
            param_hint="-o",
        )
    try:
        path.stat()
    except FileNotFoundError:
        there = False
    except OSError as error:  # Links in a circle, a name too long.
        raise ResidError(f"cannot write '{path}': {error.strerror or error}") from None
    else:
        there = True
    target = Path(os.path.realpath(path))  # Where a link leads is where the file will be.
    if not target.parent.is_dir():
        folder = target.parent if path.is_symlink() else path.parent
        raise ResidError(f"cannot write '{path}': the folder '{folder}' does not exist")
    if target.is_dir():
        raise ResidError(f"cannot write '{path}': it is a folder")
    if not os.access(target if there else target.parent, os.W_OK):
        raise ResidError(f"cannot write '{path}': no permission")


def write_whole(path: Path, *content: bytes | memoryview) -> None:
    """Write a file so that at every moment there is the old one or the new one, never a part.

    Args:
        path: of the file.
        content: its bytes, in one piece or several.

    Raises:
        ResidError: it cannot be written; what was there before is untouched.
    """
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as opened:  # A device or a pipe cannot be replaced.
                opened.writelines(content)
            return
        target = Path(os.path.realpath(path))  # A link stays a link.
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.writelines(content)
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
            Path(name).chmod(mode)
            Path(name).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):  # What went wrong before is what to tell.
                Path(name).unlink()
            raise
    except OSError as error:
        raise ResidError(f"cannot write '{path}': {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
