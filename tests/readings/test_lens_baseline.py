"""The baseline: zero and random streams against the oracle, the same for the same seed."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import resid
from resid.model import Model
from tests import oracle
from tests.conftest import D_MODEL, D_VOCAB, IDS, tiny_hf
from tests.oracle import Oracle
from tests.readings.test_logit_lens import read, with_nan

DRAWS = 64


def truth(hf, rows):
    """Log-probabilities of the rows, and those that the model itself says."""
    known = Oracle(hf, IDS)
    return oracle.log_softmax(known.decode(rows)), oracle.log_softmax(known.logits)


def directions(seed, length=D_MODEL**0.5):
    drawn = torch.randn(DRAWS, D_MODEL, generator=torch.Generator().manual_seed(seed)).numpy()
    return length * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_the_zero_stream_equals_the_oracle(tiny):
    zero = read(tiny, baseline=True).baseline.zero
    (log_p,), final = truth(tiny.hf, np.zeros((1, D_MODEL)))
    np.testing.assert_array_equal(zero.top_ids, np.argsort(-log_p)[:5])
    np.testing.assert_allclose(zero.top_probs, -np.sort(-np.exp(log_p))[:5], atol=1e-6)
    assert zero.entropy == pytest.approx(oracle.entropy(log_p), abs=1e-5)
    np.testing.assert_allclose(zero.kl_to_final, oracle.kl(final, log_p), atol=1e-4)
    assert zero.top_tokens.tolist() == [tiny.vocabulary.show(int(i)) for i in zero.top_ids]


def test_the_zero_stream_is_the_bias_of_the_norm_alone(tiny):
    bias = tiny.hf.transformer.ln_f.bias.detach().double().numpy()
    log_p = oracle.log_softmax(bias @ Oracle(tiny.hf, IDS).W_U)
    assert read(tiny, baseline=True, top=1).baseline.zero.top_ids.tolist() == [log_p.argmax()]


@pytest.mark.parametrize("seed", [0, 7])
def test_random_streams_equal_the_oracle(tiny, seed):
    random = read(tiny, baseline=True, seed=seed).baseline.random
    log_p, final = truth(tiny.hf, directions(seed))
    entropy, kl = oracle.entropy(log_p), oracle.kl(final[None], log_p[:, None])
    band = [0.5, 0.025, 0.975]
    np.testing.assert_allclose(random.entropy, np.quantile(entropy, band), atol=1e-4)
    np.testing.assert_allclose(random.kl_to_final, np.quantile(kl, band, axis=0), atol=1e-4)
    assert (random.draws, random.seed) == (DRAWS, seed)


def test_the_length_of_a_direction_does_not_matter(tiny):
    """Up to the epsilon of the norm, which is 1e-5 beside a variance of 1."""
    short, _ = truth(tiny.hf, directions(0))
    long, _ = truth(tiny.hf, directions(0, length=100 * D_MODEL))
    np.testing.assert_allclose(oracle.entropy(short), oracle.entropy(long), atol=1e-3)


def test_the_same_seed_draws_the_same_and_leaves_the_global_generator_alone(tiny):
    state = torch.get_rng_state()
    first = read(tiny, baseline=True, seed=3)
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(99)
    assert read(tiny, baseline=True, seed=3).to_json() == first.to_json()
    other = read(tiny, baseline=True, seed=4).baseline.random
    assert not np.array_equal(other.entropy, first.baseline.random.entropy)


def test_the_band_holds_its_median(tiny):
    random = read(tiny, baseline=True).baseline.random
    for median, low, high in (random.entropy, random.kl_to_final):
        assert (np.asarray(low) < median).all()
        assert (np.asarray(median) < high).all()


def test_a_bias_in_the_head_is_read():
    hf = tiny_hf(tie_word_embeddings=False)
    bias = torch.randn(D_VOCAB, generator=torch.Generator().manual_seed(1))
    hf.lm_head.bias = torch.nn.Parameter(bias)
    zero = read(resid.load(hf), baseline=True).baseline.zero
    known = Oracle(hf, IDS)
    log_p = oracle.log_softmax(known.decode(np.zeros(D_MODEL)) + bias.numpy())
    final = oracle.log_softmax(known.logits + bias.numpy())
    np.testing.assert_allclose(zero.kl_to_final, oracle.kl(final, log_p), atol=1e-4)


def test_positions_are_those_chosen(tiny):
    whole = read(tiny, baseline=True).baseline
    part = read(tiny, baseline=True, positions=[1, 4]).baseline
    for name in ("zero", "random"):
        expected = getattr(whole, name).kl_to_final[..., [1, 4]]
        np.testing.assert_allclose(getattr(part, name).kl_to_final, expected, atol=1e-5)


def test_json_keys_and_shapes(tiny):
    baseline = json.loads(read(tiny, top=3, baseline=True).to_json())["data"]["baseline"]
    assert list(baseline) == ["zero", "random"]
    assert set(baseline["zero"]) == {
        *("top_ids", "top_tokens", "top_probs", "entropy", "kl_to_final")
    }
    assert [len(baseline["zero"][f"top_{what}"]) for what in ("ids", "tokens", "probs")] == [3] * 3
    assert isinstance(baseline["zero"]["entropy"], float)
    assert np.shape(baseline["zero"]["kl_to_final"]) == (len(IDS),)
    random = baseline["random"]
    assert set(random) == {"draws", "seed", "entropy", "kl_to_final"}
    for name, shape in (("entropy", ()), ("kl_to_final", (len(IDS),))):
        assert list(random[name]) == ["median", "low", "high"]
        assert {np.shape(values) for values in random[name].values()} == {shape}


def test_arrays_that_do_not_fit_their_axes_are_refused(tiny):
    lens = read(tiny, baseline=True)
    random = replace(lens.baseline.random, kl_to_final=lens.baseline.random.kl_to_final[:, 1:])
    with pytest.raises(ValueError, match="along 'pos'"):
        replace(lens, baseline=replace(lens.baseline, random=random))


def test_a_model_that_is_not_finite_has_no_divergence():
    lens = read(with_nan(), baseline=True)
    assert np.isnan(lens.baseline.zero.kl_to_final).all()
    assert np.isfinite(lens.baseline.zero.entropy)
    data = json.loads(lens.to_json())["data"]["baseline"]
    assert data["random"]["kl_to_final"]["median"] == [None] * len(IDS)


def test_an_unembedding_that_is_not_finite_says_nothing():
    hf = tiny_hf(tie_word_embeddings=False)
    with torch.no_grad():
        hf.lm_head.weight[3] = torch.nan
    zero = json.loads(read(resid.load(hf), baseline=True).to_json())["data"]["baseline"]["zero"]
    assert zero["top_ids"] == zero["top_tokens"] == zero["top_probs"] == [None] * 5
    assert zero["entropy"] is None


def test_a_norm_without_its_bias_is_seen_by_the_oracle(tiny, monkeypatch):
    whole, bias = Model.ln_final, tiny.hf.transformer.ln_f.bias.detach()
    monkeypatch.setattr(Model, "ln_final", lambda self, x: whole(self, x) - bias)
    zero = read(tiny, baseline=True).baseline.zero
    assert zero.entropy == pytest.approx(np.log(D_VOCAB), abs=1e-5)
