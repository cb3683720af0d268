"""`resid lab activations`: activation functions, alone and at a model's neurons."""

from __future__ import annotations

import click

from resid.commands.files import Output
from resid.commands.lab.options import PROMPT, prompt_options, seed_option
from resid.commands.options import ModelChoice, Prompt, model_options, output_options


@click.command(short_help="ReLU, three GELUs and SiLU: curves, dead inputs, a model's neurons.")
@prompt_options(f'What the model reads (gpt2 without -m). Default: "{PROMPT}".')
@seed_option()
@output_options
@model_options
def activations(
    asked: Prompt | None,
    seed: int,
    choice: ModelChoice,
    output: Output,
) -> None:
    """Hold activation functions against each other: curves, slopes, minima, differences.

    ReLU, exact GELU, the tanh form that GPT-2 has, SiLU, and GELU by a sigmoid; what share of
    standard normal inputs each of them lets no gradient through for. With -m, --prompt or --ids
    also for what a model's neurons see, and how many of them stay off for a whole prompt; without
    these no model is loaded. --seed draws the normal inputs that the shares are held against.

    \b
    Examples:
      resid lab activations
      resid lab activations -m mini --prompt "When Mary and John went to the store"
      resid lab activations -m gpt2 -o activations.png -o activations.json
    """
    named = click.get_current_context().get_parameter_source("model")
    # RESID_MODEL says which model where one is wanted, not that one is.
    if asked is None and named is not click.core.ParameterSource.COMMANDLINE:
        from resid.lab.activations import activations as measured

        result = measured(seed=seed)
    else:
        model = choice.load()

        from resid.lab.activations_in_model import activations_of

        result = activations_of(model, PROMPT if asked is None else asked, seed=seed)
    output.emit(result, table={}, figure={}, quiet=choice.quiet)
