"""The models that race: the base is a GPT-2, the variants differ in what their names say."""

import dataclasses

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from resid.lab.race_models import initial_parameters, logits
from resid.lab.race_variants import ALL, Sizes, Variant, count_parameters, parse_variant

SIZES = Sizes(layers=3, d_model=16, n_heads=2, context=12, d_vocab=29)
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [28, 0, 7, 7, 11, 2, 19, 5]])


def drawn(variant, sizes=SIZES, seed=5):
    """Parameters that are random throughout: gains of 1 and biases of 0 would hide half of it."""
    generator = torch.Generator().manual_seed(seed)
    shapes = variant.shapes(sizes).items()
    return {name: 0.4 * torch.randn(shape, generator=generator) for name, shape in shapes}


def hugging_face(parameters, sizes):
    config = GPT2Config(
        n_layer=sizes.layers, n_head=sizes.n_heads, n_embd=sizes.d_model,
        n_positions=sizes.context, vocab_size=sizes.d_vocab, tie_word_embeddings=False,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    hf = GPT2LMHeadModel(config).eval()
    names = {
        "attn.norm.gain": "ln_1.weight", "attn.norm.bias": "ln_1.bias",
        "attn.W_QKV": "attn.c_attn.weight", "attn.b_QKV": "attn.c_attn.bias",
        "attn.W_O": "attn.c_proj.weight", "attn.b_O": "attn.c_proj.bias",
        "mlp.norm.gain": "ln_2.weight", "mlp.norm.bias": "ln_2.bias",
        "mlp.W_in": "mlp.c_fc.weight", "mlp.b_in": "mlp.c_fc.bias",
        "mlp.W_out": "mlp.c_proj.weight", "mlp.b_out": "mlp.c_proj.bias",
    }  # fmt: skip
    state = {
        "transformer.wte.weight": parameters["W_E"],
        "transformer.wpe.weight": parameters["W_pos"],
        "transformer.ln_f.weight": parameters["final.norm.gain"],
        "transformer.ln_f.bias": parameters["final.norm.bias"],
        "lm_head.weight": parameters["W_U"].T,
    }
    for layer in range(sizes.layers):
        for ours, theirs in names.items():
            state[f"transformer.h.{layer}.{theirs}"] = parameters[f"{layer}.{ours}"]
    missing, unexpected = hf.load_state_dict(state, strict=False)
    assert unexpected == []
    assert all("attn.bias" in name or "masked_bias" in name for name in missing)
    return hf


def test_the_base_is_a_gpt2():
    parameters = drawn(Variant())
    with torch.no_grad():
        ours = logits(parameters, Variant(), SIZES, IDS)
        theirs = hugging_face(parameters, SIZES)(IDS).logits
    # Float32 sums in another order.
    assert torch.allclose(ours, theirs, atol=2e-5)


def in_numpy(parameters, variant, ids):
    """One sequence once more, in float64 and without torch."""
    p = {name: value.double().numpy() for name, value in parameters.items()}

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return x * p[f"{name}.norm.gain"] + p[f"{name}.norm.bias"]

    def attention(x, name):
        n, d = x.shape
        q, k, v = np.split(x @ p[f"{name}.W_QKV"] + p[f"{name}.b_QKV"], 3, axis=-1)
        mixed, width = np.zeros_like(x), d // SIZES.n_heads
        for head in range(SIZES.n_heads):
            part = slice(head * width, (head + 1) * width)
            for i in range(n):
                scores = k[: i + 1, part] @ q[i, part] / np.sqrt(width)
                powers = np.exp(scores - scores.max())
                mixed[i, part] = powers / powers.sum() @ v[: i + 1, part]
        return mixed @ p[f"{name}.W_O"] + p[f"{name}.b_O"]

    def mlp(x, name):
        pre = x @ p[f"{name}.W_in"] + p[f"{name}.b_in"]
        if variant.activation == "gelu":
            post = pre / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (pre + 0.044715 * pre**3)))
        elif variant.activation == "relu":
            post = np.where(pre > 0, pre, 0)
        elif variant.activation == "swiglu":
            gate = x @ p[f"{name}.W_gate"] + p[f"{name}.b_gate"]
            post = gate / (1 + np.exp(-gate)) * pre
        else:
            post = pre
        return post @ p[f"{name}.W_out"] + p[f"{name}.b_out"]

    x = p["W_E"][ids] + p["W_pos"][: len(ids)]
    for layer in range(SIZES.layers):
        for part, sublayer in ((f"{layer}.attn", attention), (f"{layer}.mlp", mlp)):
            y = sublayer(norm(x, part) if variant.norm == "pre" else x, part)
            x = x + y if variant.residual else y
            x = norm(x, part) if variant.norm == "post" else x
    return (norm(x, "final") if variant.norm == "pre" else x) @ p["W_U"]


