"""`resid lab`: small experiments that rebuild the block, take it apart, and race its variants."""

from __future__ import annotations

import click

from resid.commands.lab import activations, block, depth, race, toy


@click.group(short_help="Rebuild the block, break it, race it: small experiments.")
def lab() -> None:
    """Rebuild the transformer block from scratch, break it, and race its variants.

    Every experiment prints a table, what was found in a sentence, and the checks that its numbers
    passed. `-o` writes a figure, JSON or CSV, `--seed` draws anew.

    \b
    Example:
      resid lab toy
    """


for command in (block.block, toy.toy, depth.depth, activations.activations, race.race):
    lab.add_command(command)
