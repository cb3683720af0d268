import pytest
import torch

from resid.corpus.memory import _count_true


@pytest.mark.parametrize("share", [0, 0.3, 1])
@pytest.mark.parametrize("shape", [(1, 1), (3, 13), (255, 8), (256, 2040), (300, 2049), (600, 5)])
def test_what_is_true_is_counted_exactly_whatever_the_size(shape, share):
    """Held against plain sums; a byte could run over at 255 rows, or at 255 times 8 columns."""
    fired = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < share
    by_row, by_column = _count_true(fired)
    assert torch.equal(by_row, fired.sum(1))
    assert torch.equal(by_column, fired.sum(0))
