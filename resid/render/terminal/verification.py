"""A certificate in the terminal: one row for each check in each number format."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from resid.render import words
from resid.render.terminal import cells
from resid.render.terminal.columns import column, print_columns
from resid.render.terminal.console import safe, say
from resid.render.terminal.frame import print_source
from resid.results import Verification
from resid.results.verification import Line
from resid.tokens import escape_text, quote


def render_verification(found: Verification, console: Console) -> None:
    """Print what was checked, on which prompts, and whether it holds."""
    print_source(console, "verification", found)
    source = found.source
    versions = ", ".join(f"{name} {number}" for name, number in source.versions.items())
    say(console, f"{source.dtype} on {source.device}; {versions}", cells.QUIET)
    for i, (text, ids) in enumerate(zip(found.prompts, found.prompt_ids, strict=True)):
        shown = quote(escape_text(text)) if text is not None else "ids " + ", ".join(map(str, ids))
        say(console, f"prompt {i}: {shown}, {words.count(len(ids), 'token')}", cells.QUIET)
    say(console, "")
    lines = found.lines()

    def texts(cell: Callable[[Line], str]) -> list[Text]:
        # Loud from end to end where the check failed.
        return [
            Text(safe(console, cell(line)), style="" if line.check.passed else cells.LOUD)
            for line in lines
        ]

    print_columns(
        console,
        [
            column("in", texts(lambda line: line.dtype)),
            column("check", texts(lambda line: line.check.name)),
            column("error", texts(lambda line: words.short(line.check.error)), right=True),
            column("tolerance", texts(_tolerance), right=True),
            column("", texts(lambda line: "ok" if line.check.passed else "FAILED")),
            column("worst at", texts(lambda line: line.place)),
        ],
    )
    say(console, "")
    say(console, _summary(found), "" if found.passed else cells.LOUD)


def _tolerance(line: Line) -> str:
    return words.short(line.check.tolerance) if line.check.tolerance else "exact"


def _summary(found: Verification) -> str:
    made, kinds = len(found.checks), len({check.name for check in found.checks})
    if found.passed:
        return f"all {made} checks of {kinds} kinds passed"
    return f"{len(found.failures)} of {made} checks FAILED"
