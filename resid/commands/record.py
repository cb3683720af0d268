"""`resid record`: a recording on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from resid.commands.files import refuse, tell_failures, write_whole
from resid.commands.notes import tell
from resid.commands.options import ModelChoice, Prompt, model_options, prompt_options

if TYPE_CHECKING:
    from resid.recording import Recording
    from resid.results import Check


@click.command(short_help="Save what passes through the model, as safetensors.")
@prompt_options
@click.option(
    "-o", "--output", "file", required=True, metavar="FILE.safetensors", help="Where to write."
)
@click.option(
    "--points",
    default="everything",
    show_default=True,
    metavar="everything|all|post|LIST",
    help="What to keep: the stream (all, post), or also what attention, MLPs and neurons do.",
)
@click.option("--logits", is_flag=True, help="Keep the model's own logits too.")
@model_options
def record(
    prompts: list[Prompt],
    choice: ModelChoice,
    bos: bool,
    file: str,
    points: str,
    logits: bool,
) -> None:
    """Run the model once and save the residual stream with its labels and its source.

    The file can be read by anything that reads safetensors; in Python, resid.open_recording(FILE)
    gives back the recording.

    \b
    Example:
      resid record "The capital of France is" -o stream.safetensors
    """
    if len(prompts) > 1:
        raise click.UsageError("-o takes one prompt")
    path = Path(file)
    refuse(path, (".safetensors",))
    model = choice.load()

    from resid.recording import record as run
    from resid.recording_file import to_pieces

    recording = run(model, prompts[0], points=points, bos=bos, logits=logits)
    content = to_pieces(recording, logits=logits)
    write_whole(path, *content)
    if not choice.quiet:
        size = f"{sum(map(len, content)) / 1e6:.1f} MB"
        tensors = f"{len(recording)} tensors, {len(recording.ids)} positions"
        tell(f"wrote {path}: {tensors}, {size}")
    tell_failures(_not_finite(recording), None)


def _not_finite(recording: Recording) -> list[Check]:
    """The failed check `finite` with its first place in the order of the forward pass, or none."""
    from resid.results import Check

    saved = dict(recording)
    if recording.logits is not None:
        saved["logits"] = recording.logits  # At every position.
    lost = [
        f"{name} at position {int(rows[0])}"
        for name, tensor in saved.items()
        if len(rows := (~tensor.isfinite()).any(1).nonzero())
    ]
    return [Check("finite", float(len(lost)), 0.0, False, lost[0])] if lost else []
