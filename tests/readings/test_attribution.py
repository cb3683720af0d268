import json

import numpy as np
import pytest
import torch

import resid
from resid.readings.attribution import attributions

from ..conftest import D_VOCAB, IDS, N_HEADS, N_LAYERS, tiny_hf
from ..oracle import Oracle, log_softmax

TARGET, FOIL = 7, 290


@pytest.fixture(scope="module")
def recording(tiny):
    return resid.record(tiny, IDS)


@pytest.fixture(scope="module")
def oracle(tiny):
    return Oracle(tiny.hf, IDS)


def stream_names():
    return ["embed"] + [f"{layer}.{kind}" for layer in range(N_LAYERS) for kind in ("mid", "post")]


def frozen(oracle, at):
    """The function that gives a vector's share of the target's logit, by the definition."""
    last = oracle.at[f"{N_LAYERS - 1}.post"][at]
    scale = np.sqrt(last.var() + oracle.eps)
    gain = oracle.weights["ln_f.weight"]
    return lambda vector: ((vector - vector.mean()) / scale * gain) @ oracle.W_U[:, TARGET]


@pytest.mark.parametrize("at", [0, 3, 6])
def test_waterfall_equals_the_oracle_at_every_point(tiny, recording, oracle, at):
    found = resid.attribution(tiny, recording, target=TARGET, position=at)
    expected = [log_softmax(oracle.decode(oracle.at[n][at]))[TARGET] for n in stream_names()]
    assert list(found.points) == stream_names()
    np.testing.assert_allclose(found.logprob, expected, atol=1e-4)
    np.testing.assert_allclose(np.cumsum(found.delta), expected, atol=1e-4)


@pytest.mark.parametrize("at", [0, 3, 6])
def test_components_equal_the_oracle(tiny, recording, oracle, at):
    found = resid.attribution(tiny, recording, target=TARGET, position=at)
    share = frozen(oracle, at)
    expected = {
        "token": share(oracle.weights["wte.weight"][IDS[at]]),
        "position": share(oracle.weights["wpe.weight"][at]),
    }
    for layer in range(N_LAYERS):
        expected[f"{layer}.attn"] = share(oracle.at[f"{layer}.attn_out"][at])
        expected[f"{layer}.mlp"] = share(oracle.at[f"{layer}.mlp_out"][at])
    expected["ln_final_bias"] = oracle.weights["ln_f.bias"] @ oracle.W_U[:, TARGET]
    assert list(found.components) == list(expected)
    np.testing.assert_allclose(found.direct, list(expected.values()), atol=1e-4)
    assert found.logit == pytest.approx(oracle.logits[at, TARGET], abs=1e-4)
    assert abs(found.remainder) < 1e-4


def test_heads_and_their_bias_make_the_attention_output(tiny, recording):
    whole = resid.attribution(tiny, recording, target=TARGET)
    split = resid.attribution(tiny, recording, target=TARGET, heads=True)
    shares = dict(zip(split.components, split.direct, strict=True))
    for layer in range(N_LAYERS):
        parts = [shares[f"L{layer}H{head}"] for head in range(N_HEADS)]
        together = sum(parts) + shares[f"{layer}.attn_bias"]
        expected = whole.direct[whole.components.index(f"{layer}.attn")]
        assert together == pytest.approx(expected, abs=1e-5)


def test_one_head_equals_the_oracle(tiny, recording, oracle):
    found = resid.attribution(tiny, recording, target=TARGET, heads=True, position=4)
    width = 16 // N_HEADS
    rows = slice(width, 2 * width)
    written = oracle.at["1.z"][4, rows] @ oracle.weights["h.1.attn.c_proj.weight"][rows]
    share = found.direct[found.components.index("L1H1")]
    assert share == pytest.approx(frozen(oracle, 4)(written), abs=1e-4)


def test_with_a_foil_everything_is_a_difference(tiny, recording):
    target = resid.attribution(tiny, recording, target=TARGET)
    foil = resid.attribution(tiny, recording, target=FOIL)
    both = resid.attribution(tiny, recording, target=TARGET, foil=FOIL)
    np.testing.assert_allclose(both.direct, target.direct - foil.direct, atol=1e-4)
    np.testing.assert_allclose(both.logprob, target.logprob - foil.logprob, atol=1e-4)
    assert both.logit == pytest.approx(target.logit - foil.logit, abs=1e-5)


