"""A few tokens: the same numbers as from the whole vocabulary."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from resid import unembed
from tests import oracle
from tests.test_unembed import cases, identity


@given(cases(), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**32))
def test_a_few_tokens_per_position_equal_the_full_softmax(case, n_points, block, seed):
    n_pos, width = case.rows.shape
    ids = np.random.default_rng(seed).integers(width, size=(n_pos, 3))
    rows = torch.cat([case.rows + i for i in range(n_points)])
    decoded = unembed.decode(case.model, rows, 1)
    found = unembed.logprobs_of(case.model, rows, decoded, torch.tensor(ids), block_positions=block)
    bias = 0 if case.model.b_U is None else case.model.b_U.numpy()
    log_p = oracle.log_softmax(rows.numpy().astype(float) + bias).reshape(n_points, n_pos, width)
    expected = log_p[:, np.arange(n_pos)[:, None], ids].reshape(-1, 3)
    np.testing.assert_allclose(found, expected, atol=1e-6 * case.size + 1e-5)
    assert (found <= 0).all()


def test_the_vocabulary_is_not_read_again():
    model, rows = identity(7), torch.arange(21.0).view(3, 7) / 10
    decoded = unembed.decode(model, rows, 1)
    model.W_U = torch.full((7, 7), torch.nan)
    model.W_U[:, 2] = torch.eye(7)[2]
    found = unembed.logprobs_of(model, rows, decoded, torch.full((3, 1), 2))
    expected = oracle.log_softmax(rows.double().numpy())[:, 2:3]
    np.testing.assert_allclose(found, expected, atol=1e-6)
