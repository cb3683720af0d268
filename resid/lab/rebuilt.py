"""A pretrained block built from scratch: held against the original, then taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from resid.errors import ResidError
from resid.lab.block import GPT, MLP, Block
from resid.lab.pretrained import activation_of, linear, rebuild, rebuild_block
from resid.lab.source import lab_source
from resid.model import Model
from resid.points import KINDS, stream_points
from resid.recording import Recording, record
from resid.results import Check, Floats
from resid.results.lab import LabBlock

# Relative. In half precision both sides round every step, and not in the same order.
# On the bundled model that was seen to cost 0.04 and 0.005.
_TOLERANCE = {torch.bfloat16: 0.1, torch.float16: 0.02, torch.float64: 1e-12}
_SAMPLES = 300


def rebuilt_block(
    model: Model, prompt: str | Sequence[int], layer: int = 0, seed: int = 0
) -> LabBlock:
    """One block of a model from scratch: every step against the original, then without its parts.

    1. The weights of block `layer` go into `resid.lab.block.Block`; it reads the stream that
       entered Hugging Face's block, and every step that can be seen there is compared.
    2. All blocks are stacked between the embeddings and ln_final; every point of the stream and
       the logits are compared with those of the model.
    3. One token of the prompt is replaced, with attention and with attention taken out of every
       block: which positions notice?
    4. The activation is replaced by none; two matrices in a row are then one.

    Args:
        model: from `resid.load`.
        prompt: text, or ids.
        layer: which block to trace, counted from 0.
        seed: draws the token that replaces one of the prompt, and which numbers are kept.

    Returns:
        LabBlock, its axes step, point, pos and sample; errors relative to the largest value of the
        original.

    Raises:
        ResidError: there is no such layer; the prompt does not fit the model; or its activation
            function is not written out in the lab.

    Source: Radford et al. 2019 for the architecture. That a product of two matrices is a matrix,
    and that only attention moves anything between positions, is tested here and not assumed.
    """
    if not 0 <= layer < model.n_layers:
        raise ResidError(f"there is no layer {layer}; {model.name} has 0 to {model.n_layers - 1}")
    activation = activation_of(model)
    here = [f"{layer}.{kind}" for kind in KINDS]
    recording = record(model, prompt, points=["post", *here], logits=False)
    ids = torch.tensor(recording.ids, device=model.device)
    with torch.no_grad():
        block = rebuild_block(model, layer, activation)
        steps = _trace(block, recording[_before(layer)])
        step_errors = _against(recording, layer, steps)

        gpt = rebuild(model)
        points = stream_points(model.n_layers)
        stream = gpt.stream(ids)
        stack_errors = [_relative(x, recording[p]) for x, p in zip(stream, points, strict=True)]
        logit_error = _logit_error(model, gpt, stream[-1], recording.ids)

        at = len(ids) // 2
        other = _another(int(ids[at]), model.n_embeddings, seed)
        change = _change(gpt, ids, at, other)
        change_alone = _change(rebuild(model, attention=False), ids, at, other)

        line = _straighten(block.mlp, steps["ln2"], seed)
    tolerance = _TOLERANCE.get(model.dtype, 1e-5)
    settings = {
        "prompt": recording.source.prompt,
        "layer": layer,
        "ids": recording.ids,
        "tokens": recording.source.tokens,
        "activation": model.activation,
        "dtype": recording.source.dtype,
        "device": recording.source.device,
    }
    return LabBlock(
        source=lab_source("block", model.name, settings, seed, model.revision),
        checks=(
            _worst("block_equals_original", step_errors, tolerance, list(steps)),
            _worst("stack_equals_stream", stack_errors, tolerance, points),
            *(
                [_worst("stack_equals_logits", [logit_error], tolerance, ["the logits"])]
                if logit_error is not None
                else []
            ),
            _untouched("attention_is_causal", change, range(at)),
            _untouched("alone_without_attention", change_alone, _others(at, len(ids))),
            _worst("linear_mlp_is_affine", [line.affine_error], tolerance, ["the MLP"]),
        ),
        layer=layer,
        n_layers=model.n_layers,
        steps=tuple(steps),
        shapes=tuple(tuple(value.shape) for value in steps.values()),
        step_errors=np.array(step_errors),
        points=points,
        stack_errors=np.array(stack_errors),
        logit_error=logit_error,
        positions=tuple(range(len(ids))),
        replaced=at,
        replaced_by=other,
        replaced_by_token=model.vocabulary.show(other),
        change=change,
        change_alone=change_alone,
        d_mlp=block.mlp.W_in.shape[1],
        affine_error=line.affine_error,
        bend=line.bend,
        bend_linear=line.bend_linear,
        sample_affine=line.samples[0],
        sample_linear=line.samples[1],
        sample_own=line.samples[2],
    )


def _before(layer: int) -> str:
    return f"{layer - 1}.post" if layer else "embed"


def _trace(block: Block, x: Tensor) -> dict[str, Tensor]:
    """Every step of the block by name, from the stream that goes in to the one that comes out."""
    steps = {"x": x}

    def note(name: str, value: Tensor) -> Tensor:
        steps[name] = value
        return value

    block(x, note)
    return steps


def _against(recording: Recording, layer: int, steps: dict[str, Tensor]) -> list[float]:
    """The error of every step; NaN where Hugging Face's block has no place to look at."""
    errors = []
    for step, value in steps.items():
        point = f"{layer}.{step}"
        seen = point in recording
        errors.append(_relative(value, recording[point]) if seen else float("nan"))
    return errors


