"""`resid lab block`: a pretrained block built from scratch, and taken apart."""

from __future__ import annotations

import click

from resid.commands.files import Output
from resid.commands.lab.options import PROMPT, prompt_options, seed_option
from resid.commands.options import (
    ModelChoice,
    Prompt,
    count_option,
    model_options,
    output_options,
)


@click.command(short_help="A pretrained block built from scratch, and taken apart.")
@count_option("--layer", 0, "Which block to trace.", least=0, metavar="L")
@prompt_options(f'What the block reads. Default: "{PROMPT}".')
@seed_option()
@output_options
@model_options
def block(
    layer: int,
    asked: Prompt | None,
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
    model = choice.load()

    from resid.lab.rebuilt import rebuilt_block

    result = rebuilt_block(model, PROMPT if asked is None else asked, layer=layer, seed=seed)
    output.emit(result, table={}, figure={}, quiet=choice.quiet)