def test_neurons_and_bias_make_the_mlp_output(tiny, recording, oracle):
    found = resid.attribution(tiny, recording, target=TARGET, neurons=24, position=2)
    for layer in range(N_LAYERS):
        shares = found.neurons.score[found.neurons.layer == layer]
        assert len(shares) == 24
        bias = frozen(oracle, 2)(oracle.weights[f"h.{layer}.mlp.c_proj.bias"])
        expected = found.direct[found.components.index(f"{layer}.mlp")]
        assert shares.sum() + bias == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"tie_word_embeddings": False},
        {"scale_attn_by_inverse_layer_idx": True},
        {"activation_function": "relu", "n_inner": 16},
    ],
)
def test_the_sums_close_on_other_models(changes):
    model = resid.load(tiny_hf(**changes))
    found = resid.attribution(model, resid.record(model, IDS), target=TARGET, heads=True)
    assert found.failures == ()
    assert max(check.error for check in found.checks) < 1e-4


@pytest.mark.parametrize("foil", [None, FOIL])
def test_many_positions_at_once_equal_each_alone(tiny, foil):
    recording = resid.record(tiny, IDS, points="all,attn_out,mlp_out,z,mlp_post")
    targets = {-2: TARGET, 1: 120, 3: FOIL - 1}
    found = attributions(tiny, recording, targets=targets, foil=foil, heads=True, neurons=2)
    for one, (at, target) in zip(found, [(1, 120), (3, FOIL - 1), (5, TARGET)], strict=True):
        alone = resid.attribution(
            tiny, recording, target=target, foil=foil, position=at, heads=True, neurons=2
        )
        assert (one.position, one.target_id, one.foil_id) == (at, target, foil)
        assert one.components == alone.components
        np.testing.assert_allclose(one.direct, alone.direct, atol=1e-5)
        np.testing.assert_allclose(one.logprob, alone.logprob, atol=1e-5)
        assert one.logit == pytest.approx(alone.logit, abs=1e-5)
        np.testing.assert_array_equal(one.neurons.neuron, alone.neurons.neuron)
        assert all(check.passed for check in one.checks)


def test_a_bias_of_the_head_is_a_component():
    hf = tiny_hf(tie_word_embeddings=False)
    hf.lm_head.bias = torch.nn.Parameter(torch.linspace(-3, 3, D_VOCAB))
    model = resid.load(hf)
    found = resid.attribution(model, resid.record(model, IDS), target=TARGET)
    assert found.components[-1] == "b_U"
    assert found.failures == ()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_within_its_own_tolerance(dtype):
    model = resid.load(tiny_hf().to(dtype))
    found = resid.attribution(model, resid.record(model, IDS), target=TARGET, heads=True)
    assert found.failures == ()


def failures(model, recording):
    found = resid.attribution(model, recording, target=TARGET)
    return {check.name: check.where for check in found.failures}


def test_a_forgotten_bias_of_ln_final_is_caught(fresh):
    recording = resid.record(fresh, IDS)
    with torch.no_grad():
        fresh.hf.transformer.ln_f.bias.zero_()
    assert failures(fresh, recording)["direct_closes"] == "the logit at position 6"
    assert failures(fresh, recording)["waterfall_telescopes"] == "2.post at position 6"


def test_a_write_taken_from_another_layer_is_caught(fresh):
    recording = resid.record(fresh, IDS)
    recording.activations["1.mlp_out"] = recording.activations["0.mlp_out"]
    assert set(failures(fresh, recording)) == {"direct_closes"}


def test_a_point_that_is_off_by_one_is_caught(fresh):
    recording = resid.record(fresh, IDS)
    recording.activations["2.post"] = recording.activations["1.post"]
    assert "waterfall_telescopes" in failures(fresh, recording)


def test_json_has_the_keys_of_the_format(tiny, recording):
    found = json.loads(resid.attribution(tiny, recording, target=TARGET).to_json())
    assert found["analysis"] == "attribution"
    assert {"waterfall", "direct", "logit", "remainder"} <= set(found["data"])
    assert set(found["data"]["waterfall"][0]) == {"point", "logprob", "delta"}
    assert set(found["data"]["direct"][0]) == {"component", "logit"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "zz"}, "the target .* is 2 tokens"),
        ({"target": 300}, "the target is id 300"),
        ({"target": 7, "foil": 300}, "the foil is id 300"),
        ({"target": 7, "position": 7}, "there is no position 7"),
        ({"target": 7, "neurons": -1}, "neurons is -1"),
    ],
)
def test_bad_arguments_are_named(tiny, recording, options, message):
    with pytest.raises(resid.ResidError, match=message):
        resid.attribution(tiny, recording, **options)
