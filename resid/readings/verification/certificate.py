"""The certificate: every check that resid knows, on one model and a few prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from resid.model import Model
from resid.readings import float64 as exactly
from resid.readings.verification import identities, running, streaming
from resid.readings.verification.prompts import built_in
from resid.recording import record
from resid.results import Check, Verification

Prompt = str | Sequence[int]
# Group, index of the prompt or None, and the check.
_Made = tuple[str, int | None, Check]


def verify(
    model: Model, prompts: Sequence[Prompt] | None = None, *, float64: bool = True
) -> Verification:
    """Whether a model, on this machine and with these versions, gives numbers that hold.

    Every identity that results carry; that recording changes no bit of the logits and leaves no
    hook and no training flag behind, also when a block raises; that a padded batch equals its
    single runs; that the streamed unembedding equals the plain one, whatever its blocks are (the
    dearest of all, so on the first prompt alone).

    All is done at the model's own precision, and once more on a float64 copy in training mode. That
    copy tells rounding from faults, its tolerances being far tighter (1e-10), and takes eight bytes
    a parameter beside the model.

    Args:
        model: from `load`; it is only read. While one run is broken off, a hook of ours that raises
            is on its last block.
        prompts: texts or rows of ids; None: a few that are built in.
        float64: make the copy.

    Returns:
        Verification; its `checks` name the place, the prompt and the format of every failure.

    Raises:
        ResidError: the model has no language-model head, a prompt cannot be read, or there is no
            room for the copy.
    """
    if isinstance(prompts, str):
        prompts = [prompts]
    asked = (
        built_in(model)
        if prompts is None
        else [(p if isinstance(p, str) else None, model.encode(p)) for p in prompts]
    )
    rows = [ids for _, ids in asked]
    made = [(model, item) for item in _checks(model, rows)]
    made.append((model, ("identities", None, identities.parts_add_up(model))))
    if float64 and model.dtype != torch.float64:
        twin = exactly.in_float64(model)
        twin.hf.train()  # Recording has to set dropout aside, and to give the mode back.
        made += [(twin, item) for item in _checks(twin, rows)]
    dtypes = [str(each.dtype).removeprefix("torch.") for each, _ in made]
    return Verification(
        source=model.source(None, ()),
        checks=tuple(
            _placed(check, prompt, dtype)
            for (_, (_, prompt, check)), dtype in zip(made, dtypes, strict=True)
        ),
        groups=tuple(group for _, (group, _, _) in made),
        dtypes=tuple(dtypes),
        runs=tuple(prompt for _, (_, prompt, _) in made),
        prompts=tuple(text for text, _ in asked),
        prompt_ids=tuple(tuple(ids) for ids in rows),
    )


def _checks(model: Model, rows: Sequence[Sequence[int]]) -> Iterator[_Made]:
    """Every check of one model, held to float64's tolerance where that is its format."""
    hold = exactly.held if model.dtype == torch.float64 else _as_it_is
    for i, ids in enumerate(rows):
        recording = record(model, ids)
        for check in identities.identities(model, recording):
            yield "identities", i, hold(check)
        yield "recording", i, running.logits_unchanged(model, recording)
        if i:
            continue  # The vocabulary is read in one way, whatever the prompt.
        yield "unembedding", i, streaming.lens_equals_full(model, recording)
        for check in streaming.blocks_agree(model, recording):
            yield "unembedding", i, check
    for check in running.left_behind(model, rows[0]):
        yield "recording", None, check
    yield "batching", None, running.batch_equals_single(model, rows)


def _as_it_is(check: Check) -> Check:
    return check


def _placed(check: Check, prompt: int | None, dtype: str) -> Check:
    """The check, its place of failure completed with prompt and number format."""
    if check.where is None:
        # Rounding that float64's tolerance does not admit has a place in no reading.
        return check if check.passed else replace(check, where=_run(prompt, dtype))
    return replace(check, where=f"{check.where}, {_run(prompt, dtype)}")


def _run(prompt: int | None, dtype: str) -> str:
    return dtype if prompt is None else f"prompt {prompt}, {dtype}"