def _logit_error(model: Model, gpt: GPT, last: Tensor, ids: Sequence[int]) -> float | None:
    if not model.has_head:
        return None
    return _relative(gpt.unembed(last), model.own_logits(ids, range(len(ids))))


def _relative(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference over the largest value; infinite where something is not finite."""
    difference, largest = float((ours - theirs).abs().max()), float(theirs.abs().max())
    error = difference / largest if largest else difference
    return error if np.isfinite(error) else float("inf")


def _another(token: int, n: int, seed: int) -> int:
    """An id that is not this one."""
    generator = torch.Generator().manual_seed(seed)
    further = 1 + int(torch.randint(max(n - 1, 1), (), generator=generator))
    return (token + further) % n


def _change(gpt: GPT, ids: Tensor, at: int, other: int) -> Floats:
    """[pos] by how much the last stream moves where the token at one position is another."""
    replaced = ids.clone()
    replaced[at] = other
    before, after = (_wide(gpt.stream(each)[-1]) for each in (ids, replaced))
    change: Floats = ((after - before).norm(dim=-1) / before.norm(dim=-1)).cpu().numpy()
    return change


def _wide(x: Tensor) -> Tensor:
    """In float32 at least, so that squares neither overflow nor round to half precision."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


@dataclass(frozen=True)
class _Line:
    """An MLP beside the straight line that it would be without its activation."""

    affine_error: float
    bend: float
    bend_linear: float
    samples: list[Floats]


def _straighten(mlp: MLP, x: Tensor, seed: int) -> _Line:
    """The MLP without its activation, as the one affine map that it then is, on inputs [T, d]."""
    flat = MLP(mlp.W_in.shape[0], mlp.W_in.shape[1], linear)
    flat.load_state_dict(mlp.state_dict(), assign=True)
    W = mlp.W_in @ mlp.W_out  # [d, d], however many neurons lay between
    b = mlp.b_in @ mlp.W_out + mlp.b_out
    outputs = [x @ W + b, flat(x), mlp(x)]
    generator = torch.Generator().manual_seed(seed)
    kept = torch.randperm(x.numel(), generator=generator)[:_SAMPLES].sort().values.numpy()
    return _Line(
        affine_error=_relative(outputs[0], outputs[1]),
        bend=_bend(mlp, x),
        bend_linear=_bend(flat, x),
        samples=[_wide(each).flatten().cpu().numpy()[kept] for each in outputs],
    )


def _bend(mlp: MLP, x: Tensor) -> float:
    """How far the MLP of half an input lies from half way, in units of half the way."""
    whole, none, half = (_wide(mlp(each)) for each in (x, torch.zeros_like(x), x / 2))
    return float((half - (whole + none) / 2).norm() / ((whole - none).norm() / 2))


def _others(at: int, n: int) -> list[int]:
    return [position for position in range(n) if position != at]


def _worst(name: str, errors: Sequence[float], tolerance: float, places: Sequence[str]) -> Check:
    """The largest of the errors; what was not compared has none."""
    worst = int(np.nanargmax(errors))
    error = float(errors[worst])
    passed = error <= tolerance
    return Check(name, error, tolerance, passed, None if passed else places[worst])


def _untouched(name: str, change: Floats, positions: Sequence[int]) -> Check:
    """No position among these moved at all: the same numbers, to the bit."""
    moved = [position for position in positions if change[position] != 0]
    error = float(max((change[position] for position in moved), default=0.0))
    return Check(name, error, 0.0, not moved, f"position {moved[0]}" if moved else None)
