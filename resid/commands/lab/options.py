"""The options that the experiments share."""

from __future__ import annotations

import click

seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**31 - 1),
    default=0,
    show_default=True,
    metavar="N",
    help="Of everything that is drawn at random.",
)
# For experiments without a model, whose options have it.
quiet_option = click.option("-q", "--quiet", is_flag=True, help="No notices on standard error.")
