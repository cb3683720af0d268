"""MLPs as key-value memories: which neurons a prompt fires, and what their values say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from resid import projection as projections
from resid.errors import ResidError
from resid.model import Model
from resid.points import resolve_positions
from resid.recording import Recording, check_made_by, check_size
from resid.results import Check, Ints
from resid.results.memory import ORDERS, MlpMemory
from resid.rounding import tolerance


def mlp_memory(
    model: Model,
    recording: Recording,
    *,
    target: str | int | None = None,
    positions: Sequence[int] | None = None,
    neurons: int = 3,
    top: int = 5,
    order: str | None = None,
    projection: str = "folded",
) -> MlpMemory:
    """The neurons of each layer that write most at some positions, and what their values promote.

    A neuron's key is a column of W_in, scored against ln_2 of the stream; its coefficient is what
    the model's activation function makes of that score; its value is a row of W_out. The MLP writes
    the sum of coefficient x value, plus b_out, and the check `neurons_add_up` holds that against
    what the MLP really wrote.

    Args:
        model: the one that made the recording.
        recording: one prompt's, with mlp_pre, mlp_post and mlp_out; with a target also the last
            block's output.
        target: a token, as its text, "id:42" or an id: adds each neuron's share of its logit.
        positions: which to read; negative ones count from the end; None: all.
        neurons: how many to list for each layer and position.
        top: how many promoted and suppressed tokens to list.
        order: "write" (|coefficient| x |value|), "coefficient", or "target" (its share of the
            target's logit, by size); None: target where there is one, else write.
        projection: "folded" or "raw", see `resid.projection`.

    Returns:
        MlpMemory. Norms are L2, `target_logit` in logits with the scale of ln_final frozen.

    Raises:
        ResidError: the recording is another model's, an activation was not recorded, or an argument
            is out of range.

    Source: Geva et al. 2021 (2012.14913) and 2022 (2203.14680). Unlike their ReLU, GELU has
    negative coefficients, at least -0.17; `write` orders by size all the same.
    """
    order = order or ("write" if target is None else "target")
    if order not in ORDERS or (order == "target" and target is None):
        raise ResidError(f"the order is '{order}'; choose write, coefficient, or target with one")
    named = projections.check_projection(projection)
    check_made_by(model, recording)
    at = resolve_positions(positions, len(recording.ids))
    token = None if target is None else model.vocabulary.id_of(target, model.d_vocab)
    if neurons < 1:
        raise ResidError(f"neurons is {neurons}; it is at least 1")
    if not 1 <= top <= model.d_vocab:
        raise ResidError(f"top is {top}; it lies between 1 and the vocabulary's {model.d_vocab}")
    with torch.no_grad():
        reading = _Reading(model, recording, at, token)
        layers = [reading.layer(layer, neurons, order) for layer in range(model.n_layers)]
        # [pos, layer, chosen] flattened: position by position, then layer by layer.
        flat = {
            name: torch.stack([getattr(layer, name) for layer in layers], 1).flatten(0, 2)
            for name in ("index", "pre", "coefficient", "value_norm", "share")
        }
        values, rows = _distinct(layers)
        promoted, suppressed = (
            side.take(rows) for side in projections.extremes(model, values, top, named)
        )
    chosen = layers[0].index.shape[1]
    shape = (len(at), model.n_layers, chosen)
    position, layer, _ = (axis.ravel() for axis in np.indices(shape))
    neuron = flat["index"].cpu().numpy()
    coefficient, value_norm = (flat[name].cpu().numpy() for name in ("coefficient", "value_norm"))
    return MlpMemory(
        source=recording.source,
        checks=(
            _neurons_add_up(model, layers, at),
            Check.of_finite(promoted.known, lambda i: f"the value of L{layer[i]}N{neuron[i]}"),
        ),
        projection=named,
        order=order,
        positions=tuple(at),
        layers=tuple(range(model.n_layers)),
        active=np.stack([found.active.cpu().numpy() for found in layers]),
        mlp_out_l2=np.stack([found.written.cpu().numpy() for found in layers]),
        layer=layer,
        neuron=neuron,
        pos=np.asarray(at)[position],
        pre_activation=flat["pre"].cpu().numpy(),
        coefficient=coefficient,
        value_norm=value_norm,
        write_norm=np.abs(coefficient) * value_norm,
        promoted=promoted,
        suppressed=suppressed,
        target_id=token,
        target_token=None if token is None else model.vocabulary.show(token),
        target_logit=None if token is None else flat["share"].cpu().numpy(),
    )


@dataclass(frozen=True)
class _Layer:
    """What one MLP did at the positions read; `chosen` are the neurons to list."""

    index: torch.Tensor
    """[pos, chosen]"""
    pre: torch.Tensor
    """[pos, chosen]"""
    coefficient: torch.Tensor
    """[pos, chosen]"""
    value_norm: torch.Tensor
    """[pos, chosen]"""
    share: torch.Tensor
    """[pos, chosen] of the target's logit; zeros without a target."""
    value: torch.Tensor
    """[distinct, d_model] of the neurons chosen at any position, each once."""
    row: torch.Tensor
    """[pos, chosen] the row of `value` that is the neuron's."""
    active: torch.Tensor
    """[pos]"""
    written: torch.Tensor
    """[pos] L2 norm of mlp_out."""
    error: torch.Tensor
    """[pos] of the sum over all neurons, relative to `written`."""


class _Reading:
    """One recording, read layer by layer at some positions."""

    def __init__(
        self, model: Model, recording: Recording, at: list[int], token: int | None
    ) -> None:
        self.model, self.recording, self.at = model, recording, at
        self.direction: torch.Tensor | None = None
        self.scale = torch.ones(len(at), 1)
        if token is not None:
            self.direction = projections.token_direction(model, token, None, "folded")
            last = recording[f"{model.n_layers - 1}.post"][at].to(model.reading_dtype)
            self.scale = model.ln_final_scale(last)[:, None]

    def layer(self, layer: int, neurons: int, order: str) -> _Layer:
        pre, coefficient, written = (
            self.recording[f"{layer}.{name}"][self.at].to(self.model.reading_dtype)
            for name in ("mlp_pre", "mlp_post", "mlp_out")
        )
        values = self.model.W_out(layer).to(self.model.reading_dtype)
        check_size(self.model, self.recording, "d_mlp", coefficient.shape[1], len(values))
        norms = values.norm(dim=1)
        share = torch.zeros_like(coefficient)
        if self.direction is not None:
            share = coefficient * (values @ self.direction) / self.scale
        by = {"write": coefficient.abs() * norms, "coefficient": coefficient, "target": share.abs()}
        index = by[order].topk(min(neurons, len(values)), dim=1).indices
        distinct, row = index.unique(return_inverse=True)
        total = coefficient @ values + self.model.b_out(layer).to(values.dtype)
        size = written.norm(dim=1)
        return _Layer(
            index=index,
            pre=pre.gather(1, index),
            coefficient=coefficient.gather(1, index),
            value_norm=norms[index],
            share=share.gather(1, index),
            value=values[distinct],
            row=row,
            active=(coefficient > 0).to(values.dtype).mean(1),
            written=size,
            error=(total - written).norm(dim=1) / size.clamp(min=1e-12),
        )


def _distinct(layers: list[_Layer]) -> tuple[torch.Tensor, Ints]:
    """[distinct, d_model] the values of all layers, and the row of each neuron that is listed.

    What a value says is the same at every position: a neuron that fires at many meets the
    vocabulary once.
    """
    begins = np.cumsum([0, *(len(layer.value) for layer in layers[:-1])])
    rows = [layer.row.cpu().numpy() + first for layer, first in zip(layers, begins, strict=True)]
    return torch.cat([layer.value for layer in layers]), np.stack(rows, 1).ravel()


def _neurons_add_up(model: Model, layers: list[_Layer], at: list[int]) -> Check:
    errors = torch.stack([layer.error for layer in layers]).cpu()  # [layer, pos]
    allowed = tolerance(model.dtype)
    error = float(errors.max())
    passed = error <= allowed
    worst = int(torch.nan_to_num(errors, nan=torch.inf).argmax())
    where = f"{worst // len(at)}.mlp_out at position {at[worst % len(at)]}"
    return Check("neurons_add_up", error, allowed, passed, None if passed else where)
