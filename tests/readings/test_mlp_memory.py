import json

import numpy as np
import pytest
import torch

import resid
from resid import projection
from resid.results.memory import ORDERS

from ..conftest import D_MLP, IDS, N_LAYERS, tiny_hf
from ..oracle import Oracle


@pytest.fixture(scope="module")
def recording(tiny):
    return resid.record(tiny, IDS)


@pytest.fixture(scope="module")
def oracle(tiny):
    return Oracle(tiny.hf, IDS)


def every_neuron(model, recording, **options):
    return resid.mlp_memory(model, recording, neurons=D_MLP, top=3, **options)


def test_every_neuron_is_listed_once_for_each_position(tiny, recording):
    memory = every_neuron(tiny, recording)
    listed = set(zip(memory.pos, memory.layer, memory.neuron, strict=True))
    assert len(memory.layer) == len(listed) == len(IDS) * N_LAYERS * D_MLP


def test_scores_and_coefficients_equal_the_oracle(tiny, recording, oracle):
    memory = every_neuron(tiny, recording)
    for i in range(len(memory.layer)):
        layer, neuron, pos = memory.layer[i], memory.neuron[i], memory.pos[i]
        pre = oracle.at[f"{layer}.mlp_pre"][pos, neuron]
        post = oracle.at[f"{layer}.mlp_post"][pos, neuron]
        value = oracle.weights[f"h.{layer}.mlp.c_proj.weight"][neuron]
        assert memory.pre_activation[i] == pytest.approx(pre, abs=1e-4)
        assert memory.coefficient[i] == pytest.approx(post, abs=1e-4)
        assert memory.value_norm[i] == pytest.approx(np.linalg.norm(value), rel=1e-5)
        assert memory.write_norm[i] == pytest.approx(np.linalg.norm(post * value), abs=1e-4)


def test_active_fraction_and_mlp_out_norm_equal_the_oracle(tiny, recording, oracle):
    memory = resid.mlp_memory(tiny, recording)
    for layer in range(N_LAYERS):
        active = (oracle.at[f"{layer}.mlp_post"] > 0).mean(1)
        np.testing.assert_allclose(memory.active[layer], active, atol=1e-6)
        norms = np.linalg.norm(oracle.at[f"{layer}.mlp_out"], axis=1)
        np.testing.assert_allclose(memory.mlp_out_l2[layer], norms, rtol=1e-4)


@pytest.mark.parametrize("order", ORDERS)
def test_neurons_come_in_the_order_asked_for(tiny, recording, order):
    memory = resid.mlp_memory(tiny, recording, target="id:7", neurons=4, order=order)
    by = {
        "write": memory.write_norm,
        "coefficient": memory.coefficient,
        "target": np.abs(memory.target_logit),
    }[order].reshape(len(IDS), N_LAYERS, 4)
    assert (np.diff(by, axis=2) <= 1e-6).all()


def test_the_neurons_listed_are_the_strongest(tiny, recording):
    every = every_neuron(tiny, recording).write_norm.reshape(len(IDS), N_LAYERS, D_MLP)
    few = resid.mlp_memory(tiny, recording, neurons=2).write_norm.reshape(len(IDS), N_LAYERS, 2)
    np.testing.assert_allclose(few, every[:, :, :2])


@pytest.mark.parametrize("projection", ["folded", "raw"])
def test_promoted_and_suppressed_equal_the_oracle(tiny, recording, oracle, projection):
    memory = resid.mlp_memory(tiny, recording, neurons=2, top=4, projection=projection)
    assert memory.projection == projection
    for i in range(len(memory.layer)):
        value = oracle.weights[f"h.{memory.layer[i]}.mlp.c_proj.weight"][memory.neuron[i]]
        if projection == "folded":
            value = (value - value.mean()) * oracle.weights["ln_f.weight"]
        scores = value @ oracle.W_U
        order = np.argsort(-scores, kind="stable")
        assert memory.promoted.ids[i].tolist() == order[:4].tolist()
        assert memory.suppressed.ids[i].tolist() == order[::-1][:4].tolist()
        np.testing.assert_allclose(memory.promoted.scores[i], scores[order[:4]], atol=1e-4)
        np.testing.assert_allclose(memory.suppressed.scores[i], scores[order[::-1][:4]], atol=1e-4)


def test_a_neuron_meets_the_vocabulary_once_however_often_it_is_listed(
    tiny, recording, monkeypatch
):
    right, asked = projection.extremes, []

    def extremes(model, vectors, *rest):
        asked.append(vectors)
        return right(model, vectors, *rest)

    monkeypatch.setattr(projection, "extremes", extremes)
    memory = resid.mlp_memory(tiny, recording, neurons=5)
    listed = [*zip(memory.layer.tolist(), memory.neuron.tolist(), strict=True)]
    (values,) = asked
    assert len(values) == len(set(listed)) < len(listed)
    alone = right(tiny, torch.stack([tiny.W_out(layer)[n] for layer, n in listed]), 5, "folded")
    for side, expected in zip((memory.promoted, memory.suppressed), alone, strict=True):
        np.testing.assert_array_equal(side.ids, expected.ids)
        # A product of fewer rows may be summed in another order.
        np.testing.assert_allclose(side.scores, expected.scores, rtol=1e-5)


