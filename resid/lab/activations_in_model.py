"""The activation functions at the pre-activations of a pretrained model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from resid.lab.activations import FUNCTIONS, activations, shares
from resid.lab.source import lab_source
from resid.model import Model
from resid.recording import Recording, record
from resid.results import Check, Floats
from resid.results.lab import LabActivations
from resid.results.lab.activations import ActivationsInModel

# Of the largest coefficient; what the model rounds in its own number format, and a little more.
_CLOSE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}


def activations_of(
    model: Model, prompt: str | Sequence[int], *, bos: bool = False, seed: int = 0
) -> LabActivations:
    """The functions measured, also at what a model's neurons get to see on a prompt.

    Args:
        model: from `load`.
        prompt: text or ids.
        bos: put one beginning-of-sequence token in front.
        seed: of the normal inputs that integrals are held against.

    Raises:
        ResidError: the prompt is empty, too long, or has ids that the model cannot read.
    """
    recording = record(model, prompt, points="mlp_pre,mlp_post", bos=bos, logits=False)
    read = recording.source
    settings = {"prompt": read.prompt, "ids": list(read.ids), "tokens": list(read.tokens)}
    source = lab_source("activations", model.name, settings, seed, model.revision)
    return activations(measure(model, recording), source, seed, _finite(model, recording))


def measure(model: Model, recording: Recording) -> ActivationsInModel:
    """What each function does at the recorded pre-activations, layer by layer.

    Args:
        model: that was recorded.
        recording: with `mlp_pre` and `mlp_post` of every layer.

    Returns:
        ActivationsInModel, its shares NaN in a layer where something is not finite.
    """
    layers = range(model.n_layers)
    errors = np.zeros(len(FUNCTIONS))
    largest = 0.0
    off, off_neurons = [], []
    found = np.zeros((3, len(FUNCTIONS), model.n_layers))
    for layer in layers:
        pre = _numpy(recording[f"{layer}.mlp_pre"])
        post = _numpy(recording[f"{layer}.mlp_post"])
        off_neurons.append(int((pre <= 0).all(0).sum()))
        if not (np.isfinite(pre).all() and np.isfinite(post).all()):
            # Which function is the model's own cannot be told either.
            off.append(np.nan)
            errors[:] = found[:, :, layer] = np.nan
            continue
        largest = max(largest, float(np.abs(post).max()))
        off.append(float((pre <= 0).mean()))
        for i, (_, function) in enumerate(FUNCTIONS.values()):
            value = function(pre, _cdf)[0]
            errors[i] = np.maximum(errors[i], np.abs(value - post).max())
            found[:, i, layer] = [each.mean() for each in shares(function, pre, _cdf)]
    close = _CLOSE[model.dtype] * max(1.0, largest)
    best = int(errors.argmin())
    return ActivationsInModel(
        positions=len(recording.ids),
        d_mlp=int(recording["0.mlp_pre"].shape[-1]),
        own=best if errors[best] <= close else None,
        close=close,
        layers=tuple(layers),
        errors=errors,
        off=np.array(off),
        off_neurons=np.array(off_neurons),
        zero=found[0],
        no_slope=found[1],
        flat=found[2],
    )


def _finite(model: Model, recording: Recording) -> Check:
    """Whether all activations are, in the order of the forward pass."""
    names = [
        f"{layer}.{kind}" for layer in range(model.n_layers) for kind in ("mlp_pre", "mlp_post")
    ]
    finite = np.array([recording[name].isfinite().all(-1).cpu().numpy() for name in names])
    return Check.of_finite(finite, lambda i, j: f"{names[i]} at position {j}")


def _numpy(tensor: torch.Tensor) -> Floats:
    return np.asarray(tensor.double().cpu().numpy(), dtype=np.float64)


def _cdf(x: Floats) -> Floats:
    """As `normal_cdf`, for millions of numbers."""
    return np.asarray(torch.special.ndtr(torch.from_numpy(x)).numpy(), dtype=np.float64)
