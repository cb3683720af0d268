"""Faults to plant into resid itself, each with where it has to be seen.

They change resid's own functions and never the model: what is wrong is the reading.
"""

import copy
from dataclasses import dataclass, replace

import torch

from resid.model import Model
from resid.readings import logit_lens, param_count, parameters
from resid.recording import Recording


@dataclass(frozen=True)
class Fault:
    """A mistake in resid, and the checks of a certificate that have to see it."""

    name: str
    owner: object
    attribute: str
    make: object
    """From the right function to the wrong one."""
    seen_by: tuple[str, ...]
    where: str
    """A pattern for the place that the first of them names."""

    def plant(self, monkeypatch):
        right = self.owner.__dict__[self.attribute]
        monkeypatch.setattr(self.owner, self.attribute, self.make(right))


def double_norm(norm):
    return lambda self, stream: norm(self, norm(self, stream))


def without_bias(norm):
    return lambda self, stream: norm(self, stream) - self.ln_final_bias.to(stream.dtype)


def last_statistics(decode):
    """Every point normed as if it were the last."""

    def frozen(model, recording, points, at, *arguments):
        last = recording[f"{model.n_layers - 1}.post"][at]
        mean, scale = last.mean(1, keepdim=True), model.ln_final_scale(last)[:, None]

        def ln_final(rows):
            times = len(rows) // len(mean)
            centred = (rows - mean.repeat(times, 1)) / scale.repeat(times, 1)
            return centred * model.ln_final_gain + model.ln_final_bias

        wrong = copy.copy(model)
        wrong.ln_final = ln_final
        return decode(wrong, recording, points, at, *arguments)

    return frozen


def transposed(values):
    return lambda self, layer: values(self, layer).T


def off_by_one(stream):
    """Every point under the name of the next; only the last is itself."""

    def shifted(self, points="post"):
        right = stream(self, points)
        return torch.cat([right[:1], right[:-2], right[-1:]]) if len(right) > 2 else right

    return shifted


def recorded_off_by_one(site):
    """A block's input in place of its output, in the middle of the model."""
    return lambda self, name: (
        (site(self, name)[0], "input") if name == "1.post" else site(self, name)
    )


def head_counted_twice(in_memory):
    """The tied head as memory of its own, also for the total that the parts are held against."""

    def doubled(model):
        found = in_memory(model)
        head = found.tensors[-1]
        assert head.name == "lm_head.weight"
        tensors = (*found.tensors[:-1], replace(head, storage="its own"))
        return replace(found, tensors=tensors, expected=found.expected + head.size)

    return doubled


def head_not_recognised(sum_up):
    """The head as memory of its own, in the sum over the parts alone."""

    def doubled(tensors):
        return sum_up(tuple(replace(tensor, storage=tensor.name) for tensor in tensors))

    return doubled


def shifted_heads(values):
    return lambda self, layer: values(self, layer).roll(1, 0)


LAST = r"2\.post at position \d+, prompt 0, float32"
FAULTS = [
    Fault(
        "double ln_final", Model, "ln_final", double_norm,
        ("lens_equals_logits", "waterfall_telescopes", "lens_equals_full"), LAST,
    ),
    Fault(
        "no bias of ln_final", Model, "ln_final", without_bias,
        ("lens_equals_logits", "waterfall_telescopes", "lens_equals_full"), LAST,
    ),
    Fault(
        "last statistics at every layer", logit_lens, "_decode", last_statistics,
        ("lens_equals_full",), r"(embed|\d\.(mid|post)) at position \d+, prompt 0, float32",
    ),
    Fault(
        "transposed values", Model, "W_out", transposed,
        ("neurons_add_up",), r"\d\.mlp_out at position \d+, prompt 0, float32",
    ),
    Fault(
        "points off by one", Recording, "stream", off_by_one,
        ("lens_equals_full",), r"\d\.(mid|post) at position \d+, prompt 0, float32",
    ),
    Fault(
        "recorded off by one", Model, "site", recorded_off_by_one,
        ("points_chain",), r"1\.post at position \d+, prompt 0, float32",
    ),
    Fault(
        "tied head counted twice", parameters, "in_memory", head_counted_twice,
        ("parts_add_up",), r"15,232 in parts, 10,432 distinct, float32",
    ),
    Fault(
        "tied head not recognised", param_count, "_sum_up", head_not_recognised,
        ("parts_add_up",), r"15,232 in parts, 10,432 distinct, float32",
    ),
    Fault(
        "heads of another place", Model, "W_O", shifted_heads,
        ("direct_closes", "heads_add_up"), r"the logit at position 0, prompt 0, float32",
    ),
]  # fmt: skip
