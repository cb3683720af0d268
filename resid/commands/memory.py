"""`resid memory`, `resid find`, `resid neuron`: MLPs as key-value memories."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from resid.commands.corpus_options import refuse_empty
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
    lengths_of,
    positions_asked,
    positions_option,
    projection_option,
)

if TYPE_CHECKING:
    from resid.model import Model
    from resid.results import MlpMemory

_projection = projection_option(
    "Values before the unembedding: gain times centred value, or as they are."
)


@click.command(short_help="Which neurons a prompt fires, and what they write.")
@prompt_options
@click.option("--target", metavar="TOK", help="Add each neuron's share of this token's logit.")
@positions_option()
@count_option("--neurons", 3, "Neurons for each layer and position.")
@count_option("--top", 5, "Tokens that each neuron promotes and suppresses.", metavar="K")
@click.option(
    "--order",
    type=click.Choice(["write", "coefficient", "target"]),
    help="|coefficient| x |value|, coefficient, or share of the target's logit. "
    "Default: target where there is one, else write.",
)
@_projection
@output_options
@model_options
def memory(
    prompts: list[Prompt],
    choice: ModelChoice,
    output: Output,
    bos: bool,
    target: str | None,
    positions: str | None,
    neurons: int,
    top: int,
    order: str | None,
    projection: str,
) -> None:
    """Show the neurons of each layer that write most, and what their values promote.

    A neuron's key scores the stream, the activation function makes a coefficient of the score, and
    the MLP writes the sum of coefficient x value. Values are read through the unembedding.

    \b
    Examples:
      resid memory "The capital of France is"
      resid memory "The capital of France is" --target " Paris" --neurons 5
      resid memory "The capital of France is" --target " Paris" -o memory.png
    """
    if order == "target" and target is None:
        raise click.UsageError("--order target needs --target")
    one_prompt_for_files(output, prompts)
    model = choice.load()
    check_tokens(model, target=target)

    from resid.readings.float64 import recheck
    from resid.readings.mlp_memory import mlp_memory
    from resid.recording import record

    points = f"mlp_pre,mlp_post,mlp_out,{model.n_layers - 1}.post"
    asked = [positions_asked(positions, n, output) for n in lengths_of(model, prompts, bos)]
    for prompt, (at, shown) in zip(prompts, asked, strict=True):

        def read(model: Model, prompt: Prompt = prompt, at: list[int] = at) -> MlpMemory:
            return mlp_memory(
                model,
                record(model, prompt, points=points, bos=bos, logits=False),
                target=target,
                positions=at,
                neurons=neurons,
                top=top,
                order=order,
                projection=projection,
            )

        output.emit(
            read(model),
            table={"positions": shown},
            figure={},
            quiet=choice.quiet,
            recheck=partial(recheck, model, read),
        )


@click.command(short_help="The neurons of the whole model that promote a token.")
@click.argument("token", metavar="TOKEN")
@click.option("--foil", metavar="TOK", help="Score the token minus this one.")
@count_option("--neurons", 10, "Neurons on either side.")
@_projection
@output_options
@model_options
def find(
    token: str,
    foil: str | None,
    neurons: int,
    projection: str,
    choice: ModelChoice,
    output: Output,
) -> None:
    """List the neurons whose values most promote, and most suppress, a token.

    Every neuron of the model is searched, with one matrix-vector product a layer.

    \b
    Examples:
      resid find " Paris"
      resid find " Paris" --foil " London" --neurons 20
    """
    model = choice.load()

    from resid.readings.neurons import find_neurons

    result = find_neurons(model, token, foil=foil, neurons=neurons, projection=projection)
    output.emit(result, table={}, figure={}, quiet=choice.quiet)


@click.command(short_help="One neuron's card: what drives it, what it writes.")
@click.argument("name", metavar="L9N652")
@count_option("--top", 10, "Tokens in each list.", metavar="K")
@click.option(
    "--triggers",
    metavar="DIR",
    help="Also show the text that fires it, from a folder that resid corpus memory has written.",
)
@_projection
@output_options
@model_options
def neuron(
    name: str,
    top: int,
    triggers: str | None,
    projection: str,
    choice: ModelChoice,
    output: Output,
) -> None:
    """Show what one neuron's value promotes and suppresses, and the tokens that drive its key.

    \b
    Examples:
      resid neuron L9N652
      resid neuron L9N652 --triggers fired
      resid neuron L5N653 -m mini --format json
    """
    refuse_empty([triggers], "--triggers")
    model = choice.load()

    from resid.readings.neurons import neuron_card

    result = neuron_card(model, name, top=top, projection=projection)
    if triggers is not None:
        from resid.corpus.cards import with_triggers

        result = with_triggers(result, model, triggers, top=top)
    output.emit(result, table={}, figure={}, quiet=choice.quiet)