def test_shares_of_the_target_close_to_its_logit(tiny, recording, oracle):
    """Neurons, attention, biases and embedding, through the frozen final LayerNorm, make the logit.

    Only the neurons' part comes from the reading; everything else is the oracle's.
    """
    target = 7
    memory = every_neuron(tiny, recording, target=target)
    last = oracle.at[f"{N_LAYERS - 1}.post"]
    scale = np.sqrt(last.var(-1) + oracle.eps)
    gain, bias = oracle.weights["ln_f.weight"], oracle.weights["ln_f.bias"]

    def direct(x):
        return ((x - x.mean(-1, keepdims=True)) * gain / scale[:, None]) @ oracle.W_U[:, target]

    rest = direct(oracle.at["embed"]) + bias @ oracle.W_U[:, target]
    for layer in range(N_LAYERS):
        rest = rest + direct(oracle.at[f"{layer}.attn_out"])
        rest = rest + direct(oracle.weights[f"h.{layer}.mlp.c_proj.bias"][None])
    neurons = np.zeros(len(IDS))
    np.add.at(neurons, memory.pos, memory.target_logit)
    np.testing.assert_allclose(neurons + rest, oracle.logits[:, target], atol=1e-3)


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_new"])
def test_neurons_add_up_whatever_the_activation(activation):
    model = resid.load(tiny_hf(activation_function=activation))
    memory = resid.mlp_memory(model, resid.record(model, IDS))
    check, _ = memory.checks
    assert check.name == "neurons_add_up" and check.passed and check.error < 1e-5
    if activation == "relu":
        assert memory.coefficient.min() >= 0


def test_neurons_add_up_when_keys_and_values_are_square(tiny):
    model = resid.load(tiny_hf(n_inner=16))
    assert resid.mlp_memory(model, resid.record(model, IDS)).checks[0].passed


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_neurons_add_up_in_half_precision(dtype):
    model = resid.load(tiny_hf().to(dtype))
    memory = resid.mlp_memory(model, resid.record(model, IDS))
    assert memory.checks[0].passed
    assert memory.checks[0].tolerance < 0.05


def test_transposed_values_are_caught_with_their_layer(fresh):
    recording = resid.record(fresh, IDS)
    square = resid.load(tiny_hf(n_inner=16))
    recording = resid.record(square, IDS)
    weight = square.hf.transformer.h[1].mlp.c_proj.weight
    with torch.no_grad():
        weight.copy_(weight.T.clone())
    (check,) = resid.mlp_memory(square, recording).failures
    assert check.name == "neurons_add_up"
    assert check.where.startswith("1.mlp_out at position ")


def test_a_forgotten_bias_is_caught(fresh):
    recording = resid.record(fresh, IDS)
    with torch.no_grad():
        fresh.hf.transformer.h[2].mlp.c_proj.bias.zero_()
    (check,) = resid.mlp_memory(fresh, recording).failures
    assert check.where.startswith("2.mlp_out")


def test_positions_select_and_negative_ones_count_from_the_end(tiny, recording):
    every = resid.mlp_memory(tiny, recording, neurons=2)
    last = resid.mlp_memory(tiny, recording, neurons=2, positions=[-1])
    assert last.positions == (len(IDS) - 1,)
    np.testing.assert_array_equal(last.neuron, every.neuron[every.pos == len(IDS) - 1])


def test_json_has_the_keys_of_the_format(tiny, recording):
    found = json.loads(resid.mlp_memory(tiny, recording, target=7, positions=[2]).to_json())
    assert found["analysis"] == "mlp_memory"
    assert {"projection", "neurons"} <= set(found["data"])
    assert set(found["data"]["neurons"][0]) == {
        "layer",
        "neuron",
        "pos",
        "pre_activation",
        "coefficient",
        "value_norm",
        "write_norm",
        "promoted",
        "suppressed",
        "target_logit",
    }
    assert set(found["data"]["neurons"][0]["promoted"][0]) == {"id", "token", "score"}


def test_csv_has_a_row_for_every_neuron(tiny, recording):
    memory = resid.mlp_memory(tiny, recording, top=2)
    lines = memory.to_csv().splitlines()
    assert len(lines) == 1 + len(memory.layer)
    assert lines[0].startswith("layer,neuron,pos,pre_activation,coefficient,value_norm,write_norm")


def test_wrapped_values_are_refused_by_name(fresh):
    recording = resid.record(fresh, IDS)
    mlp = fresh.hf.transformer.h[1].mlp
    mlp.c_proj = torch.nn.Sequential(mlp.c_proj)
    with pytest.raises(resid.ResidError, match=r"1\.mlp\.c_proj is a Sequential"):
        resid.mlp_memory(fresh, recording)


def test_packed_values_are_refused_and_not_halved(fresh):
    recording = resid.record(fresh, IDS)
    weight = fresh.hf.transformer.h[0].mlp.c_proj.weight
    fresh.hf.transformer.h[0].mlp.c_proj.weight = torch.nn.Parameter(
        torch.zeros(weight.numel() // 2, 1, dtype=torch.uint8), requires_grad=False
    )
    with pytest.raises(resid.ResidError, match="packed"):
        resid.mlp_memory(fresh, recording)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": [7]}, "there is no position 7; the prompt has 0 to 6"),
        ({"projection": "both"}, "choose one of folded, raw"),
        ({"order": "target"}, "choose write, coefficient, or target with one"),
        ({"order": "size"}, "the order is 'size'"),
        ({"neurons": 0}, "at least 1"),
        ({"top": 301}, "top is 301"),
    ],
)
def test_bad_arguments_are_named(tiny, recording, options, message):
    with pytest.raises(resid.ResidError, match=message):
        resid.mlp_memory(tiny, recording, **options)
