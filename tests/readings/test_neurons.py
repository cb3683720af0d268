import json

import numpy as np
import pytest

import resid

from ..conftest import D_MLP, D_VOCAB, N_LAYERS
from ..oracle import Oracle


@pytest.fixture(scope="module")
def weights(tiny):
    return Oracle(tiny.hf, [1]).weights


def folded(weights, values):
    return (values - values.mean(-1, keepdims=True)) * weights["ln_f.weight"]


@pytest.mark.parametrize("foil", [None, 9])
@pytest.mark.parametrize("projection", ["folded", "raw"])
def test_find_ranks_every_neuron_as_the_oracle_does(tiny, weights, projection, foil):
    found = resid.find_neurons(tiny, 7, foil=foil, neurons=N_LAYERS * D_MLP, projection=projection)
    assert found.searched == N_LAYERS * D_MLP
    W_U = weights["wte.weight"].T
    direction = W_U[:, 7] - (0 if foil is None else W_U[:, foil])
    values = np.stack([weights[f"h.{i}.mlp.c_proj.weight"] for i in range(N_LAYERS)])
    scores = (folded(weights, values) if projection == "folded" else values) @ direction
    order = np.argsort(-scores.ravel(), kind="stable")
    assert (found.promotes.layer * D_MLP + found.promotes.neuron).tolist() == order.tolist()
    np.testing.assert_allclose(found.promotes.score, scores.ravel()[order], atol=1e-4)
    np.testing.assert_allclose(found.suppresses.score, found.promotes.score[::-1], atol=1e-6)


def test_find_and_memory_agree_on_a_neuron(tiny):
    found = resid.find_neurons(tiny, 7, neurons=1)
    layer, neuron = int(found.promotes.layer[0]), int(found.promotes.neuron[0])
    card = resid.neuron_card(tiny, (layer, neuron), top=D_VOCAB)
    at = card.promoted.ids[0].tolist().index(7)
    assert card.promoted.scores[0, at] == pytest.approx(float(found.promotes.score[0]), abs=1e-5)


def test_card_equals_the_oracle(tiny, weights):
    card = resid.neuron_card(tiny, "L1N5", top=6)
    key = weights["h.1.mlp.c_fc.weight"][:, 5]
    value = weights["h.1.mlp.c_proj.weight"][5]
    bias = weights["h.1.mlp.c_fc.bias"][5]
    assert card.value_norm == pytest.approx(np.linalg.norm(value), rel=1e-5)
    assert card.key_norm == pytest.approx(np.linalg.norm(key), rel=1e-5)
    assert card.bias == pytest.approx(bias, rel=1e-5)
    read = key * weights["h.1.ln_2.weight"]
    cosine = read @ value / np.linalg.norm(read) / np.linalg.norm(value)
    assert card.cosine == pytest.approx(cosine, abs=1e-5)
    scores = folded(weights, value) @ weights["wte.weight"].T
    order = np.argsort(-scores)
    assert card.promoted.ids[0].tolist() == order[:6].tolist()
    assert card.suppressed.ids[0].tolist() == order[::-1][:6].tolist()


def test_driven_by_is_the_key_score_of_lone_embeddings(tiny, weights):
    card = resid.neuron_card(tiny, "L2N3", top=6)
    embeddings = weights["wte.weight"]
    centred = embeddings - embeddings.mean(1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    normed = normed * weights["h.2.ln_2.weight"] + weights["h.2.ln_2.bias"]
    scores = normed @ weights["h.2.mlp.c_fc.weight"][:, 3] + weights["h.2.mlp.c_fc.bias"][3]
    order = np.argsort(-scores)
    assert card.driven_by.ids[0].tolist() == order[:6].tolist()
    np.testing.assert_allclose(card.driven_by.scores[0], scores[order[:6]], atol=1e-4)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("L3N0", "there is no layer 3; .* has layers 0 to 2"),
        ("L0N24", "there is no neuron 24; layer 0 has 0 to 23"),
        ("L0", "write one as L9N652"),
        ("0.5", "write one as L9N652"),
    ],
)
def test_a_neuron_out_of_range_is_told_with_the_range(tiny, name, message):
    with pytest.raises(resid.ResidError, match=message):
        resid.neuron_card(tiny, name)


def test_find_refuses_a_token_of_several_pieces(tiny):
    with pytest.raises(resid.ResidError, match=r"is 2 tokens, not one"):
        resid.find_neurons(tiny, "zz")


def test_json_of_find_has_the_keys_of_the_format(tiny):
    data = json.loads(resid.find_neurons(tiny, 7, foil=9).to_json())["data"]
    assert {"token", "foil", "projection", "promotes", "suppresses"} <= set(data)
    assert set(data["token"]) == {"id", "token"}
    assert set(data["promotes"][0]) == {"layer", "neuron", "score"}


def test_json_of_a_card_has_the_keys_of_the_format(tiny):
    data = json.loads(resid.neuron_card(tiny, "L0N0").to_json())["data"]
    assert {
        "layer",
        "neuron",
        "projection",
        "value_norm",
        "key_norm",
        "promoted",
        "suppressed",
        "driven_by",
        "triggers",
    } <= set(data)
    assert data["triggers"] == []
    assert set(data["driven_by"][0]) == {"id", "token", "score"}
