"""The options that all commands with a prompt share, checked before anything heavy is imported."""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from resid.commands.chatter import nothing_printed
from resid.commands.files import Output
from resid.commands.interrupts import ending_at_once
from resid.commands.notes import tell
from resid.errors import ResidError
from resid.tokens import check_unicode

if TYPE_CHECKING:
    from resid.model import Model

Prompt = str | tuple[int, ...]
# What makes an option of a command.
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

quiet_option = click.option("-q", "--quiet", is_flag=True, help="No notices on standard error.")
ids_option = click.option("--ids", metavar="464,3139,...", help="Token ids in place of a prompt.")


def count_option(
    name: str,
    default: int | None,
    help: str,
    *,
    least: int = 1,
    most: int | None = None,
    metavar: str = "N",
) -> Decorator:
    """An option that takes a whole number, its default shown where it has one."""
    return click.option(
        name,
        type=click.IntRange(min=least, max=most),
        default=default,
        show_default=default is not None,
        metavar=metavar,
        help=help,
    )


class FiniteRange(click.FloatRange):
    """A range of numbers without infinity, and without nan, which click lets into every range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number that a word means."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def model_option(help: str) -> Decorator:
    """-m, which the environment can set too."""
    return click.option(
        "-m",
        "--model",
        envvar="RESID_MODEL",
        metavar="NAME|FOLDER|mini",
        help=f"{help} [env: RESID_MODEL]",
    )


def format_option(file: str) -> Decorator:
    """--format, which prints a table by default where no file was asked for."""
    return click.option(
        "--format",
        "format",
        type=click.Choice(["table", "json", "csv"]),
        help=f"What to print on standard output: table where there is no {file}, else nothing.",
    )


@dataclass(frozen=True)
class ModelChoice:
    """Which model to load and how."""

    name: str | None
    revision: str | None
    tokenizer: str | None
    device: str
    dtype: str
    quiet: bool

    def of(self, name: str) -> ModelChoice:
        """The same choice of another model."""
        return replace(self, name=name, revision=None, tokenizer=None)

    def load(self) -> Model:
        """The model; what its user should know goes to standard error."""
        from resid import hub

        found = hub.locate(self.name, self.revision)  # Before torch, which takes seconds.
        with ending_at_once(), nothing_printed():
            from resid.loading import open_found

            model = open_found(
                found, tokenizer=self.tokenizer, device=self.device, dtype=self.dtype
            )
        if not self.quiet:
            for notice in model.notices:
                tell(notice)
        return model


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -m and what goes with it; the command gets them as `choice`, a ModelChoice."""

    @model_option(
        "A hub name, a folder, or mini (bundled). Default: gpt2 from the local cache, else from "
        "the hub, else mini."
    )
    @click.option("--revision", metavar="REV", help="Branch, tag or commit of a hub model.")
    @click.option("--tokenizer", metavar="FOLDER", help="A tokenizer other than the model's own.")
    @click.option(
        "--device",
        type=click.Choice(["auto", "cpu", "cuda", "mps"]),
        default="auto",
        show_default=True,
        help="auto is cuda where there is one, else cpu.",
    )
    @click.option(
        "--dtype",
        type=click.Choice(["float32", "bfloat16", "float16"]),
        default="float32",
        show_default=True,
        help="Number format of the weights.",
    )
    @quiet_option
    @functools.wraps(command)
    def wrapped(
        model: str | None,
        revision: str | None,
        tokenizer: str | None,
        device: str,
        dtype: str,
        quiet: bool,
        **rest: Any,
    ) -> Any:
        return command(choice=ModelChoice(model, revision, tokenizer, device, dtype, quiet), **rest)

    return wrapped


