"""Results as HTML for notebooks: the terminal's table, with its colours, in one element."""

from __future__ import annotations

import io

from rich.console import Console

from resid.render.terminal import render
from resid.results import Result

_WIDTH = 110
_ELEMENT = '<pre style="font-family:monospace;line-height:1.3;overflow-x:auto">{code}</pre>'


def to_html(result: Result) -> str:
    """The result's table as one HTML element that needs nothing else; every token is escaped."""
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
    return console.export_html(inline_styles=True, code_format=_ELEMENT)
