"""Neurons of the real GPT-2 against published numbers; skipped where the weights are not cached."""

import numpy as np
import pytest
import torch

import resid
from resid import hub, unembed

pytestmark = pytest.mark.hub


def cached(name):
    if hub.in_cache(name) is None:
        pytest.skip(f"{name} is not in the local cache")
    return resid.load(name)


def test_powers_of_ten_neuron_fires_as_published():
    # TransformerLens, Interactive_Neuroscope demo: mlp.act of L9N652, BOS in front.
    model = cached("gpt2")
    powers = ", ".join(str(10**n) for n in range(8))
    prompt = f"The following is a list of powers of 10: {powers}"
    expected = [-0.08643512, -0.14071988, -0.1039816, -0.12390755, -0.04058974, -0.11064906]
    expected += [-0.05189841, -0.1127614, -0.0690546, -0.11189383, -0.030592, -0.10336886]
    expected += [-0.04322351, 1.5935613, -0.14205799, 2.511661, -0.1331642, 2.5196698]
    expected += [-0.11360849, 3.076527, -0.11637434, 0.5393868, 2.3499725, -0.14952122]
    expected += [-0.16476354, 1.944909, -0.13690136, -0.08802476, 2.184888]
    recording = resid.record(model, prompt, points="9.mlp_post", bos=True, logits=False)
    fired = recording["9.mlp_post"][:, 652].numpy()
    np.testing.assert_allclose(fired, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("layer", "neuron", "top"),
    [
        (13, 1852, [(" transparency", 0.7804), (" disclosure", 0.0860), (" clearer", 0.0313)]),
        (16, 461, [("should", 0.8848), (" should", 0.1136)]),
        (16, 3208, [(" peaceful", 0.4200), (" stable", 0.1459), (" satisfactory", 0.0424)]),
        (17, 2920, [(" thank", 0.9502), (" thanks", 0.0443)]),
        (22, 3769, [(" fit", 0.4612), (" free", 0.2552), ("legal", 0.1467)]),
    ],
)
def test_value_vectors_of_gpt2_medium_say_what_was_published(layer, neuron, top):
    # Geva et al. 2022, Toxicity-Suppression notebook. The convention there is neither folded nor
    # raw: ln_f with gain and bias is applied to the lone value, then softmax.
    model = cached("gpt2-medium")
    with torch.no_grad():
        decoded = unembed.decode(model, model.W_out(layer)[neuron][None], len(top))
    tokens = [model.vocabulary.show(int(i)) for i in decoded.top_ids[0]]
    assert tokens == [token for token, _ in top]
    np.testing.assert_allclose(
        decoded.top_logprobs[0].exp().numpy(), [p for _, p in top], atol=1e-3
    )


@pytest.mark.parametrize(
    ("target", "layer", "neuron", "share"),
    [(" Mary", 11, 611, 0.3188), (" John", 11, 621, -0.4359), (" the", 10, 2214, 0.4369)],
)
def test_top_neurons_of_the_two_names_prompt_are_those_published(target, layer, neuron, share):
    # TransformerLens, Direct_Logit_Attribution demo: its logits are centred over the vocabulary.
    model = cached("gpt2")
    prompt = "When John and Mary went to the shops, John gave the bag to"
    recording = resid.record(model, prompt, bos=True, logits=False)
    memory = resid.mlp_memory(model, recording, target=target, positions=[-1], neurons=1, top=1)
    at = int(np.abs(memory.target_logit).argmax())
    assert (memory.layer[at], memory.neuron[at]) == (layer, neuron)
    value = model.W_out(layer)[neuron]
    scale = model.ln_final_scale(recording["11.post"][-1])
    mean = (value - value.mean()) * model.ln_final_gain @ model.W_U.mean(1) / scale
    centred = memory.target_logit[at] - memory.coefficient[at] * float(mean)
    assert centred == pytest.approx(share, abs=2e-3)


def test_the_an_neuron_of_gpt2_large_speaks_for_an():
    # Miller & Neo 2023: L31N892's output weights are most congruent with " an", and it with them.
    model = cached("gpt2-large")
    found = resid.find_neurons(model, " an", neurons=1)
    assert (int(found.promotes.layer[0]), int(found.promotes.neuron[0])) == (31, 892)
    assert resid.neuron_card(model, "L31N892", top=1).promoted.tokens[0, 0] == " an"
