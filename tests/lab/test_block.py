"""The block from scratch against Hugging Face's, against numpy, and against bugs put into it."""

import json
import math

import numpy as np
import pytest
import torch

import resid
from resid.errors import ResidError
from resid.lab import block as scratch
from resid.lab import pretrained, rebuilt
from resid.lab.pretrained import rebuild
from resid.lab.rebuilt import rebuilt_block

from ..conftest import IDS, N_LAYERS, tiny_hf
from ..oracle import Oracle

VARIANTS = [
    {},
    {"activation_function": "gelu"},
    {"activation_function": "relu", "n_inner": 40},
    {"n_inner": None, "layer_norm_epsilon": 0.1},
    {"scale_attn_weights": False, "attn_implementation": "eager"},
    {"scale_attn_by_inverse_layer_idx": True, "attn_implementation": "eager"},
    {"reorder_and_upcast_attn": True, "attn_implementation": "eager"},
    {"n_layer": 1, "n_head": 1},
    {"tie_word_embeddings": False},
]


def failed(result):
    return {check.name for check in result.failures}


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_model_from_scratch_is_the_one_of_numpy(variant):
    hf = tiny_hf(**variant).double()
    oracle = Oracle(hf, IDS)
    ours = rebuild(resid.load(hf))
    with torch.no_grad():
        stream = ours.stream(torch.tensor(IDS))
        logits = ours(torch.tensor(IDS))
    points = ["embed", *(f"{layer}.post" for layer in range(hf.config.n_layer))]
    for point, x in zip(points, stream, strict=True):
        assert np.allclose(x, oracle.at[point], rtol=1e-10, atol=1e-10), point
    assert np.allclose(logits, oracle.logits, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_step_equals_hugging_face(variant):
    model = resid.load(tiny_hf(**variant))
    for layer in range(model.n_layers):
        result = rebuilt_block(model, IDS, layer)
        assert failed(result) == set()
        assert result.step_error < 1e-5
        assert result.stack_errors.max() < 1e-5
        assert result.logit_error < 1e-5
        compared = {s for s, e in zip(result.steps, result.step_errors, strict=True) if e == e}
        assert compared == {"z", "attn_out", "mid", "mlp_pre", "mlp_post", "mlp_out", "post"}


@pytest.mark.parametrize("name", sorted(pretrained.ACTIVATIONS))
def test_every_activation_is_that_of_transformers(name):
    from transformers.activations import ACT2FN

    x = torch.linspace(-9, 9, 2001, dtype=torch.float64)
    ours, theirs = pretrained.ACTIVATIONS[name](x), ACT2FN[name](x)
    # gelu_fast has sqrt(2 / pi) to ten digits only.
    assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_mini_on_a_real_prompt():
    model = resid.load("mini")
    result = rebuilt_block(model, "The capital of France is", 5)
    assert failed(result) == set()
    assert max(result.step_error, result.stack_errors.max(), result.logit_error) < 1e-5


def test_a_gpt2_small_of_random_weights():
    hf = random_gpt2_small()
    result = rebuilt_block(resid.load(hf), list(range(0, 5000, 250)), 11)
    assert failed(result) == set()
    assert result.shapes[0] == (20, 768)
    assert max(result.step_error, result.stack_errors.max(), result.logit_error) < 1e-5


def random_gpt2_small():
    """Its sizes, its initial spread, and gains and biases that are not one and zero."""
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("meta"):
        hf = GPT2LMHeadModel(GPT2Config())
    hf = hf.to_empty(device="cpu").eval()
    hf.tie_weights()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in hf.named_parameters():
            parameter.normal_(1.0 if ".ln" in name and "weight" in name else 0.0, 0.02)
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return hf


def test_shapes_go_in_and_come_out_alike(tiny):
    result = rebuilt_block(tiny, IDS, 1)
    shapes = dict(zip(result.steps, result.shapes, strict=True))
    assert shapes["x"] == shapes["mid"] == shapes["post"] == (7, 16)
    assert shapes["q"] == shapes["k"] == shapes["v"] == (2, 7, 8)
    assert shapes["scores"] == shapes["weights"] == (2, 7, 7)
    assert shapes["mlp_pre"] == shapes["mlp_post"] == (7, 24)


def test_without_attention_every_position_depends_on_itself_alone(tiny):
    result = rebuilt_block(tiny, IDS)
    assert result.replaced == 3
    assert result.moved == [3, 4, 5, 6]
    assert result.moved_alone == [3]
    assert "moves positions 3 to 6, without attention position 3 alone" in result.finding


def test_one_token_has_no_neighbours(tiny):
    result = rebuilt_block(tiny, [7])
    assert failed(result) == set()
    assert result.moved == result.moved_alone == [0]


def test_without_activation_the_mlp_is_affine_and_with_it_is_not(tiny):
    result = rebuilt_block(tiny, IDS)
    assert np.allclose(result.sample_linear, result.sample_affine, rtol=1e-4, atol=1e-5)
    assert not np.allclose(result.sample_own, result.sample_affine, rtol=1e-1)
    assert result.bend_linear < 1e-5 < 0.1 < result.bend


def test_a_model_that_is_linear_itself_bends_nowhere():
    result = rebuilt_block(resid.load(tiny_hf(activation_function="linear")), IDS)
    assert failed(result) == set()
    assert result.bend < 1e-5


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_other_number_formats(tiny_folder, dtype):
    result = rebuilt_block(resid.load(tiny_folder, dtype=dtype), IDS, 2)
    assert failed(result) == set()
    assert (result.step_error < 1e-12) == (dtype == "float64")


def test_an_unembedding_with_a_bias():
    hf = tiny_hf()
    hf.lm_head.bias = torch.nn.Parameter(torch.linspace(-9, 9, hf.config.vocab_size))
    assert failed(rebuilt_block(resid.load(hf), IDS)) == set()


def test_without_a_head_there_are_no_logits():
    model = resid.load(tiny_hf().transformer)
    result = rebuilt_block(model, IDS)
    assert failed(result) == set()
    assert result.logit_error is None
    assert "logits" not in result.finding
    assert json.loads(result.to_json())["data"]["logit_error"] is None


# A bug in a part, and the check that it must not pass.
def unbiased(self, x):
    deviation = torch.sqrt(x.var(-1, keepdim=True) + self.eps)
    return self.gain * (x - x.mean(-1, keepdim=True)) / deviation + self.bias


def without_mask(self, x, note=scratch.unnoted):
    q, k, v = (
        self._apart(x @ W + b)
        for W, b in ((self.W_Q, self.b_Q), (self.W_K, self.b_K), (self.W_V, self.b_V))
    )
    z = (q @ k.transpose(-1, -2) * self.scale).softmax(-1) @ v
    return z.transpose(0, 1).flatten(1) @ self.W_O + self.b_O


def post_norm(self, x, note=scratch.unnoted):
    mid = self.ln1(x + self.attention(x, note)) if self.attention is not None else self.ln1(x)
    return note("post", self.ln2(mid + self.mlp(note("ln2", mid), note)))


def mixing(self, x):
    return _norm(self, x) + x.mean(0)


_norm = scratch.LayerNorm.forward


@pytest.mark.parametrize(
    ("owner", "name", "bug", "checks"),
    [
        (scratch.LayerNorm, "forward", unbiased, {"block_equals_original", "stack_equals_logits"}),
        (scratch.CausalSelfAttention, "forward", without_mask, {"attention_is_causal"}),
        (scratch.Block, "forward", post_norm, {"block_equals_original", "stack_equals_stream"}),
        (scratch.LayerNorm, "forward", mixing, {"alone_without_attention", "attention_is_causal"}),
        (rebuilt, "linear", torch.tanh, {"linear_mlp_is_affine"}),
        (rebuilt, "activation_of", lambda model: pretrained.gelu_exact, {"block_equals_original"}),
        (pretrained, "activation_of", lambda model: torch.relu, {"stack_equals_logits"}),
    ],
)
def test_a_bug_is_found(fresh, monkeypatch, owner, name, bug, checks):
    monkeypatch.setattr(owner, name, bug)
    result = rebuilt_block(fresh, IDS, 1)
    assert checks <= failed(result)
    assert all(check.where for check in result.failures)


def test_what_is_not_finite_is_a_failure(fresh):
    with torch.no_grad():
        fresh.hf.transformer.h[1].mlp.c_proj.bias[2] = torch.inf
    result = rebuilt_block(fresh, IDS, 1)
    assert {"block_equals_original", "stack_equals_stream", "stack_equals_logits"} <= failed(result)
    document = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert document["checks"][0]["passed"] is False


def test_the_model_is_left_as_it_was(fresh):
    before = {name: value.clone() for name, value in fresh.hf.state_dict().items()}
    hooks = sum(len(module._forward_hooks) for module in fresh.hf.modules())
    rebuilt_block(fresh, IDS)
    after = fresh.hf.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert sum(len(module._forward_hooks) for module in fresh.hf.modules()) == hooks


def test_the_seed_decides_what_is_drawn(tiny):
    first, again, other = (rebuilt_block(tiny, IDS, seed=seed) for seed in (1, 1, 2))
    assert first.to_json() == again.to_json()
    assert first.replaced_by != other.replaced_by
    for seed in range(50):
        drawn = rebuilt._another(4, 5, seed)
        assert drawn in {0, 1, 2, 3}


@pytest.mark.parametrize("layer", [-1, N_LAYERS])
def test_a_layer_that_is_not_there(tiny, layer):
    with pytest.raises(ResidError, match=f"no layer {layer}; .* has 0 to 2"):
        rebuilt_block(tiny, IDS, layer)


def test_an_activation_that_is_not_written_out_is_refused_by_name():
    model = resid.load(tiny_hf(activation_function="mish"))
    with pytest.raises(ResidError, match="is mish\nthe lab has gelu_new"):
        rebuilt_block(model, IDS)


def test_rows_are_the_steps(tiny):
    rows = list(rebuilt_block(tiny, IDS).rows())
    assert [row["step"] for row in rows][:3] == ["x", "ln1", "q"]
    assert rows[0]["shape"] == "7x16"
    assert math.isnan(rows[0]["error"])
