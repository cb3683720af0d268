"""The options that the experiments share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from resid.commands.options import Decorator, count_option, ids_option, parse_ids

PROMPT = "The capital of France is"
"""What a model reads where no prompt was given."""


def seed_option(
    default: int = 0, help: str = "Of everything that is drawn at random."
) -> Decorator:
    """--seed, of what an experiment draws."""
    return count_option("--seed", default, help, least=0, most=2**31 - 1)


def prompt_options(help: str) -> Decorator:
    """--prompt and --ids; the command gets what was given as `asked`, None where nothing was."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option("--prompt", metavar="TEXT", help=help)
        @ids_option
        @functools.wraps(command)
        def wrapped(prompt: str | None, ids: str | None, **rest: Any) -> Any:
            if prompt is not None and ids is not None:
                raise click.UsageError("give only one of --prompt and --ids")
            return command(asked=prompt if ids is None else parse_ids(ids), **rest)

        return wrapped

    return add
