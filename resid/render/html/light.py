"""Results as HTML for notebooks: one element that needs neither script, style sheet nor network."""

from __future__ import annotations

import io

from markupsafe import Markup
from rich.console import Console

from resid.render.html.light_grid import LightGrid
from resid.render.html.templating import fill
from resid.render.terminal import render
from resid.results import LogitLens, Result

_WIDTH = 110
_ELEMENT = '<pre style="font-family:monospace;line-height:1.3;overflow-x:auto">{code}</pre>'


def to_html(result: Result) -> str:
    """The result as one HTML element: the lens as a grid, and every result as its table."""
    # rich escapes what it exports.
    table = _recorded(result).export_html(inline_styles=True, code_format=_ELEMENT)
    grid = LightGrid.of(result) if isinstance(result, LogitLens) else None
    return fill("light.html.j2", grid=grid, table=Markup(table))


def table_text(result: Result) -> str:
    """The result's table as plain text."""
    return _recorded(result).export_text()


def _recorded(result: Result) -> Console:
    # Written to nowhere and recorded: showing a result in a notebook prints nothing.
    console = Console(
        file=io.StringIO(),
        record=True,
        width=_WIDTH,
        color_system="truecolor",
        force_terminal=True,
        force_jupyter=False,
        highlight=False,
    )
    render(result, console)
    return console
