"""Models that somebody has hooked, compiled, adapted or put to another use."""

from collections import Counter

import numpy as np
import pytest
import torch

import resid
from resid.errors import ResidError
from resid.recording import recording
from tests.conftest import D_MODEL, IDS, N_LAYERS, tiny_hf
from tests.oracle import Oracle

READINGS = {
    "logit_lens": lambda m, r: resid.logit_lens(m, r, target=3, follow=True, baseline=True),
    "stream_norms": resid.stream_norms,
    "mlp_memory": lambda m, r: resid.mlp_memory(m, r, target=3),
    "attribution": lambda m, r: resid.attribution(m, r, target=3, heads=True),
    "param_count": lambda m, r: resid.param_count(m),
    "find_neurons": lambda m, r: resid.find_neurons(m, 3),
    "neuron_card": lambda m, r: resid.neuron_card(m, (1, 3)),
}


@pytest.mark.parametrize("reading", READINGS)
def test_no_reading_runs_a_module_of_the_users_model(reading):
    """The one forward pass is `record`'s; what is read from it is computed beside the model."""
    model, fired = resid.load(tiny_hf()), Counter()
    for name, module in model.hf.named_modules():
        module.register_forward_hook(lambda *_, name=name: fired.update([name]))
    recorded = resid.record(model, IDS)
    once = Counter(fired)
    assert set(once.values()) == {1}
    assert {"transformer.ln_f", "lm_head", "transformer.h.2"} <= set(once)
    READINGS[reading](model, recorded)
    assert fired == once


# torch's own, compiling; the second under Python 3.13.0 alone.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning")
@pytest.mark.skipif(not hasattr(torch.compiler, "set_stance"), reason="torch before 2.6")
@pytest.mark.parametrize("part", ["", "transformer.h.1", "transformer.h.1.mlp"])
@pytest.mark.parametrize("in_place", [True, False])
def test_whatever_was_compiled_and_has_run_is_recorded_in_full(part, in_place):
    hf = tiny_hf()
    oracle, outside = Oracle(hf, IDS), hf
    if in_place:
        hf.get_submodule(part).compile(backend="eager")
    elif part:
        hf.set_submodule(part, torch.compile(hf.get_submodule(part), backend="eager"))
    else:
        outside = torch.compile(hf, backend="eager")
    with torch.no_grad():
        outside(torch.tensor([IDS]))
    recorded = resid.record(resid.load(outside), IDS)
    assert set(recorded) == set(oracle.at)
    for name, expected in oracle.at.items():
        np.testing.assert_allclose(recorded[name], expected, atol=1e-4, err_msg=name)


def test_generating_inside_a_recording_is_refused_and_nothing_is_overwritten():
    hf = tiny_hf()
    model = resid.load(hf)
    with pytest.raises(ResidError, match="a second forward pass"), recording(model) as captured:
        hf.generate(torch.tensor([IDS]), max_new_tokens=3, do_sample=False, pad_token_id=0)
    assert captured["2.post"].shape == (1, len(IDS), D_MODEL)
    assert torch.equal(captured["2.post"][0], resid.record(model, IDS)["2.post"])


def test_a_model_that_collects_attentions_records_the_same_and_keeps_its_settings():
    hf = tiny_hf(attn_implementation="eager")
    hf.config.output_attentions = True
    hooks = [len(module._forward_hooks) for module in hf.modules()]
    recorded = resid.record(resid.load(hf), IDS)
    for name, expected in Oracle(hf, IDS).at.items():
        np.testing.assert_allclose(recorded[name], expected, atol=1e-4, err_msg=name)
    assert [len(module._forward_hooks) for module in hf.modules()] == hooks
    assert hf.config.output_attentions
    assert hf.config._attn_implementation == "eager"


class Adapter(torch.nn.Module):
    """A low-rank adapter around a projection, under the names that adapter libraries give."""

    def __init__(self, base, rank=2):
        super().__init__()
        self.base_layer = base
        down = torch.nn.Linear(base.weight.shape[0], rank, bias=False)
        up = torch.nn.Linear(rank, base.weight.shape[1], bias=False)
        self.lora_A, self.lora_B = torch.nn.ModuleDict(), torch.nn.ModuleDict()
        self.lora_A["default"], self.lora_B["default"] = down, up

    def forward(self, x):
        return self.base_layer(x) + self.lora_B["default"](self.lora_A["default"](x))


class Adapted(torch.nn.Module):
    """A model with adapters, as deep inside of its wrapper as adapter libraries put it."""

    def __init__(self, hf):
        super().__init__()
        self.base_model, self.config = torch.nn.Module(), hf.config
        self.base_model.model = hf
        for block in hf.transformer.h:
            block.attn.c_attn = Adapter(block.attn.c_attn)
            block.mlp.c_proj = Adapter(block.mlp.c_proj)

    def get_output_embeddings(self):
        return self.base_model.model.get_output_embeddings()

    def forward(self, *arguments, **named):
        return self.base_model.model(*arguments, **named)


def test_a_model_with_adapters_is_read_with_them():
    torch.manual_seed(0)
    plain = resid.record(resid.load(tiny_hf()), IDS)
    adapted = Adapted(tiny_hf()).eval()
    model = resid.load(adapted)
    recorded = resid.record(model, IDS)
    with torch.no_grad():
        own = adapted(torch.tensor([IDS])).logits[0]
    assert (own - plain.logits).abs().max() > 0.1, "an adapter that changes nothing proves nothing"
    assert torch.equal(recorded.logits, own)
    lens = resid.logit_lens(model, recorded)
    assert not lens.failures
    # Neither reads the weights of an MLP.
    assert not resid.stream_norms(model, recorded).failures
    assert not resid.attribution(model, recorded, target="id:7").failures
    np.testing.assert_array_equal(lens.top_ids[-1, :, 0], own.argmax(1))
    counted = resid.param_count(model)
    lora = {"lora_A": N_LAYERS * 2 * (16 + 24), "lora_B": N_LAYERS * 2 * (48 + 16)}
    assert counted.other_parts == lora
    assert not counted.failures
    # What reads the wrapped weights themselves does not take the base's for the whole.
    with pytest.raises(ResidError, match=r"0\.attn\.c_attn is a Adapter: its weights are wrapped"):
        model.W_QKV(0)
