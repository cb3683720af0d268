"""One self-contained page: its text, its styles, its script and its numbers in a single file."""

from __future__ import annotations

import base64
import hashlib
import io
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from resid.render.html.contents import DIGITS, contents, embedded
from resid.render.html.light import table_text
from resid.render.html.report import Report, has_panel
from resid.render.html.templating import fill
from resid.render.words import describe_input
from resid.results import Result

_SCRIPT = Path(__file__).parent / "script"
# In the order in which each needs what stands before it.
_SCRIPTS = (
    "words.js",
    "colours.js",
    "charts.js",
    "views.js",
    "grid.js",
    "detail.js",
    "panels.js",
    "page.js",
)


def page(reports: Sequence[Report], command: Sequence[str] = ()) -> str:
    """The HTML text of a page that needs no network and can make no request.

    Args:
        reports: one, or two that are shown side by side.
        command: the words of the command line that makes it again, `resid` first.
    """
    style, script = _joined("page.css"), _joined(*_SCRIPTS)
    spelled = shlex.join(command)
    return fill(
        "page.html.j2",
        title=_title(reports),
        reports=reports,
        digits=DIGITS,
        versions=reports[0].source.versions,
        command=spelled,
        data=Markup(embedded(contents(reports, spelled))),
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
    )


def page_of(result: Result, command: Sequence[str] = (), **options: Any) -> str:
    """A page of one result: its panels where there are some, else its figure and its table.

    Args:
        result: what to show.
        command: as for `page`.
        **options: of the figure, see `resid.render.figure.figure`.
    """
    if has_panel(result):
        return page([Report.of([result])], command)
    style = _joined("page.css")
    return fill(
        "table.html.j2",
        title=f"resid: {result.analysis} of {result.source.subject}",
        result=result,
        figure=_figure(result, options),
        table=table_text(result),
        versions=result.source.versions,
        command=shlex.join(command),
        style=Markup(style),
        policy=f"{_policy(style, '')}; img-src data:",
    )


def _figure(result: Result, options: dict[str, Any]) -> str:
    """The address of the figure, which is the figure itself."""
    from resid.render.figure import save  # Pages with panels do without matplotlib.

    drawn = io.BytesIO()
    save(result, drawn, format="svg", **options)
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn.getvalue()).decode()}"


def _title(reports: Sequence[Report]) -> str:
    told = []
    for report in reports:
        prompt = describe_input(report.source)
        told.append(f"{prompt} on {report.subject}" if prompt else report.subject)
    return "resid: " + " against ".join(told)


def _policy(style: str, script: str) -> str:
    """The Content-Security-Policy: nothing may be fetched, and no other script or style run."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src 'sha256-{_digest(script)}'",
            f"style-src 'sha256-{_digest(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _joined(*names: str) -> str:
    lines = [
        line.strip() for name in names for line in (_SCRIPT / name).read_text("utf-8").splitlines()
    ]
    # Indentation would be a tenth of the page; no string of ours runs over the end of a line.
    return "\n" + "\n".join(line for line in lines if line) + "\n"
