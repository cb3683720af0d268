"""Unembedding: streamed over blocks, equal to the computation that keeps everything."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

import resid
from resid import prediction, unembed
from resid.errors import ResidError
from tests import oracle
from tests.conftest import IDS, tiny_hf


def identity(width, bias=None, dtype=torch.float32):
    """A stand-in for a model whose logits are the rows of the stream themselves, plus a bias."""
    return SimpleNamespace(
        name="identity",
        W_U=torch.eye(width, dtype=dtype),
        b_U=bias,
        ln_final=lambda stream: stream,
        d_vocab=width,
        d_model=width,
        dtype=dtype,
    )


@st.composite
def cases(draw):
    """Logits from a few levels, so that many are equal, and everything that must not matter."""
    n, width = draw(st.integers(1, 6)), draw(st.integers(1, 150))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = draw(st.sampled_from([1, 2, 5, 1000]))
    scale = draw(st.sampled_from([1.0, 1.0, 0.03125, 32.0, 2.0**100, 2.0**-100]))
    shift = draw(st.sampled_from([0, 0, 4096, -4096]))
    logits = (random.integers(-levels, levels + 1, (n, width)) + shift) * scale
    bias = (random.integers(-2, 3, width) * scale) if draw(st.booleans()) else None
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    return SimpleNamespace(
        rows=torch.tensor(logits, dtype=dtype),
        logits=logits if bias is None else logits + bias,
        model=identity(width, None if bias is None else torch.tensor(bias, dtype=dtype), dtype),
        top=draw(st.integers(1, width)),
        blocks={"block_rows": draw(st.integers(1, 7)), "block_vocab": draw(st.integers(1, 160))},
        tracked=draw(st.lists(st.integers(0, width - 1), max_size=3)),
        size=max(1.0, float(np.abs(logits).max())),
    )


@given(cases())
def test_decoding_in_blocks_equals_decoding_whole(case):
    found = unembed.decode(case.model, case.rows, case.top, case.tracked, **case.blocks)
    ids = np.argsort(-case.logits, axis=1, kind="stable")[:, : case.top]
    log_p = oracle.log_softmax(case.logits)
    tolerance = 1e-6 * case.size + 1e-5
    np.testing.assert_array_equal(found.top_ids, ids)
    expected = np.take_along_axis(log_p, ids, 1)
    np.testing.assert_allclose(found.top_logprobs, expected, atol=tolerance)
    np.testing.assert_allclose(found.tracked_logprobs, log_p[:, case.tracked], atol=tolerance)
    greater = case.logits[:, None, :] > case.logits[:, case.tracked, None]
    np.testing.assert_array_equal(found.tracked_ranks, 1 + greater.sum(2))
    np.testing.assert_allclose(found.entropy, oracle.entropy(log_p), atol=1e-4)
    assert found.finite.all()


@pytest.mark.parametrize("height", [0.0, 7.0, -1e30])
def test_the_entropy_of_equal_logits_is_the_logarithm_of_their_number(height):
    found = unembed.decode(identity(300), torch.full((2, 300), height), 1, block_vocab=64)
    np.testing.assert_allclose(found.entropy, np.log(300), atol=1e-5)


def test_the_entropy_of_certainty_is_zero_and_not_below():
    rows = torch.zeros(1, 300)
    rows[0, 7] = 1e4
    found = unembed.decode(identity(300), rows, 1, block_vocab=64)
    assert float(found.entropy) == 0
    assert not found.entropy.signbit().any()


def test_of_equal_logits_the_lower_ids_win_whatever_the_blocks():
    rows = torch.zeros(1, 1000)
    rows[0, [3, 500, 998]] = 1.0
    for block_vocab in (1, 7, 64, 499, 1000):
        found = unembed.decode(identity(1000), rows, 6, [998, 2], block_vocab=block_vocab)
        assert found.top_ids.tolist() == [[3, 500, 998, 0, 1, 2]]
        assert found.tracked_ranks.tolist() == [[1, 4]]


def test_a_top_of_the_whole_vocabulary_is_a_permutation():
    rows = torch.randn(2, 130, generator=torch.Generator().manual_seed(0))
    found = unembed.decode(identity(130), rows, 130, block_vocab=50)
    assert (found.top_ids.sort(1).values == torch.arange(130)).all()
    torch.testing.assert_close(found.top_logprobs.exp().sum(1), torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("column", [0, 70, 149])
def test_a_row_that_is_not_finite_is_flagged_and_leaves_its_neighbours_alone(bad, column):
    rows = torch.randn(5, 150, generator=torch.Generator().manual_seed(0))
    model = identity(150)
    expected = unembed.decode(model, rows, 3, [9], block_vocab=64)
    broken = rows.clone()
    broken[2, column] = bad
    found = unembed.decode(model, broken, 3, [9], block_vocab=64)
    assert found.finite.tolist() == [True, True, False, True, True]
    others = [0, 1, 3, 4]
    for name in ("top_ids", "top_logprobs", "entropy", "tracked_logprobs", "tracked_ranks"):
        assert torch.equal(getattr(found, name)[others], getattr(expected, name)[others]), name


def test_a_logit_of_minus_infinity_alone_is_flagged():
    bias = torch.zeros(150)
    bias[70] = -torch.inf
    assert not unembed.decode(identity(150, bias), torch.zeros(2, 150), 1).finite.any()


def test_blocks_change_nothing_on_a_real_model(tiny):
    rows = resid.record(tiny, IDS).stream("all").flatten(0, 1)
    whole = unembed.decode(tiny, rows, 5, [3])
    pieces = unembed.decode(tiny, rows, 5, [3], block_rows=4, block_vocab=37)
    assert torch.equal(whole.top_ids, pieces.top_ids)
    assert torch.equal(whole.tracked_ranks, pieces.tracked_ranks)
    torch.testing.assert_close(whole.entropy, pieces.entropy, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(whole.top_logprobs, pieces.top_logprobs, atol=1e-5, rtol=1e-5)


def test_half_precision_is_read_in_float32():
    hf = tiny_hf()
    rows = torch.randn(4, 16, generator=torch.Generator().manual_seed(0)).bfloat16()
    exact = unembed.decode(resid.load(hf.bfloat16().double()), rows.double(), 1)
    found = unembed.decode(resid.load(hf.bfloat16()), rows, 1)
    torch.testing.assert_close(found.logsumexp, exact.logsumexp, atol=1e-5, rtol=1e-5)


class Largest(TorchDispatchMode):
    """The number of elements of the largest tensor that any operation returned."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.numel())
        return out


