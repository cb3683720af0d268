"""The same reading in float64, where rounding is gone and only a fault can still be seen."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

from resid.errors import ResidError, first_line
from resid.model import Model
from resid.results import Check, Result

TOLERANCE = 1e-10
"""What float64 leaves of an identity is around 1e-14; a fault is as large as in float32."""

# What the lens allows for each unit of the largest logit in float32, and what it is called.
_LENS, _PER_LOGIT = "lens_equals_logits", 1e-5


def in_float64(model: Model) -> Model:
    """A copy of the model, its weights in float64: on the same device, where that has the format.

    The copy takes eight bytes a parameter beside the model, twice as much as float32.

    Raises:
        ResidError: there is no room for it, or the model cannot be copied.
    """
    try:
        hf = copy.deepcopy(model.hf)
        if model.device.type == "mps":  # It has no float64.
            hf = hf.cpu()
        hf = hf.double()
    except (RuntimeError, MemoryError, TypeError) as error:
        raise ResidError(
            f"no float64 copy of '{model.name}' can be made: {first_line(error)}"
        ) from error
    for module in hf.modules():
        # This one would compute attention in float32 whatever the weights are.
        if getattr(module, "reorder_and_upcast_attn", False):
            module.reorder_and_upcast_attn = False
    return Model(hf, model.vocabulary.tokenizer, name=model.name, revision=model.revision)


def held(check: Check) -> Check:
    """A check of a float64 model, held to float64's tolerance in place of float32's."""
    size = max(1.0, check.tolerance / _PER_LOGIT) if check.name == _LENS else 1.0
    tolerance = min(check.tolerance, TOLERANCE * size)
    return replace(check, tolerance=tolerance, passed=check.passed and check.error <= tolerance)


def recheck(model: Model, read: Callable[[Model], Result]) -> tuple[Check, ...]:
    """The checks of a reading, made once more on a float64 copy of the model.

    Tells rounding from a fault: what is rounding shrinks by nine orders of magnitude, what is a
    fault stays.

    Args:
        model: on which a check of the reading failed.
        read: records the prompt with the model that it is given, and reads the recording.

    Raises:
        ResidError: there is no room for the copy.
    """
    return tuple(held(check) for check in read(in_float64(model)).checks)
