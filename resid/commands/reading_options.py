"""What commands ask that read one prompt: which points and positions, which tokens, how many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from resid.commands.files import Output
from resid.commands.options import Decorator, Prompt, parse_positions
from resid.errors import ResidError

if TYPE_CHECKING:
    from resid.model import Model


def points_option(help: str) -> Decorator:
    """--points, by their names."""
    return click.option(
        "--points", default="post", show_default=True, metavar="post|all|LIST", help=help
    )


def positions_option(
    help: str = "Positions, for example 0,3,5-8. Default: the table shows the last, files hold "
    "all.",
    default: str | None = None,
) -> Decorator:
    """--positions, for `parse_positions` or `positions_asked`."""
    return click.option(
        "--positions",
        default=default,
        show_default=default is not None,
        metavar="last|all|LIST",
        help=help,
    )


def projection_option(help: str) -> Decorator:
    """--projection, by its name."""
    return click.option(
        "--projection",
        type=click.Choice(["folded", "raw"]),
        default="folded",
        show_default=True,
        help=help,
    )


def positions_asked(text: str | None, n: int, output: Output) -> tuple[list[int], list[int]]:
    """The positions to read, and of these the ones for the table.

    Args:
        text: what --positions was given, if it was.
        n: how many tokens the prompt has.
        output: where the reading goes: files hold every position unless told otherwise.
    """
    asked = parse_positions(text, n)
    if asked is not None:
        return asked, asked
    return [n - 1] if output.only_table else list(range(n)), [n - 1]


def lengths_of(model: Model, prompts: Sequence[Prompt], bos: bool) -> list[int]:
    """How many tokens each prompt has; all are checked before the first is read."""
    return [len(model.encode(prompt, bos=bos)) for prompt in prompts]


def foil_needs_target(target: str | None, foil: str | None) -> None:
    """Refuse a foil that is held against nothing."""
    if foil is not None and target is None:
        raise click.UsageError("--foil needs --target")


def check_tokens(
    model: Model, *, top: int | None = None, target: str | None = None, foil: str | None = None
) -> None:
    """Refuse what the model's vocabulary does not have, before anything is read."""
    if top is not None and top > model.d_vocab:
        raise ResidError(f"--top is {top}; the vocabulary of {model.name} has {model.d_vocab}")
    for token, what in ((target, "the target"), (foil, "the foil")):
        if token is not None:
            model.vocabulary.id_of(token, model.d_vocab, what)