def prompt_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add PROMPT and its other spellings; the command gets `prompts` and `bos`."""

    @click.argument("prompt", nargs=-1, metavar="PROMPT...")
    @ids_option
    @click.option(
        "--prompt-file",
        metavar="FILE",
        help="A prompt in a UTF-8 file; - is standard input. One line break at its end is dropped.",
    )
    @click.option(
        "--bos/--no-bos", default=False, help="Put one beginning-of-sequence token first."
    )
    @functools.wraps(command)
    def wrapped(
        prompt: tuple[str, ...], ids: str | None, prompt_file: str | None, **rest: Any
    ) -> Any:
        return command(prompts=_collect_prompts(prompt, ids, prompt_file), **rest)

    return wrapped


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -o and --format; the command gets `output`, an Output."""

    @click.option(
        "-o",
        "--output",
        "files",
        multiple=True,
        metavar="FILE",
        help="Write to FILE (may be repeated): .png .svg .pdf .html .json .csv",
    )
    @format_option("-o")
    @functools.wraps(command)
    def wrapped(files: tuple[str, ...], format: str | None, **rest: Any) -> Any:
        return command(output=Output.check(files, format), **rest)

    return wrapped


def one_prompt_for_files(output: Output, prompts: Sequence[Prompt]) -> None:
    """Refuse several prompts where each would overwrite the last one's file."""
    if output.files and len(prompts) > 1:
        raise click.UsageError("-o takes one prompt; several go to standard output")


def _collect_prompts(
    prompts: Sequence[str], ids: str | None, prompt_file: str | None
) -> list[Prompt]:
    given = [bool(prompts), ids is not None, prompt_file is not None]
    if sum(given) != 1:
        raise click.UsageError(
            "give a PROMPT, --ids, or --prompt-file"
            if not any(given)
            else "give only one of PROMPT, --ids and --prompt-file"
        )
    if ids is not None:
        return [parse_ids(ids)]
    if prompt_file is not None:
        return [_read_prompt(prompt_file)]
    for prompt in prompts:
        try:
            check_unicode(prompt, "the prompt")
        except ResidError as error:
            raise click.UsageError(str(error)) from None
    return [_read_prompt("-") if prompt == "-" else prompt for prompt in prompts]


def parse_ids(text: str) -> tuple[int, ...]:
    """The ids of a list such as 464,3139."""
    parts = [part for part in re.split(r"[,\s]+", text.strip()) if part]
    if not parts or not all(re.fullmatch(r"\d{1,9}", part) for part in parts):
        raise click.BadParameter(
            f"{text!r} is not a list of ids such as 464,3139", param_hint="--ids"
        )
    return tuple(int(part) for part in parts)


def _read_prompt(name: str) -> str:
    shown = "standard input" if name == "-" else f"'{name}'"
    try:
        raw = standard_input().read() if name == "-" else Path(name).read_bytes()
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResidError(
            f"{shown} is not valid UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start}"
        ) from None
    except OSError as error:
        raise ResidError(f"cannot read {shown}: {error.strerror or error}") from None
    return text.removesuffix("\n").removesuffix("\r")


def standard_input() -> IO[bytes]:
    """The bytes of standard input.

    Raises:
        ResidError: it is closed.
    """
    if sys.stdin is None:
        raise ResidError("cannot read standard input: it is closed")
    return sys.stdin.buffer


def parse_positions(text: str | None, n: int, option: str = "--positions") -> list[int] | None:
    """The positions that an option names, in order; None where it was not given.

    Args:
        text: last, all, or a list such as 0,3,5-8; negative ones count from the end.
        n: how many tokens the prompt has.
        option: the option's name, for the message.
    """
    if text is None:
        return None
    if text == "all":
        return list(range(n))
    if text == "last":
        return [n - 1]
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(-?\d{1,9})(?:-(\d{1,9}))?\s*", part)
        if match is None:
            raise click.BadParameter(
                f"{part!r} is not a position; give last, all, or a list such as 0,3,5-8",
                param_hint=option,
            )
        first = int(match[1]) + (n if int(match[1]) < 0 else 0)
        last = first if match[2] is None else int(match[2])
        if not 0 <= first <= last < n:
            raise click.BadParameter(
                f"{part.strip()} is outside of the prompt, which has positions 0 to {n - 1}",
                param_hint=option,
            )
        found.update(range(first, last + 1))
    return sorted(found)
