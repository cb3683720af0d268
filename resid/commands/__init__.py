"""The command line: thin skins over library calls. Heavy imports happen inside the commands."""

import click

from resid import __version__
from resid.commands.group import ResidGroup
from resid.commands.lens import lens


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


cli.add_command(lens)
