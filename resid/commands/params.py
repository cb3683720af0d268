"""`resid params`: how many parameters a model has, and where they are."""

from __future__ import annotations

from dataclasses import replace

import click

from resid.commands.files import Output
from resid.commands.notes import tell
from resid.commands.options import count_option, model_option, output_options, quiet_option


@click.command(short_help="How many parameters a model has, and where they are.")
@click.argument("models", nargs=-1, metavar="[MODEL...]")
@model_option("The same as MODEL. Default: gpt2.")
@click.option(
    "--revision",
    metavar="REV",
    help="Branch, tag or commit of a hub model; its files are asked then, also those of gpt2.",
)
@count_option(
    "--length",
    None,
    "Tokens in the forward pass that FLOPs are counted for. Default: all that it can read.",
)
@output_options
@quiet_option
@click.pass_context
def params(
    context: click.Context,
    models: tuple[str, ...],
    model: str | None,
    revision: str | None,
    length: int | None,
    output: Output,
    quiet: bool,
) -> None:
    """Count the parameters of GPT-2 models, part by part and to the unit.

    distilgpt2, gpt2, gpt2-medium, gpt2-large and gpt2-xl are counted by arithmetic. A folder or
    another hub name is counted from config.json and the headers of its weight files: no weights
    are read or downloaded. A tied unembedding counts once, with the token embedding; the causal
    masks in old checkpoints do not count. MODEL is one of these names, a folder, a name on the hub,
    or mini; several stand side by side.

    \b
    Examples:
      resid params
      resid params gpt2 gpt2-medium gpt2-xl
      resid params gpt2-xl --length 128
      resid params ./my-model -o params.png -o params.json
    """
    named = context.get_parameter_source("model") is click.core.ParameterSource.COMMANDLINE
    if models and named:
        raise click.UsageError("give the model as MODEL or with -m, not both")
    asked = models or (model or "gpt2",)
    if len(asked) > 1 and any(path.suffix.lower() == ".json" for path in output.files):
        raise click.UsageError(
            "a .json file holds one model; several go to standard output with --format json, "
            "one object a line, or to a .csv file"
        )

    from resid.readings import parameters
    from resid.readings.param_count import count
    from resid.results import ParamComparison

    counts = []
    for name in asked:
        found = parameters.find(name, revision)
        for notice in () if quiet else found.notices:
            tell(notice)
        counts.append(count(found, length))
    if len(counts) == 1:
        output.emit(counts[0], table={}, figure={}, quiet=quiet)
        return
    if output.format == "json":
        for each in counts:
            Output((), "json").emit(each, table={}, figure={}, quiet=quiet)
        output = replace(output, format=None)
    output.emit(ParamComparison.of(counts), table={}, figure={}, quiet=quiet)
