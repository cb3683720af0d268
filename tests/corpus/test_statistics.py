import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resid.corpus.statistics import RESOLUTION, DocumentSums, ExactSums, LogHistogram
from resid.errors import ResidError

NUMBERS = st.floats(-1e20, 1e20).filter(lambda x: x == 0 or abs(x) > 1e-12)


@given(st.lists(NUMBERS, min_size=1, max_size=30), st.randoms())
def test_sums_are_exact_in_any_order(numbers, generator):
    sums = ExactSums(())
    sums.add(np.array(numbers))
    assert sums.exact()[()] == sum(map(Fraction, numbers))
    shuffled = list(numbers)
    generator.shuffle(shuffled)
    others = [ExactSums(()), ExactSums(())]
    for i, number in enumerate(shuffled):
        others[i % 2].add(np.array([number]))
    others[0].digits += others[1].digits
    assert np.array_equal(others[0].digits, sums.digits)


def test_the_largest_sums_of_a_document_are_exact_and_larger_ones_refused():
    sums = DocumentSums(1)
    sums.add(np.array([3, 4]), np.array([[2.0**64, -(2.0**64)]]))
    sums.close()
    assert sums.sums.exact()[:, 0].tolist() == [0, 2 * Fraction(2**128), 0]
    sums.add(np.array([5]), np.array([[1.5e19]]))
    with pytest.raises(ResidError, match=r"the numbers of document 5 add up to 2.5e\+19"):
        sums.add(np.array([5]), np.array([[1e19]]))


@pytest.mark.parametrize("row", [[1.0, 1e20], [0.5, 1.0], [1.0, math.nan]])
def test_open_sums_that_no_text_gives_are_refused(row):
    sums = DocumentSums(1)
    sums.add(np.array([0]), np.array([[1.0]]))
    arrays = sums.arrays()
    DocumentSums(1).add_arrays(arrays)
    with pytest.raises(ValueError, match="sums that no text gives"):
        DocumentSums(1).add_arrays(arrays | {"open_sums": np.array([row])})


def tokens(seed=0, documents=9, width=3):
    generator = np.random.default_rng(seed)
    document = generator.integers(0, documents, 200)
    level = generator.normal(size=documents)[document]
    return document, level + generator.normal(size=(width, 200))


def test_the_standard_error_is_that_of_a_ratio_by_document():
    document, values = tokens()
    sums = DocumentSums(3)
    sums.add(document, values)
    sums.close()
    n = np.bincount(document)
    for i, row in enumerate(values):
        s = np.bincount(document, weights=row)
        ratio = s.sum() / n.sum()
        residuals = s - ratio * n
        expected = math.sqrt(9 / 8 * (residuals**2).sum()) / n.sum()
        assert sums.mean()[i] == pytest.approx(row.mean(), rel=1e-14)
        assert sums.standard_error()[i] == pytest.approx(expected, rel=1e-12)
        # Tokens of a document resemble each other: as if independent, it would be far too small.
        assert expected > 2 * row.std() / math.sqrt(200)


def test_documents_merge_to_the_last_bit():
    document, values = tokens()
    whole, parts = DocumentSums(3), [DocumentSums(3), DocumentSums(3)]
    whole.add(document, values)
    for i, part in enumerate(parts):
        mine = document % 2 == i
        part.add(document[mine], values[:, mine])
        part.close()
    whole.close()
    parts[1].add_arrays(parts[0].arrays())
    for name, array in whole.arrays().items():
        assert np.array_equal(parts[1].arrays()[name], array), name


def test_an_unfinished_document_goes_on_where_it_was_saved():
    document, values = tokens()
    whole, first, second = DocumentSums(3), DocumentSums(3), DocumentSums(3)
    for sums in (whole, first):
        sums.add(document[:120], values[:, :120])
    second.add_arrays(first.arrays())
    for sums in (whole, second):
        sums.add(document[120:], values[:, 120:])
        sums.close()
    assert whole.documents == second.documents == 9
    assert np.array_equal(whole.sums.digits, second.sums.digits)


def test_without_documents_there_is_no_number():
    sums = DocumentSums(2)
    sums.close()
    assert np.isnan(sums.mean()).all()
    sums.add(np.array([4, 4]), np.ones((2, 2)))
    sums.close()
    assert sums.mean().tolist() == [1, 1]
    assert np.isnan(sums.standard_error()).all()


def test_quantiles_are_right_to_a_bin():
    generator = np.random.default_rng(3)
    values = np.exp(generator.normal(size=(2, 5001)) * 2)
    histogram = LogHistogram(2)
    histogram.add(values[:, :1000])
    histogram.add(values[:, 1000:])
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    expected = np.quantile(values, shares, axis=1).T
    assert np.abs(np.log(histogram.quantiles(shares) / expected)).max() < 1.5 * RESOLUTION
    assert RESOLUTION < 0.011


def test_quantiles_of_nothing_and_of_zeros():
    histogram = LogHistogram(1)
    assert np.isnan(histogram.quantiles((0.5,))).all()
    histogram.add(np.zeros((1, 3)))
    assert histogram.quantiles((0.5,))[0, 0] < 1e-6