@pytest.fixture
def wide():
    """A stand-in for a model with a large vocabulary."""
    model = identity(8)
    model.W_U = torch.randn(8, 20_000, generator=torch.Generator().manual_seed(0))
    model.d_vocab = 20_000
    return model


def test_no_tensor_of_rows_by_vocabulary_is_ever_made(wide):
    rows = torch.randn(3 * 200, 8, generator=torch.Generator().manual_seed(1))
    blocks = {"block_rows": 100, "block_vocab": 1000}
    with Largest() as seen:
        final = prediction.predict(wide, rows[-200:], **blocks)
        decoded = unembed.decode(wide, rows, 5, [1, 2], **blocks)
        prediction.divergence(wide, rows, decoded, final, block_rows=100)
    # A block of logits, its width rounded up to whole groups; and the weights themselves.
    assert seen.elements <= max(100 * 1024, wide.W_U.numel())


def test_the_blocks_are_small_by_default(wide):
    rows = torch.zeros(700, 8)
    with Largest() as seen:
        unembed.decode(wide, rows, 5)
    assert seen.elements <= unembed.BLOCK_ROWS * unembed.BLOCK_VOCAB < rows.shape[0] * wide.d_vocab


@pytest.mark.parametrize("top", [0, -1, 301])
def test_a_top_outside_of_the_vocabulary_is_refused(tiny, top):
    with pytest.raises(ResidError, match=f"top is {top}; the vocabulary has 300 tokens"):
        unembed.decode(tiny, torch.zeros(1, 16), top)


def test_a_stream_of_another_width_is_refused(tiny):
    with pytest.raises(ResidError, match=r"the stream is 15 wide; .* has d_model 16"):
        unembed.decode(tiny, torch.zeros(1, 15), 1)
    with pytest.raises(ResidError, match=r"the stream is 15 wide; .* has d_model 16"):
        prediction.predict(tiny, torch.zeros(1, 15))
