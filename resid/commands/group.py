"""How every command ends: its exit status, and errors told in at most three lines."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from resid.commands.files import FAILED
from resid.commands.interrupts import INTERRUPTED
from resid.commands.notes import printable
from resid.errors import ResidError

CHECK_FAILED = 3
# What `resid` alone raises, from click 8.2 on, to show its help.
_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())


class Problem(click.ClickException):
    """A problem that the user can fix: exit status 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on standard error, with nothing in it that a terminal would obey."""
        lines = [printable(line) for line in self.message.splitlines()[:3]]
        click.echo("Error: " + "\n       ".join(lines), file=file, err=file is None)


class Misuse(Problem):
    """A command line that cannot be meant: exit status 2, without click's lines on usage."""

    exit_code = 2

    def __init__(self, error: click.UsageError) -> None:
        message = error.format_message()
        path = error.ctx.command_path if error.ctx else "resid"
        if isinstance(error, click.NoSuchOption) and error.ctx and error.ctx.parent:
            message += f' (if it begins the prompt, put -- before it: {path} -- "-1 + 1 =")'
        super().__init__(f"{message}\nsee {path} --help")


class ResidGroup(click.Group):
    """A click group that turns what the commands raise into exit statuses."""

    def make_context(self, *args: Any, **rest: Any) -> click.Context:
        """Read the group's own options."""
        with _in_few_lines():
            return super().make_context(*args, **rest)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        if sys.stdout is None:
            raise Problem("standard output is closed; to write files only, send it to /dev/null")
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                # Latin-1, cp1252 and ASCII outputs get escapes in place of an exception.
                stream.reconfigure(errors="backslashreplace")
        try:
            with _in_few_lines():
                result = super().invoke(ctx)
                sys.stdout.flush()
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except OSError as error:
            if error.filename is not None:
                raise Problem(f"'{error.filename}': {error.strerror}") from error
            # A stream has no name, and standard error would have no reader for this either.
            _discard_output()
            if error.errno == errno.EPIPE:
                ctx.exit(0)  # The reader has seen enough; that is no error.
            raise Problem(f"cannot write to standard output: {error.strerror or error}") from error
        if ctx.meta.get(FAILED):
            ctx.exit(CHECK_FAILED)
        return result


@contextmanager
def _in_few_lines() -> Iterator[None]:
    try:
        yield
    except _HELP:
        raise
    except click.UsageError as error:
        raise Misuse(error) from None
    except ResidError as error:
        raise Problem(str(error)) from error


def _discard_output() -> None:
    """Point standard output at nothing, or Python would complain once more at its exit."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        return  # Not a real file, as under a test runner.
