"""`resid attribute`: which part of the network moved the answer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from resid.commands.files import Output
from resid.commands.options import (
    ModelChoice,
    Prompt,
    model_options,
    one_prompt_for_files,
    output_options,
    parse_positions,
    prompt_options,
)
from resid.commands.reading_options import check_tokens, lengths_of

if TYPE_CHECKING:
    from resid.model import Model
    from resid.results import Attribution


@click.command(short_help="Which part of the network moved the answer.")
@prompt_options
@click.option("--target", metavar="TOK", required=True, help="The token to explain.")
@click.option("--foil", metavar="TOK", help="Explain the target minus this token.")
@click.option(
    "--position", default="last", show_default=True, metavar="last|N", help="Whose prediction."
)
@click.option("--heads", is_flag=True, help="Split attention into its heads.")
@click.option(
    "--neurons",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also list so many neurons of each MLP, by the size of their share.",
)
@output_options
@model_options
def attribute(
    prompts: list[Prompt],
    choice: ModelChoice,
    output: Output,
    bos: bool,
    target: str,
    foil: str | None,
    position: str,
    heads: bool,
    neurons: int,
) -> None:
    """Show what moved a token's probability along the stream, and what its logit is made of.

    Two exact readings on unmodified weights. The waterfall decodes every point as a lens does and
    says by how much each sublayer moved the log-probability. The direct attribution freezes the
    final LayerNorm's scale: the logit is then a sum over everything that wrote to the stream.

    \b
    Examples:
      resid attribute "The capital of France is" --target " Paris"
      resid attribute "When Mary and John went to the store, John gave a drink to" \\
          --target " Mary" --foil " John" --heads -o why.png
    """
    one_prompt_for_files(output, prompts)
    model = choice.load()
    check_tokens(model, target=target, foil=foil)

    from resid.readings.attribution import attribution
    from resid.readings.float64 import recheck
    from resid.recording import record

    points = "all,attn_out,mlp_out" + ",z" * heads + ",mlp_post" * bool(neurons)
    asked = [_parse_position(position, n) for n in lengths_of(model, prompts, bos)]
    for prompt, at in zip(prompts, asked, strict=True):

        def read(model: Model, prompt: Prompt = prompt, at: int = at) -> Attribution:
            return attribution(
                model,
                record(model, prompt, points=points, bos=bos, logits=[at]),
                target=target,
                foil=foil,
                position=at,
                heads=heads,
                neurons=neurons,
            )

        output.emit(
            read(model),
            table={},
            figure={},
            quiet=choice.quiet,
            recheck=partial(recheck, model, read),
        )


def _parse_position(text: str, n: int) -> int:
    at = parse_positions(text, n, "--position") or []
    if len(at) != 1:
        raise click.BadParameter("give one position", param_hint="--position")
    return at[0]