@pytest.mark.parametrize("name", [*ALL, "post-ln+swiglu", "no-residual+post-ln"])
def test_every_variant_equals_an_oracle(name):
    _, variant = parse_variant(name)
    parameters = {name: 0.6 * value for name, value in drawn(variant).items()}
    ours = logits(parameters, variant, SIZES, IDS)[0].double().numpy()
    oracle = in_numpy(parameters, variant, IDS[0].tolist())
    assert np.abs(oracle).max() > 1e-3
    assert np.allclose(ours, oracle, atol=1e-5 * max(1, np.abs(oracle).max()))


def test_variants_of_one_seed_begin_alike_where_their_shapes_agree():
    base = initial_parameters(Variant(), SIZES, seed=3)
    other = initial_parameters(Variant(residual=False, expansion=8), SIZES, seed=3)
    alike = [name for name in base if base[name].shape == other[name].shape]
    assert "0.attn.W_QKV" in alike
    assert "0.mlp.W_in" not in alike
    assert all(torch.equal(base[name], other[name]) for name in alike)
    another = initial_parameters(Variant(), SIZES, seed=4)
    assert not torch.equal(base["W_E"], another["W_E"])
    assert not torch.equal(base["0.attn.W_O"], base["1.attn.W_O"])


def test_matrices_keep_the_size_of_what_passes():
    sizes = dataclasses.replace(SIZES, d_model=128)
    weights = initial_parameters(Variant(), sizes, seed=0)
    for name in ("0.attn.W_O", "1.mlp.W_in", "1.mlp.W_out", "W_U"):
        scale = float(weights[name].detach().std() * weights[name].shape[0] ** 0.5)
        assert scale == pytest.approx(1, abs=0.05)


def test_parameters_are_those_of_the_formula():
    v, t, d, layers = SIZES.d_vocab, SIZES.context, SIZES.d_model, SIZES.layers
    base = 2 * v * d + t * d + layers * (12 * d * d + 13 * d) + 2 * d
    assert count_parameters(Variant(), SIZES) == base
    assert count_parameters(Variant(norm="none"), SIZES) == base - layers * 4 * d - 2 * d
    assert count_parameters(Variant(norm="post"), SIZES) == base - 2 * d
    assert count_parameters(Variant(expansion=2), SIZES) == base - layers * (4 * d * d + 2 * d)
    assert count_parameters(Variant(residual=False), SIZES) == base


@pytest.mark.parametrize("layers", [1, 4, 12])
@pytest.mark.parametrize("name", ["2x-equal", "8x-equal", "swiglu"])
def test_equal_parameters_are_equal(name, layers):
    sizes = Sizes(layers, 64, 2, 64, 50)
    _, variant = parse_variant(name)
    base = count_parameters(Variant(), sizes)
    assert count_parameters(variant, sizes) == pytest.approx(base, rel=0.01)
    d_model, d_mlp = variant.widths(sizes)
    assert d_model % sizes.n_heads == 0
    ratio = 8 / 3 if name == "swiglu" else int(name[0])
    assert d_mlp / d_model == pytest.approx(ratio, rel=0.06)
