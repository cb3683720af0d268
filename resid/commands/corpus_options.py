"""The options that the readings over text share."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from resid.commands.files import Output
from resid.commands.notes import tell
from resid.commands.options import FiniteRange, count_option, format_option
from resid.errors import ResidError

if TYPE_CHECKING:
    from resid.corpus.plan import Plan


class Shard(NamedTuple):
    """The k-th of n parts of a text; as text it is what was typed."""

    k: int
    n: int

    def __str__(self) -> str:
        return f"{self.k}/{self.n}"


def _parse_shard(context: click.Context, option: click.Parameter, text: str) -> Shard:
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    shard = Shard(int(found[1]), int(found[2])) if found else Shard(0, 0)
    if not 1 <= shard.k <= shard.n:
        raise click.BadParameter(
            f"{text!r} is not a shard; 2/8 is the second of eight, the first is 1/8, the last 8/8"
        )
    return shard


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -o and --format; the command gets `outputs` and `format`, for `find_target`."""
    files = click.option(
        "-o",
        "--output",
        "outputs",
        multiple=True,
        metavar="FILE|DIR",
        help="Write to FILE (may be repeated): .png .svg .pdf .html .json .csv; a name "
        "without a suffix is a folder for the run itself.",
    )
    return files(format_option("-o FILE")(command))


def find_target(outputs: Sequence[str], format: str | None) -> tuple[Output, Path | None]:
    """What to write, and the folder for the run, if there is one among the names."""
    refuse_empty(outputs, "-o")
    folders = [name for name in outputs if not Path(name).suffix or Path(name).is_dir()]
    if len(folders) > 1:
        raise click.UsageError(f"one -o can be a folder, not both {' and '.join(folders[:2])}")
    try:
        output = Output.check([name for name in outputs if name not in folders], format)
    except click.BadParameter as error:
        told = f"{error.message}, or none for a folder"
        raise click.BadParameter(told, param_hint=error.param_hint) from None
    return output, _check_folder(folders[0]) if folders else None


def text_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add FILE and how to read it; the command gets `plan`, a function that makes the plan."""

    @click.argument("files", nargs=-1, required=True, metavar="FILE...")
    @click.option(
        "--split",
        type=click.Choice(["file", "blank-lines", "lines"]),
        default="file",
        show_default=True,
        help="A document of a .txt: the file, a paragraph, or a line.",
    )
    @click.option(
        "--field",
        metavar="NAME",
        help="Where a line of .jsonl has its text. Default: text. Given, standard input is .jsonl.",
    )
    @count_option("--context", None, "Tokens in a window. Default: all that the model reads.")
    @count_option(
        "--stride",
        None,
        "From window to window. Below --context windows overlap, and a token counts where it has "
        "most context. Default: --context.",
    )
    @click.option(
        "--bos/--no-bos",
        default=False,
        help="Put one beginning-of-sequence token in front of every window; it does not count.",
    )
    @count_option("--max-tokens", None, "Stop after N tokens of text.")
    @count_option("--batch-tokens", None, "Tokens in a batch. Default: 4096, for memory 2048.")
    @click.option("--strict", is_flag=True, help="A line that cannot be read is an error.")
    @click.option(
        "--shard",
        default="1/1",
        callback=_parse_shard,
        metavar="K/N",
        help="Read the Kth part of N, whole documents; short ones go by many at once.",
    )
    @click.option(
        "--resume",
        metavar="DIR",
        help="Save the run in DIR as it goes, and go on with what is there.",
    )
    @click.option(
        "--save-every",
        type=FiniteRange(min=0),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="How often to save.",
    )
    @target_options
    @functools.wraps(command)
    def wrapped(
        files: tuple[str, ...],
        resume: str | None,
        batch_tokens: int | None,
        outputs: tuple[str, ...],
        format: str | None,
        **rest: Any,
    ) -> Any:
        refuse_empty(files, "FILE")
        output, folder = find_target(outputs, format)
        names = ("split", "field", "context", "stride", "bos", "max_tokens", "strict", "shard")
        asked = {name: rest.pop(name) for name in (*names, "save_every")}
        refuse_empty([asked["field"]], "--field")
        refuse_empty([resume], "--resume")
        if resume is not None:
            if folder is not None:
                raise click.UsageError("give the folder with --resume or with -o, not both")
            folder = _check_folder(resume)

        def plan(default_batch: int, quiet: bool) -> Plan:
            from resid.corpus.files import find_files
            from resid.corpus.plan import Plan

            return Plan(
                files=tuple(find_files(files, (lambda line: None) if quiet else tell)),
                batch_tokens=batch_tokens or default_batch,
                folder=folder,
                resume=resume is not None,
                **asked,
            )

        return command(plan=plan, output=output, **rest)

    return wrapped


def refuse_empty(names: Sequence[str | None], option: str) -> None:
    """A variable that a script forgot to set would name the folder that one is in, or a default."""
    if "" in names:
        raise click.BadParameter("the name is empty", param_hint=option)


def _check_folder(name: str) -> Path:
    """The folder for a run, refused before any work is done for it."""
    path = Path(name)
    if path.exists() and not path.is_dir():
        raise ResidError(f"cannot save a run in '{name}': it is a file")
    if not path.parent.is_dir():
        raise ResidError(f"cannot save a run in '{name}': '{path.parent}' does not exist")
    if not os.access(path if path.exists() else path.parent, os.W_OK | os.X_OK):
        raise ResidError(f"cannot save a run in '{name}': no permission to write there")
    return path
