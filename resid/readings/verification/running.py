"""What recording must leave as it was, and that a batch is nothing but its single runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from resid.model import Model
from resid.readings.verification import tolerances
from resid.readings.verification.measured import exact, worst
from resid.recording import Recording, record
from resid.results import Check

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class _PlannedError(Exception):
    """Raised inside a block to see what a failed run leaves behind."""


def logits_unchanged(model: Model, recording: Recording) -> Check:
    """The logits of the recorded run against those of a run without hooks, bit by bit."""
    assert recording.logits is not None
    plain = model.own_logits(recording.ids, recording.logits_at)
    same = (plain == recording.logits) | (plain.isnan() & recording.logits.isnan())
    errors = torch.where(same.cpu(), 0.0, (exact(plain) - exact(recording.logits)).abs())
    return worst("logits_unchanged", errors.amax(1)[None], 0.0, ["logits"], recording.logits_at)


def left_behind(model: Model, ids: Sequence[int]) -> Iterator[Check]:
    """Hooks and training flags after a run, and after one that a block broke off."""
    hooks, modes = _hooks(model), _modes(model)
    record(model, ids)
    yield _same("hooks_removed", hooks, _hooks(model), "hooks")
    yield _same("modes_restored", modes, _modes(model), "training flag")
    block, _ = model.site(f"{model.n_layers - 1}.post")
    planned = block.register_forward_pre_hook(_fail)
    try:
        record(model, ids)
    except _PlannedError:
        pass
    finally:
        planned.remove()
    yield _same("hooks_removed_after_error", hooks, _hooks(model), "hooks")
    yield _same("modes_restored_after_error", modes, _modes(model), "training flag")


def batch_equals_single(model: Model, prompts: Sequence[Sequence[int]]) -> Check:
    """Points and logits of one padded batch against those of single runs, the worst of all."""
    rows = _unequal(prompts, model.n_ctx)
    checks = [
        _batch_check(model, together, record(model, ids, points="all"), i)
        for i, (ids, together) in enumerate(
            zip(rows, record(model, rows, points="all"), strict=True)
        )
    ]
    return max(checks, key=lambda check: torch.inf if check.error != check.error else check.error)


def _batch_check(model: Model, together: Recording, alone: Recording, i: int) -> Check:
    assert together.logits is not None and alone.logits is not None
    pairs = [(together[name], alone[name]) for name in alone.points]
    pairs.append((together.logits, alone.logits))
    errors = []
    for ours, theirs in pairs:
        expected = exact(theirs)
        size = expected.norm(dim=1).clamp(min=1e-30)
        errors.append((exact(ours) - expected).norm(dim=1) / size)
    places = [f"row {i} of the batch, {name}" for name in (*alone.points, "logits")]
    positions = range(len(alone.ids))
    return worst(
        "batch_equals_single", torch.stack(errors), tolerances.batch(model), places, positions
    )


def _unequal(prompts: Sequence[Sequence[int]], n_ctx: int) -> list[list[int]]:
    """The prompts, and where all are of one length a shorter or a longer one."""
    rows = [list(ids) for ids in prompts]
    if len({len(row) for row in rows}) == 1:
        rows.append(rows[0][:1] if len(rows[0]) > 1 else (rows[0] * 2)[:n_ctx])
    return rows


def _fail(*_: Any) -> None:
    raise _PlannedError


def _hooks(model: Model) -> dict[str, int]:
    return {
        name: sum(len(getattr(module, kind, ())) for kind in _HOOKS)
        for name, module in model.hf.named_modules()
    }


def _modes(model: Model) -> dict[str, bool]:
    return {name: module.training for name, module in model.hf.named_modules()}


def _same(name: str, before: dict[str, Any], after: dict[str, Any], what: str) -> Check:
    """How many modules differ, exactly none of which may, and the first of them."""
    changed = [module for module in before if after.get(module) != before[module]]
    where = f"the {what} of {changed[0] or 'the model itself'}" if changed else None
    return Check(name, float(len(changed)), 0.0, not changed, where)
