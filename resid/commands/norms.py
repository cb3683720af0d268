"""`resid norms`: how the residual stream grows, and what writes to it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from resid.commands.files import Output
from resid.commands.options import (
    FiniteRange,
    ModelChoice,
    Prompt,
    model_options,
    one_prompt_for_files,
    output_options,
    parse_positions,
    prompt_options,
)
from resid.commands.reading_options import lengths_of, points_option, positions_option

if TYPE_CHECKING:
    from resid.model import Model
    from resid.results import StreamNorms


@click.command(short_help="How the residual stream grows, and what writes to it.")
@prompt_options
@points_option("Points of the stream: embed and every L.post; all adds every L.mid.")
@positions_option("Positions to read, for example 0,3,5-8.", default="all")
@click.option(
    "--exclude",
    default="0",
    show_default=True,
    metavar="LIST|none",
    help="Positions to keep out of the growth and the statistics; they are shown apart.",
)
@click.option(
    "--outliers",
    "outlier_share",
    type=FiniteRange(0, 1, min_open=True),
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="Share of the squared norm from which a single dimension is an outlier.",
)
@output_options
@model_options
def norms(
    prompts: list[Prompt],
    choice: ModelChoice,
    output: Output,
    bos: bool,
    points: str,
    positions: str,
    exclude: str,
    outlier_share: float,
) -> None:
    """Measure the residual stream at every point, and what attention and MLP write to it.

    Each row of the table is one point, from the embedding to the last block: the L2 norm of the
    stream over the prompt's positions, how it grew, what the block wrote, and how much the stream
    still points where it began and already points where it ends. Position 0 stands apart: GPT-2
    keeps massive activations there.

    \b
    Examples:
      resid norms "The capital of France is"
      resid norms "The capital of France is" --points all -o norms.png -o norms.json
      resid norms "The capital of France is" --exclude none
    """
    one_prompt_for_files(output, prompts)
    model = choice.load()

    from resid.readings.float64 import recheck
    from resid.readings.stream_norms import stream_norms
    from resid.recording import record

    asked = [
        (parse_positions(positions, n), _parse_exclude(exclude, n))
        for n in lengths_of(model, prompts, bos)
    ]
    for prompt, (at, left_out) in zip(prompts, asked, strict=True):

        def read(
            model: Model,
            prompt: Prompt = prompt,
            at: list[int] | None = at,
            left_out: list[int] = left_out,
        ) -> StreamNorms:
            # Points are checked before the model runs; the writes come with every point.
            recorded = f"{points},all,attn_out,mlp_out"
            return stream_norms(
                model,
                record(model, prompt, points=recorded, bos=bos, logits=False),
                points=points,
                positions=at,
                exclude=left_out,
                outlier_share=outlier_share,
            )

        output.emit(
            read(model),
            table={},
            figure={},
            quiet=choice.quiet,
            recheck=partial(recheck, model, read),
        )


def _parse_exclude(text: str, n: int) -> list[int]:
    if text.strip() == "none":
        return []
    return parse_positions(text, n, "--exclude") or []
