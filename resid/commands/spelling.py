"""A command line in full: what somebody else would type to get the same result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from resid.results import Origin

# Where the result goes and what is said beside it is no part of what it is.
_FILES = {"file", "files", "outputs"}
_LEFT_OUT = {"quiet", "open_it", "format", "resume", "save_every"}


def spelled(context: click.Context, source: Origin) -> list[str]:
    """The words of the command that makes the result again, `resid` first.

    The model is the one that served, by name, wherever its choice came from; a prompt from standard
    input stands there as its text.

    Args:
        context: of the command that ran.
        source: where its result comes from.
    """
    given = [
        param
        for param in context.command.params
        if context.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE
    ]
    names = {param.name for param in given}
    # The first name in the path is whatever the program was started as.
    path = ["resid", *context.command_path.split()[1:]]
    arguments: list[str] = []
    options: list[str] = []
    for param in given:
        value = context.params.get(param.name or "")
        if isinstance(param, click.Argument):
            arguments += _argument(value, source)
        elif param.name in _FILES:
            # Where a file lies on somebody's machine is nobody else's business.
            options += _option(param, [Path(str(file)).name for file in _listed(value)])
        elif param.name not in _LEFT_OUT and param.name != "model":
            options += _option(param, _listed(value) if _may_be_repeated(param) else [value])
    if "model" in {param.name for param in context.command.params} and "models" not in names:
        options += ["-m", str(getattr(source, "model", source.subject))]
    if any(word.startswith("-") for word in arguments):
        return [*path, *options, "--", *arguments]
    return [*path, *arguments, *options]


def _argument(value: Any, source: Origin) -> list[str]:
    values = _listed(value)
    prompt = getattr(source, "prompt", None)
    return [prompt if word == "-" and prompt is not None else str(word) for word in values]


def _may_be_repeated(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and param.multiple


def _option(param: click.Parameter, values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if value is True:
            yield param.opts[0]
        elif value is False:
            yield from param.secondary_opts[:1]
        elif value is not None:
            yield from (param.opts[0], str(value))


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value] if value else []
