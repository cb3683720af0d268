"""The last point's own prediction, and every other point's divergence from it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from resid import prediction, unembed
from tests import oracle
from tests.test_unembed import cases, identity


@given(cases())
def test_the_final_prediction_in_blocks_equals_the_whole_one(case):
    found = prediction.predict(case.model, case.rows, **case.blocks)
    log_p = oracle.log_softmax(case.logits)
    np.testing.assert_allclose(found.mean_unembedding, np.exp(log_p), atol=1e-5)
    np.testing.assert_allclose(found.negative_entropy, -oracle.entropy(log_p), atol=1e-4)
    np.testing.assert_allclose(found.largest_logit, np.abs(case.logits).max(), rtol=1e-6)
    if case.model.b_U is not None:
        expected = (np.exp(log_p) * case.model.b_U.numpy()).sum(1)
        np.testing.assert_allclose(found.mean_bias, expected, atol=1e-5 * case.size)


@given(cases(), st.integers(0, 2**32))
def test_divergence_in_blocks_equals_the_whole_one(case, seed):
    final = np.random.default_rng(seed).permuted(case.logits, axis=1)
    bias = 0 if case.model.b_U is None else case.model.b_U
    rows = torch.tensor(final, dtype=case.rows.dtype)
    predicted = prediction.predict(case.model, rows - bias, **case.blocks)
    decoded = unembed.decode(case.model, case.rows, 1, **case.blocks)
    rows_at_a_time = case.blocks["block_rows"]
    found = prediction.divergence(
        case.model, case.rows, decoded, predicted, block_rows=rows_at_a_time
    )
    expected = oracle.kl(oracle.log_softmax(final), oracle.log_softmax(case.logits))
    # A difference of terms of the logits' size, each with float32's rounding.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4 + 1e-6 * case.size)
    assert (found >= 0).all()


@given(cases())
def test_divergences_of_all_from_all_equal_those_row_by_row(case):
    final = prediction.predict(case.model, case.rows)
    decoded = unembed.decode(case.model, case.rows, 1)
    table = prediction.divergence_table(case.model, case.rows, decoded, final)
    assert table.shape == (len(case.rows),) * 2
    diagonal = prediction.divergence(case.model, case.rows, decoded, final)
    np.testing.assert_allclose(table.diagonal(), diagonal, atol=1e-9 * case.size)
    log_p = oracle.log_softmax(case.logits)
    expected = oracle.kl(log_p[None], log_p[:, None])
    # Of float32 averages: their error grows with the logits that they are multiplied by.
    np.testing.assert_allclose(table, expected, atol=1e-5 * case.size)


def test_divergence_pairs_every_point_with_its_position():
    model = identity(6)
    stream = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))
    rows = stream.flatten(0, 1)
    final = prediction.predict(model, stream[-1])
    found = prediction.divergence(model, rows, unembed.decode(model, rows, 1), final, block_rows=5)
    log_p = oracle.log_softmax(stream.double().numpy())
    np.testing.assert_allclose(found.view(3, 4), oracle.kl(log_p[-1], log_p), atol=1e-6)


def test_the_divergence_of_a_pair_made_by_hand_to_six_digits():
    model = identity(3)
    final, point = (torch.tensor([p]).log() for p in ([0.7, 0.2, 0.1], [0.2, 0.3, 0.5]))
    decoded = unembed.decode(model, point, 1)
    found = prediction.divergence(model, point, decoded, prediction.predict(model, final))
    # 0.7 ln(0.7/0.2) + 0.2 ln(0.2/0.3) + 0.1 ln(0.1/0.5); the other direction is 0.675806.
    assert float(found) == pytest.approx(0.634897, abs=1e-6)


def test_a_prediction_that_is_not_finite_leaves_its_neighbours_alone():
    rows = torch.randn(3, 150, generator=torch.Generator().manual_seed(0))
    model, broken = identity(150), rows.clone()
    broken[1, 5] = float("nan")
    expected, found = (prediction.predict(model, r, block_vocab=64) for r in (rows, broken))
    others = [0, 2]
    assert torch.equal(found.mean_unembedding[others], expected.mean_unembedding[others])
    assert torch.equal(found.negative_entropy[others], expected.negative_entropy[others])


def test_the_error_is_the_largest_and_has_its_position():
    rows = torch.randn(9, 150, generator=torch.Generator().manual_seed(0))
    reference = rows.clone()
    reference[1, 3] += 0.25
    reference[7, 149] -= 0.5
    found = prediction.predict(identity(150), rows, reference, block_rows=4, block_vocab=64)
    assert (found.error, found.error_at) == (0.5, 7)


@pytest.mark.parametrize(("nan_at", "large_at"), [(2, 8), (8, 2)])
def test_an_error_that_is_not_a_number_is_the_worst(nan_at, large_at):
    rows = torch.zeros(9, 150)
    reference = rows.clone()
    reference[nan_at, 149], reference[large_at, 3] = float("nan"), 100
    found = prediction.predict(identity(150), rows, reference, block_rows=4, block_vocab=64)
    assert np.isnan(found.error)
    assert found.error_at == nan_at


def test_no_reference_is_no_error():
    assert prediction.predict(identity(3), torch.zeros(1, 3)).error is None
