"""`resid lens`: what the model would say next, layer by layer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from resid.commands.files import Output
from resid.commands.options import (
    ModelChoice,
    Prompt,
    count_option,
    model_options,
    one_prompt_for_files,
    output_options,
    prompt_options,
)
from resid.commands.reading_options import (
    check_tokens,
    foil_needs_target,
    lengths_of,
    points_option,
    positions_asked,
    positions_option,
)

if TYPE_CHECKING:
    from resid.model import Model
    from resid.results import LogitLens


@click.command(short_help="What the model would say next, layer by layer.")
@prompt_options
@count_option("--top", 5, "Tokens in each cell.", metavar="K")
@click.option("--target", metavar="TOK", help='A token to follow: " Paris" or id:6342.')
@click.option("--foil", metavar="TOK", help="A token to hold the target against.")
@points_option("Points of the stream: embed and every L.post; all adds every L.mid.")
@positions_option()
@click.option(
    "--show",
    type=click.Choice(["prob", "entropy", "kl", "rank", "margin"]),
    default="prob",
    show_default=True,
    help="What colours the figure and fills the grid; rank needs --target.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Every token that leads at some point, as a line over depth; a figure then shows these "
    "lines, for the last position shown.",
)
@click.option(
    "--baseline",
    is_flag=True,
    help="Also decode what carries nothing: the zero vector and random directions.",
)
@output_options
@model_options
def lens(
    prompts: list[Prompt],
    choice: ModelChoice,
    output: Output,
    bos: bool,
    top: int,
    target: str | None,
    foil: str | None,
    points: str,
    positions: str | None,
    show: str,
    follow: bool,
    baseline: bool,
) -> None:
    """Decode every point of the residual stream as if it were the last one.

    Each row of the table is one point, from the embedding to the last block, and shows the tokens
    that the model's own final norm and unembedding make of it. The last row is what the model
    says. Entropy, KL(final || point) and the margin between the first and the second token are in
    nats.

    \b
    Examples:
      resid lens "The capital of France is"
      resid lens "The capital of France is" --target " Paris" --foil " London"
      resid lens "The capital of France is" --positions all -o lens.png -o lens.json
      resid lens "The capital of France is" --follow --baseline
      resid lens -m mini -- "-1 + 1 ="
    """
    if show == "rank" and target is None:
        raise click.UsageError("--show rank needs --target")
    foil_needs_target(target, foil)
    one_prompt_for_files(output, prompts)

    model = choice.load()
    check_tokens(model, top=top, target=target, foil=foil)

    from resid.readings.float64 import recheck
    from resid.readings.logit_lens import logit_lens
    from resid.recording import record

    asked = [positions_asked(positions, n, output) for n in lengths_of(model, prompts, bos)]
    for prompt, (at, shown) in zip(prompts, asked, strict=True):

        def read(model: Model, prompt: Prompt = prompt, at: list[int] = at) -> LogitLens:
            needed = f"{points},{model.n_layers - 1}.post"
            return logit_lens(
                model,
                record(model, prompt, points=needed, bos=bos, logits=at),
                top=top,
                target=target,
                foil=foil,
                points=points,
                positions=at,
                # A page is for looking around: it follows all that one may ask for.
                follow=follow or output.has_page,
                own=output.has_page,
                baseline=baseline,
            )

        output.emit(
            read(model),
            table={"positions": shown, "grid": len(shown) > 1, "show": show},
            figure={"show": show, "follow": shown[-1] if follow else None},
            quiet=choice.quiet,
            recheck=partial(recheck, model, read),
        )
