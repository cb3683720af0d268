"""What stands above and below every table: where the result comes from, and whether it holds."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from resid.render.terminal.cells import LOUD, QUIET
from resid.render.terminal.console import safe, say, shorten
from resid.render.words import describe_check, describe_input, told
from resid.results import Result
from resid.tokens import escape_text


def print_source(console: Console, title: str, result: Result) -> None:
    """The reading, its model and its prompt, in one line where they fit."""
    model = safe(console, escape_text(result.source.subject))
    line = Text.assemble((title, "bold"), " of ", (model, "bold"))
    prompt = describe_input(result.source)
    if not prompt:
        say(console, line)
        return
    room = console.width - line.cell_len - 2
    if room < min(cell_len(prompt), 24):
        say(console, line)
        say(console, shorten(console, prompt, console.width))
    else:
        say(console, line.append("  " + shorten(console, prompt, room)))


def print_checks(console: Console, result: Result, identities: Mapping[str, str]) -> None:
    """A quiet line for every check that passed, a loud one for every other.

    Args:
        console: where to.
        result: the result with its checks.
        identities: by a check's name, words that fit this table better than the usual ones.
    """
    for check in told(result.checks):
        line = describe_check(check, identities.get(check.name))
        say(console, line, QUIET if check.passed else LOUD)
