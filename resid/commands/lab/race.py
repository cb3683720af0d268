"""`resid lab race`: small models that differ in one thing, trained on the spot."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from resid.commands.files import Output
from resid.commands.interrupts import ending_at_once
from resid.commands.lab.options import seed_option
from resid.commands.options import FiniteRange, count_option, output_options, quiet_option


@click.command(short_help="Small models that differ in one thing, trained on the spot.")
@click.option(
    "--variants",
    metavar="a,b,...",
    help="Which race, the one that the others are held against first. Default: all. A variant "
    "named twice races itself under other seeds.",
)
@count_option("--seeds", 3, "Runs of each variant; from 2 on there are verdicts.", most=1000)
@count_option("--steps", 200, "Steps of training, each over 16 windows of 64 bytes.")
@count_option("--layers", 4, "Blocks in every model.", most=1000)
@click.option("--text", metavar="FILE", help="What they read, as bytes. Default: a made-up sample.")
@click.option(
    "--learning-rate",
    type=FiniteRange(min=0, max=10, min_open=True),
    default=0.006,
    show_default=True,
    metavar="RATE",
    help="At its highest; the same for all.",
)
@click.option(
    "--pairs",
    type=click.Choice(["first", "all"]),
    default="first",
    show_default=True,
    help="Judge each variant against the first, or every pair, with wider intervals.",
)
@click.option(
    "--resume",
    metavar="DIR",
    help="Keep every run in this folder, and go on with what is there.",
)
@seed_option()
@output_options
@quiet_option
def race(
    variants: str | None,
    seeds: int,
    steps: int,
    layers: int,
    text: str | None,
    learning_rate: float,
    pairs: str,
    resume: str | None,
    seed: int,
    output: Output,
    quiet: bool,
) -> None:
    """Race variants of the block, and say which differences are more than the seeds' own.

    Each variant is the base (Pre-LN, residual, 4x, tanh GELU) with one thing changed: no-residual,
    post-ln, no-norm, 2x, 8x, 2x-equal and 8x-equal (at the base's parameters), relu, swiglu,
    linear; + joins several. Runs of one seed read the same bytes in the same order. A difference is
    a finding where Student's t interval over the seeds, corrected for the number of pairs, leaves
    out 0; else it is noise. All variants with 3 seeds take some minutes.

    \b
    Examples:
      resid lab race
      resid lab race --variants base,base,no-residual --seeds 5
      resid lab race --variants base,post-ln,no-norm --layers 12 --resume deep -o race.png
      resid lab race --text book.txt --variants relu,swiglu,post-ln+relu --steps 2000
    """
    with ending_at_once():
        from resid.lab import race as racing
        from resid.lab.race_folder import Folder
        from resid.lab.race_text import read_text
        from resid.lab.race_variants import ALL, line_up

    names = ALL if variants is None else tuple(variants.split(","))
    entries = line_up(names, seeds, seed)
    read = read_text(text, racing.CONTEXT)
    plan = racing.plan_for(read, layers=layers, steps=steps, learning_rate=learning_rate)
    folder = None if resume is None else Folder.open(Path(resume), plan, read)
    with _progress(len(entries) * seeds * steps, quiet) as advance:
        result = racing.race(
            entries, plan, read,
            pairs="all" if pairs == "all" else "first", folder=folder, progress=advance,
        )  # fmt: skip
    output.emit(result, table={}, figure={}, quiet=quiet)


@contextmanager
def _progress(steps: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, where that is a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from resid.render.terminal import make_console

    console = make_console(sys.stderr)
    if quiet or not console.is_terminal:  # In a file or a pipe it would be lines for nobody.
        yield lambda done: None
        return
    bar = Progress(
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} steps"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("training", total=steps)
        yield lambda done: bar.advance(task, done)
