"""What is said beside the results, on standard error."""

from __future__ import annotations

import click

from resid.tokens import escape_text


def tell(text: str) -> None:
    """Print on standard error, with nothing in it that a terminal would obey."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=True)


def printable(line: str) -> str:
    """The line with signs that no terminal shows as escapes; what is an escape already stays."""
    return "".join(sign if sign.isprintable() else escape_text(sign) for sign in line)
