"""`resid corpus`: the readings as statistics over text, resumable, mergeable, on many processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from resid.commands.corpus_options import (
    find_target,
    refuse_empty,
    target_options,
    text_options,
)
from resid.commands.files import Output
from resid.commands.notes import tell
from resid.commands.options import ModelChoice, count_option, model_options, quiet_option
from resid.commands.reading_options import projection_option
from resid.errors import ResidError

if TYPE_CHECKING:
    from resid.corpus.plan import Plan
    from resid.corpus.reading import Reading
    from resid.model import Model


@click.group(short_help="The readings as statistics over text.")
def corpus() -> None:
    """Read a text of any length: losses, norms and neurons as means with standard errors.

    FILE is a .txt, a .jsonl, either with .gz, a folder of such, or - for standard input. Memory
    does not grow with the text. A run that is saved in a folder can be taken up where it stopped,
    and parts of a text that were read apart can be merged: the numbers are the same to the last
    bit.

    \b
    Examples:
      resid corpus lens books/ --resume run
      torchrun --nproc-per-node 8 -m resid corpus lens books/ --resume run
      resid corpus merge part1 part2 part3 part4 -o whole
    """


_points = click.option(
    "--points",
    type=click.Choice(["post", "all"]),
    default="post",
    show_default=True,
    help="embed and every L.post; all adds every L.mid.",
)


@corpus.command(short_help="The logit lens over text: loss against depth.")
@_points
@text_options
@model_options
def lens(
    plan: Callable[[int, bool], Plan], choice: ModelChoice, output: Output, points: str
) -> None:
    """Decode every point of the stream at every token, against the true next one.

    For each point: cross-entropy, KL(final || point) and entropy in nats, and how often its top
    token is the model's own; and at which point predictions settle. At the last point the
    cross-entropy is the model's loss. Standard errors are by document.

    \b
    Examples:
      resid corpus lens text.txt
      resid corpus lens books/ --max-tokens 1000000 -o loss.png -o loss.json
      resid corpus lens wiki.jsonl.gz --shard 2/8 -o part2
    """

    def make(model: Model) -> Reading:
        from resid.corpus.lens import LensReading

        return LensReading(model, points)

    _run(make, plan, 4096, choice, output)


@corpus.command(short_help="Norms over text: means, quantiles, growth.")
@_points
@text_options
@model_options
def norms(
    plan: Callable[[int, bool], Plan], choice: ModelChoice, output: Output, points: str
) -> None:
    """Measure the stream at every token, and what attention and MLP write to it.

    Means with standard errors by document, quantiles, and growth per layer. Position 0 of each
    window is kept apart: GPT-2 has massive activations there.

    \b
    Examples:
      resid corpus norms text.txt
      resid corpus norms books/ --points all -o norms.png
    """

    def make(model: Model) -> Reading:
        from resid.corpus.norms import NormsReading

        return NormsReading(model, points)

    _run(make, plan, 4096, choice, output)


@corpus.command(short_help="Neurons over text: what fires each of them.")
@count_option("--top", 10, "Tokens to keep for every neuron.", metavar="K")
@projection_option("Values before the unembedding, for the agreement.")
@text_options
@model_options
def memory(
    plan: Callable[[int, bool], Plan],
    choice: ModelChoice,
    output: Output,
    top: int,
    projection: str,
) -> None:
    """Find the tokens that fire every neuron most, and how often each fires.

    The tokens, with what stands around them, are kept in the folder given by -o or --resume, where
    `resid neuron L9N652 --triggers DIR` finds them. Agreement (Geva et al. 2021) is the share of a
    layer's neurons whose value most promotes the very token that follows their strongest trigger.

    \b
    Examples:
      resid corpus memory text.txt -o fired
      resid corpus memory books/ --top 25 --resume fired -o agreement.png
    """

    def make(model: Model) -> Reading:
        from resid.corpus.memory import MemoryReading

        return MemoryReading(model, top, projection)

    _run(make, plan, 2048, choice, output)


def _run(
    make: Callable[[Model], Reading],
    make_plan: Callable[[int, bool], Plan],
    batch_tokens: int,
    choice: ModelChoice,
    output: Output,
) -> None:
    from resid.commands.allocator import keep_freed_memory
    from resid.commands.corpus_progress import Progress
    from resid.corpus.world import find_world

    keep_freed_memory()
    world = find_world()
    plan = make_plan(batch_tokens, choice.quiet or not world.is_first)
    if world.size > 1:
        from resid.corpus.distributed import own_gpu

        if own_gpu(world, choice.device):
            choice = replace(choice, device="cuda")
    model = replace(choice, quiet=choice.quiet or not world.is_first).load()

    from resid.corpus.running import run

    with Progress(plan, world.size, shown=not choice.quiet and world.is_first) as progress:
        result = run(
            model,
            make(model),
            plan,
            world=world,
            on_step=progress.step,
            on_bad=progress.bad,
            on_stop=progress.stop,
        )
    if result is not None:
        output.emit(result, table={}, figure={}, quiet=choice.quiet)
        if plan.folder is not None and not choice.quiet:
            tell(f"the run is in {plan.folder}")


@corpus.command(short_help="Put together parts that were read apart.")
@click.argument("folders", nargs=-1, required=True, metavar="DIR...")
@target_options
@quiet_option
def merge(folders: Sequence[str], outputs: Sequence[str], format: str | None, quiet: bool) -> None:
    """Merge runs over shards of one text into what one run over all of it would have found.

    Counts, histograms, sums and triggers are the same to the last bit. No model is loaded. One
    folder alone is shown again.

    \b
    Examples:
      resid corpus merge part1 part2 part3 part4 -o whole
      resid corpus merge whole -o loss.png
    """
    refuse_empty(folders, "DIR")
    output, folder = find_target(outputs, format)
    from resid.corpus import state
    from resid.corpus.merging import merge as put_together

    if len(set(folders)) < len(folders):
        raise click.UsageError("a folder is given twice")
    if folder is not None and (folder / state.FILE).exists():
        raise ResidError(f"'{folder}' holds a run already; give another folder")
    merged = put_together({name: state.open_run(name) for name in folders})
    if folder is not None:
        state.save(merged, folder / state.FILE)
    output.emit(merged.totals.result(merged.source()), table={}, figure={}, quiet=quiet)
    if folder is not None and not quiet:
        tell(f"the run is in {folder}")
