"""How every command ends: its exit status, and errors told in at most three lines."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from resid.commands.files import FAILED
from resid.commands.interrupts import INTERRUPTED, ending_at_once
from resid.commands.notes import discard, printable, say_beside
from resid.errors import ResidError, first_line

CHECK_FAILED = 3
# What torch raises for it is a RuntimeError, in different words on every device.
_OUT_OF_MEMORY = re.compile("out of memory|not enough memory|can't allocate memory")
# What `resid` alone raises, from click 8.2 on, to show its help.
_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())


class Problem(click.ClickException):
    """A problem that the user can fix: exit status 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on standard error, with nothing in it that a terminal would obey."""
        lines = [printable(line) for line in self.message.splitlines()[:3]]
        say_beside("Error: " + "\n       ".join(lines), file)


class Misuse(Problem):
    """A command line that cannot be meant: exit status 2, without click's lines on usage."""

    exit_code = 2

    def __init__(self, error: click.UsageError) -> None:
        message = error.format_message()
        path = error.ctx.command_path if error.ctx else "resid"
        text = _text_argument(error.ctx) if isinstance(error, click.NoSuchOption) else None
        if text:
            message += f' (if it begins the {text}, put -- before it: {path} -- "-1 + 1 =")'
        super().__init__(f"{message}\nsee {path} --help")


def _text_argument(context: click.Context | None) -> str | None:
    """The name of a command's argument that may be any text, also one with a dash in front."""
    params = context.command.params if context else []
    return next((param.name for param in params if param.name in ("prompt", "token")), None)


class ResidGroup(click.Group):
    """A click group that turns what the commands raise into exit statuses."""

    def make_context(self, *args: Any, **rest: Any) -> click.Context:
        """Read the group's own options."""
        with _with_a_status(), _in_few_lines():
            return super().make_context(*args, **rest)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        if sys.stdout is None:
            raise Problem("standard output is closed; to write files only, send it to /dev/null")
        _hold_standard_streams()
        _refuse_lost_folder()
        with ending_at_once():  # A stream half changed has no encoder, and cannot be written to.
            for stream in (sys.stdout, sys.stderr):
                if hasattr(stream, "reconfigure"):
                    # Latin-1, cp1252 and ASCII outputs get escapes in place of an exception.
                    stream.reconfigure(errors="backslashreplace")
        with _with_a_status(), _in_few_lines():
            result = super().invoke(ctx)
            sys.stdout.flush()
        if ctx.meta.get(FAILED):
            ctx.exit(CHECK_FAILED)
        return result


@contextmanager
def _with_a_status() -> Iterator[None]:
    """Turn an interruption, and what files and streams refuse, into an exit status."""
    try:
        yield
    except KeyboardInterrupt:
        say_beside("interrupted")
        raise click.exceptions.Exit(INTERRUPTED) from None
    except OSError as error:
        if error.filename is not None:
            raise Problem(f"'{error.filename}': {error.strerror}") from error
        # A stream has no name.
        discard(sys.stdout)
        if error.errno == errno.EPIPE:
            # The reader has seen enough; that is no error.
            raise click.exceptions.Exit(0) from None
        raise Problem(f"cannot write to standard output: {error.strerror or error}") from error
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not _OUT_OF_MEMORY.search(str(error)):
            raise
        raise Problem(
            f"there is not enough memory ({first_line(error)})\n"
            "a smaller model, a shorter prompt or --dtype bfloat16 takes less"
        ) from error
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "resid":
            raise
        raise Problem(
            f"a library cannot be loaded: {first_line(error)}\n"
            "where memory is limited allow more of it, elsewhere install resid anew"
        ) from error


def _refuse_lost_folder() -> None:
    """Refuse a working directory that was removed: there Intel's MKL ends the process by itself."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise Problem("the working directory is gone; change to one that exists: cd ~") from None


@contextmanager
def _in_few_lines() -> Iterator[None]:
    try:
        yield
    except _HELP as error:
        say_beside(error.format_message())
        raise click.exceptions.Exit(error.exit_code) from None
    except click.UsageError as error:
        raise Misuse(error) from None
    except ResidError as error:
        raise Problem(str(error)) from error


def _hold_standard_streams() -> None:
    """Where one of the three is closed, see to it that nobody stumbles.

    The next file that is opened would get its number, and what a library says would end in it.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (held := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(held)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
