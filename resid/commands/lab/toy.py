"""`resid lab toy`: gradients in a net of five layers, with and without shortcuts."""

from __future__ import annotations

import click

from resid.commands.files import Output
from resid.commands.lab.options import seed_option
from resid.commands.options import count_option, output_options, quiet_option


@click.command(short_help="Gradients in a net of five layers, with and without shortcuts.")
@seed_option(123, "Of the weights; the default makes the published net.")
@count_option("--seeds", 100, "Nets to draw for the spread, from --seed on.", most=10_000)
@output_options
@quiet_option
def toy(seed: int, seeds: int, output: Output, quiet: bool) -> None:
    """Show how much gradient reaches each layer of a small net, with and without shortcuts.

    The net of Raschka's book, chapter 4: its published gradients are a check. Then over many
    seeds, for three activation functions; and why it is so: a shortcut adds one to a layer's slope,
    and layers multiply their slopes.

    \b
    Examples:
      resid lab toy
      resid lab toy --seed 7 -o toy.png -o toy.csv
    """
    from resid.lab.toy import toy as measure

    output.emit(measure(seed, seeds), table={}, figure={}, quiet=quiet)
