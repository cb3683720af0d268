"""How every command ends: its exit status, and errors told in at most three lines."""

from __future__ import annotations

import errno
import os
import sys
from typing import IO, Any

import click

from resid.commands.files import FAILED
from resid.errors import ResidError, first_line
from resid.tokens import escape_text

INTERRUPTED = 130
CHECK_FAILED = 3


class Problem(click.ClickException):
    """A problem that the user can fix: exit status 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on standard error, with nothing in it that a terminal would obey."""
        lines = [escape_text(line) for line in self.message.splitlines()[:3]]
        click.echo("Error: " + "\n       ".join(lines), file=file, err=file is None)


class ResidGroup(click.Group):
    """A click group that turns what the commands raise into exit statuses."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                # Latin-1, cp1252 and ASCII outputs get escapes in place of an exception.
                stream.reconfigure(errors="backslashreplace")
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            if ctx.meta.get(FAILED):
                ctx.exit(CHECK_FAILED)
            return result
        except click.NoSuchOption as error:
            raise _with_dash_hint(error) from None
        except ResidError as error:
            raise Problem(str(error)) from error
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except OSError as error:
            # Files are written elsewhere and their errors told there: this is standard output.
            _discard_output()
            if error.errno == errno.EPIPE:
                ctx.exit(0)  # The reader has seen enough; that is no error.
            raise Problem(f"cannot write to standard output: {first_line(error)}") from error


def _with_dash_hint(error: click.NoSuchOption) -> click.UsageError:
    hint = 'if it begins the prompt, put -- before it: resid lens -- "-1 + 1 ="'
    return click.UsageError(f"{error.format_message()} ({hint})", ctx=error.ctx)


def _discard_output() -> None:
    """Point standard output at nothing, or Python would complain once more at its exit."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        return  # Not a real file, as under a test runner.
