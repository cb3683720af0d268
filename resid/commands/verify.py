"""`resid verify`: a certificate for a model on this machine."""

from __future__ import annotations

from dataclasses import replace

import click

from resid.commands.files import Output
from resid.commands.options import ModelChoice, Prompt, model_options, output_options, parse_ids


@click.command(short_help="Check every identity on a model, and print a certificate.")
@click.argument("name", required=False, metavar="[MODEL]")
@click.option(
    "--prompt",
    "texts",
    multiple=True,
    metavar="TEXT",
    help="Check on this prompt (may be repeated). Default: a few that are built in.",
)
@click.option(
    "--ids",
    "rows",
    multiple=True,
    metavar="464,3139,...",
    help="Check on these token ids (may be repeated).",
)
@click.option(
    "--float64/--no-float64",
    default=True,
    show_default=True,
    help="Check once more on a float64 copy, which takes 8 bytes a parameter of memory.",
)
@output_options
@model_options
def verify(
    name: str | None,
    texts: tuple[str, ...],
    rows: tuple[str, ...],
    float64: bool,
    choice: ModelChoice,
    output: Output,
) -> None:
    """Check on a model, on this machine, everything that resid's numbers rest on.

    Every identity that results carry; that recording changes no bit of the logits and leaves no
    hook behind; that a padded batch equals its single runs; that the streamed unembedding equals
    the plain one. Once in the model's own number format, and once in float64, where rounding is
    gone and the tolerances are far tighter. Ends with status 3 where a check fails.

    \b
    Examples:
      resid verify
      resid verify mini
      resid verify ./my-model --dtype bfloat16 --prompt "The capital of France is"
      resid verify gpt2-xl --no-float64 -o certificate.json
    """
    named = click.get_current_context().get_parameter_source("model")
    if name is not None and named is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("give the model as MODEL or with -m, not both")
    asked: list[Prompt] = [*texts, *map(parse_ids, rows)]
    model = (choice if name is None else replace(choice, name=name)).load()

    from resid.readings.verification.certificate import verify as certify

    result = certify(model, asked or None, float64=float64)
    output.emit(result, table={}, figure={}, quiet=choice.quiet)
