"""The command line: thin skins over library calls. Heavy imports happen inside the commands."""

import click

from resid import __version__
from resid.commands import (
    attribute,
    corpus,
    lab,
    lens,
    memory,
    norms,
    params,
    record,
    report,
    verify,
)
from resid.commands.group import ResidGroup


@click.group(
    cls=ResidGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="resid")
def cli() -> None:
    """See what a pretrained GPT-2 is thinking between its layers.

    \b
    Example:
      resid lens "The capital of France is"
    """


for command in (
    lens.lens,
    norms.norms,
    params.params,
    memory.memory,
    memory.find,
    memory.neuron,
    attribute.attribute,
    record.record,
    report.report,
    verify.verify,
    corpus.corpus,
    lab.lab,
):
    cli.add_command(command)
