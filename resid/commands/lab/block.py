"""`resid lab block`: a pretrained block built from scratch, and taken apart."""

from __future__ import annotations

import click

from resid.commands.files import Output
from resid.commands.lab.options import seed_option
from resid.commands.options import ModelChoice, Prompt, model_options, output_options, parse_ids

_PROMPT = "The capital of France is"


@click.command(short_help="A pretrained block built from scratch, and taken apart.")
@click.option(
    "--layer",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="L",
    help="Which block to trace.",
)
@click.option("--prompt", metavar="TEXT", help=f'What the block reads. Default: "{_PROMPT}".')
@click.option("--ids", metavar="464,3139,...", help="Token ids in place of a prompt.")
@seed_option
@output_options
@model_options
def block(
    layer: int,
    prompt: str | None,
    ids: str | None,
    seed: int,
    choice: ModelChoice,
    output: Output,
) -> None:
    """Build a block from scratch on pretrained weights, and show what each of its parts is for.

    LayerNorm, causal attention, MLP and block are written out in resid/lab/block.py, to be read.
    Every step is held against Hugging Face's block, all blocks stacked against the model's logits.
    Then one token is replaced, with attention and without; and the MLP loses its activation.

    \b
    Examples:
      resid lab block -m mini
      resid lab block -m gpt2 --layer 5 --prompt "When Mary and John went to the store"
      resid lab block --layer 3 -o block.png -o block.json
    """
    if prompt is not None and ids is not None:
        raise click.UsageError("give only one of --prompt and --ids")
    asked: Prompt = parse_ids(ids) if ids is not None else _PROMPT if prompt is None else prompt
    model = choice.load()

    from resid.lab.rebuilt import rebuilt_block

    result = rebuilt_block(model, asked, layer=layer, seed=seed)
    output.emit(result, table={}, figure={}, quiet=choice.quiet)
