"""The templates of this folder, every string in them escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from resid.render.escapes import as_utf8
from resid.render.words import describe_input


def fill(name: str, **values: Any) -> str:
    """The template, filled in; what UTF-8 cannot hold is an escape in it."""
    return as_utf8(_environment().get_template(name).render(**values))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates", encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["describe_input"] = describe_input
    return environment
