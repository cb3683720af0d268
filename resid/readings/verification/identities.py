"""The identities that results carry, and two that no single result can hold."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from resid.model import Model
from resid.points import stream_points
from resid.readings.attribution import attribution
from resid.readings.logit_lens import logit_lens
from resid.readings.mlp_memory import mlp_memory
from resid.readings.param_count import param_count
from resid.readings.stream_norms import stream_norms
from resid.readings.verification import tolerances
from resid.readings.verification.measured import exact, worst
from resid.recording import Recording
from resid.results import Attribution, Check


def identities(model: Model, recording: Recording) -> Iterator[Check]:
    """Every identity on one prompt, its recording with everything in it.

    Attribution is made for the model's own top token after the first and after the last position:
    GPT-2's massive activations lie at the first, where sums are hardest to close.
    """
    last = f"{model.n_layers - 1}.post"
    yield from logit_lens(model, recording, top=1, points=[last]).checks
    yield from stream_norms(model, recording).checks
    yield points_chain(model, recording)
    yield from mlp_memory(model, recording, neurons=1, top=1, positions=None).checks
    for at in sorted({0, len(recording.ids) - 1}):
        yield from _attributions(model, recording, at)


def _attributions(model: Model, recording: Recording, at: int) -> Iterator[Check]:
    assert recording.logits is not None
    said = int(recording.logits[recording.logits_at.index(at)].argmax())
    whole = attribution(model, recording, target=said, position=at)
    split = attribution(model, recording, target=said, position=at, heads=True)
    yield from whole.checks
    yield from (check for check in split.checks if check.name == "direct_closes")
    yield heads_add_up(model, whole, split)


def heads_add_up(model: Model, whole: Attribution, split: Attribution) -> Check:
    """The shares of each layer's heads and bias against the share of its attention output."""
    shares = dict(zip(whole.components, whole.direct, strict=True))
    size = max(1e-12, *(abs(float(share)) for share in whole.direct))
    errors = []
    for layer in range(model.n_layers):
        parts = (f"L{layer}H", f"{layer}.attn_bias")
        named = zip(split.components, split.direct, strict=True)
        together = sum(float(share) for name, share in named if name.startswith(parts))
        errors.append(abs(together - float(shares[f"{layer}.attn"])) / size)
    return worst(
        "heads_add_up",
        torch.tensor(errors, dtype=torch.float64)[:, None],
        tolerances.heads(model),
        [f"{layer}.attn" for layer in range(model.n_layers)],
        [whole.position],
    )


def points_chain(model: Model, recording: Recording) -> Check:
    """Every point against the one before it plus what was written between them.

    `stream_adds_up` sees the two ends only. The tolerance is the rounding of one addition.
    """
    ids = torch.tensor(recording.ids, device=model.device)
    points = stream_points(model.n_layers, mids=True)
    before = exact(model.W_E[ids]) + exact(model.W_pos[: len(ids)])
    writes = [torch.zeros_like(before)]
    for point in points[1:]:
        layer, kind = point.split(".")
        writes.append(exact(recording[f"{layer}.{'attn_out' if kind == 'mid' else 'mlp_out'}"]))
    errors = []
    for point, write in zip(points, writes, strict=True):
        after = exact(recording[point])
        # As large as the largest of the three: two vectors that cancel leave their own rounding.
        size = torch.stack([part.norm(dim=1) for part in (before, write, after)]).amax(0)
        errors.append((before + write - after).norm(dim=1) / size.clamp(min=1e-30))
        before = after
    tolerance = torch.finfo(model.dtype).eps
    # A point that is wrong breaks the step to it and the step from it: the first is named.
    broken = [i for i, error in enumerate(errors) if not bool((error <= tolerance).all())]
    end = broken[0] + 1 if broken else len(points)
    return worst(
        "points_chain", torch.stack(errors[:end]), tolerance, points[:end], range(len(ids))
    )


def parts_add_up(model: Model) -> Check:
    """The parts of the parameter count against the memory that the parameters lie in."""
    counted = param_count(model)
    distinct = sum({p.data_ptr(): p.numel() for p in model.hf.parameters()}.values())
    error = abs(counted.total - distinct)
    where = f"{counted.total:,} in parts, {distinct:,} distinct"
    failed = [check.where for check in counted.failures]
    passed = error == 0 and not failed
    return Check(
        "parts_add_up", float(error), 0.0, passed, None if passed else (failed or [where])[0]
    )
