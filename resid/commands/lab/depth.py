"""`resid lab depth`: what norm and shortcut do to signal and gradient in deep stacks."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import click

from resid.commands.files import Output
from resid.commands.lab.options import seed_option
from resid.commands.options import count_option, output_options, quiet_option


@click.command(short_help="Pre-LN, Post-LN, no norm, no residual: deep stacks measured.")
@count_option(
    "--layers",
    40,
    "Of the deepest stack; an eighth, a quarter and a half of it are measured too.",
    most=100,
)
@click.option(
    "--init",
    "inits",
    type=click.Choice(["1/sqrt(n_in)", "1/sqrt(d)", "0.02", "uniform"]),
    multiple=True,
    help="Standard deviation of the weights, or torch's uniform (may be repeated). Default: all.",
)
@click.option(
    "--activation",
    type=click.Choice(["gelu", "relu"]),
    default="gelu",
    show_default=True,
    help="gelu is GPT-2's, by tanh.",
)
@count_option("--seeds", 3, "Draws of the weights, from --seed on.", most=1000)
@seed_option()
@output_options
@quiet_option
def depth(
    layers: int,
    inits: tuple[str, ...],
    activation: str,
    seeds: int,
    seed: int,
    output: Output,
    quiet: bool,
) -> None:
    """Measure signal and gradient in deep, untrained stacks of blocks.

    Five ways to join a sublayer to the stream: norm before it (pre-LN, as GPT-2), norm after the
    sum (post-LN), no norm, no residual, neither. Forward, the size of the stream behind each
    block; backward, the gradient that arrives there. Which of them vanishes or explodes depends on
    the weights, so several initialisations are measured.

    \b
    Examples:
      resid lab depth
      resid lab depth --layers 12 --init 0.02 --seeds 5
      resid lab depth -o depth.png -o depth.json
    """
    from resid.lab.depth_trends import depth as measure

    def watch(cells: Iterable[Any]) -> Iterable[Any]:
        if quiet or not sys.stderr.isatty():
            return cells
        from rich.progress import track

        from resid.render.terminal import make_console

        return track(list(cells), "stacks", console=make_console(sys.stderr), transient=True)

    result = measure(
        layers, inits=inits or None, activation=activation, seed=seed, seeds=seeds, watch=watch
    )
    output.emit(result, table={}, figure={}, quiet=quiet)
