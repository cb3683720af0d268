"""`resid report`: one offline web page about a prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from resid.commands.files import refuse, tell_failures, write_whole
from resid.commands.notes import tell
from resid.commands.options import (
    ModelChoice,
    Prompt,
    count_option,
    model_options,
    parse_positions,
    prompt_options,
)
from resid.commands.reading_options import (
    check_tokens,
    foil_needs_target,
    points_option,
    positions_option,
)
from resid.commands.spelling import spelled

if TYPE_CHECKING:
    from resid.model import Model
    from resid.render.html import Report
    from resid.results import Check, Result

_DETAILED = 64


@click.command(
    short_help="One offline web page about a prompt: all readings, to look at and share."
)
@prompt_options
@click.option(
    "-o", "--output", "file", required=True, metavar="FILE.html", help="The page; one file."
)
@click.option("--target", metavar="TOK", help="The token to explain. Default: the model's own.")
@click.option("--foil", metavar="TOK", help="Explain the target minus this token.")
@count_option("--top", 5, "Tokens in each cell.", metavar="K")
@points_option("Points of the stream in the grid.")
@positions_option(
    f"Positions with attribution and neurons. Default: all, of long prompts the last {_DETAILED}."
)
@count_option("--neurons", 2, "Neurons for each layer and position.")
@click.option("--against", metavar="PROMPT", help="A second prompt, to be shown beside the first.")
@click.option(
    "--against-model", metavar="NAME|FOLDER|mini", help="A second model, to be shown beside it."
)
@click.option("--open", "open_it", is_flag=True, help="Open the page in the browser.")
@model_options
@click.pass_context
def report(
    context: click.Context,
    prompts: list[Prompt],
    choice: ModelChoice,
    bos: bool,
    file: str,
    target: str | None,
    foil: str | None,
    top: int,
    points: str,
    positions: str | None,
    neurons: int,
    against: str | None,
    against_model: str | None,
    open_it: bool,
) -> None:
    """Write one web page that answers the questions in the order in which people ask them.

    What would it say, layer by layer? When did it settle? How does the stream grow? Which part of
    the network moved the answer, and which neurons? Where are the parameters, and can the numbers
    be trusted? The page is one file without any request to a network: it opens anywhere. With
    --against or --against-model it shows two, side by side, and their difference.

    \b
    Examples:
      resid report "The capital of France is" -o report.html
      resid report "The capital of France is" --against "The capital of Italy is" -o two.html
      resid report "The capital of France is" -m gpt2 --against-model gpt2-xl -o sizes.html
    """
    path = Path(file)
    refuse(path, (".html",))
    if len(prompts) > 1:
        raise click.UsageError("a page shows one PROMPT; a second one goes to --against")
    foil_needs_target(target, foil)

    model = choice.load()
    asked = [(model, prompts[0])]
    if against is not None or against_model is not None:
        other = model if against_model is None else choice.of(against_model).load()
        asked.append((other, prompts[0] if against is None else against))
    for one, prompt in asked:
        _check(one, prompt, bos=bos, target=target, foil=foil, top=top, positions=positions)

    from resid.render.html import Report, page

    reports: list[Report] = []
    reads = []
    for one, prompt in asked:
        read = partial(
            _read,
            prompt=prompt,
            bos=bos,
            target=target,
            foil=foil,
            top=top,
            points=points,
            positions=positions,
            neurons=neurons,
        )
        reports.append(Report.of(read(one)))
        reads.append((one, read))
    content = page(reports, spelled(context, reports[0].source)).encode()
    write_whole(path, content)
    if not choice.quiet:
        tell(f"wrote {path} ({len(content) / 1000:.0f} kB)")
    for shown, (one, read) in zip(reports, reads, strict=True):
        made = _made(shown.results)
        failed = {key: check for key, check in made.items() if not check.passed}
        tell_failures([*failed.values()], partial(_recheck, one, read, [*failed]))
    if open_it:
        click.launch(path.resolve().as_uri())


# A reading, the position that it explains where it explains one, and the name of a check.
_Key = tuple[str, int | None, str]


def _made(results: Sequence[Result]) -> dict[_Key, Check]:
    """Every check of a report, in the order of the page."""
    return {
        (result.analysis, getattr(result, "position", None), check.name): check
        for result in results
        for check in result.checks
    }


def _recheck(
    model: Model, read: Callable[[Model], list[Result]], failed: Sequence[_Key]
) -> list[Check]:
    """The checks that failed, made once more on one float64 copy."""
    from resid.readings.float64 import held, in_float64

    made = _made(read(in_float64(model)))
    return [held(made[key]) for key in failed]


def _check(
    model: Model,
    prompt: Prompt,
    *,
    bos: bool,
    target: str | None,
    foil: str | None,
    top: int,
    positions: str | None,
) -> None:
    """Refuse what cannot be read, before anything is."""
    check_tokens(model, top=top, target=target, foil=foil)
    parse_positions(positions, len(model.encode(prompt, bos=bos)))


def _read(
    model: Model,
    *,
    prompt: Prompt,
    bos: bool,
    target: str | None,
    foil: str | None,
    top: int,
    points: str,
    positions: str | None,
    neurons: int,
) -> list[Result]:
    """Every reading that a page has a panel for."""
    from resid.readings.attribution import attributions
    from resid.readings.logit_lens import logit_lens
    from resid.readings.mlp_memory import mlp_memory
    from resid.readings.param_count import param_count
    from resid.readings.stream_norms import stream_norms
    from resid.recording import record

    n = len(model.encode(prompt, bos=bos))
    at = parse_positions(positions, n) or list(range(max(0, n - _DETAILED), n))
    last = f"{model.n_layers - 1}.post"
    stream = record(model, prompt, points="all,attn_out,mlp_out,z", bos=bos)
    lens = logit_lens(
        model, stream, top=top, target=target, foil=foil, points=points, follow=True, own=True
    )
    assert lens.own is not None  # It was asked for.
    results: list[Result] = [lens, stream_norms(model, stream)]
    targets = {position: int(lens.own.ids[position]) for position in at}
    if target is not None:
        targets = dict.fromkeys(at, model.vocabulary.id_of(target, model.d_vocab))
    # Where the model says nothing finite there is nothing to explain.
    targets = {position: token for position, token in targets.items() if token >= 0}
    if targets:
        results += attributions(model, stream, targets=targets, foil=foil, heads=True)
    del stream  # The neurons of a long prompt take as much again.
    points = f"{last},mlp_pre,mlp_post,mlp_out"
    fired = record(model, prompt, points=points, bos=bos, logits=[n - 1])
    results.append(mlp_memory(model, fired, target=target, positions=at, neurons=neurons))
    return [*results, param_count(model)]
