"""Which columns and rows of two reports stand side by side."""

from hypothesis import given
from hypothesis import strategies as st

from resid.render.html.alignment import align_points, align_positions

texts = st.lists(st.sampled_from("abc"), min_size=1, max_size=9)


def test_prompts_of_one_length_are_aligned_one_by_one():
    assert align_positions("abc", "xyz") == [(0, 0), (1, 1), (2, 2)]


def test_the_common_beginning_meets_from_the_start_and_the_rest_from_the_end():
    short = ["The", "capital", "of", "France", "is"]
    long = ["The", "capital", "of", "the", "United", "Kingdom", "is"]
    pairs = [(0, 0), (1, 1), (2, 2), (3, 5), (4, 6)]
    assert align_positions(short, long) == pairs
    assert align_positions(long, short) == [(b, a) for a, b in pairs]


@given(texts, texts)
def test_every_position_of_the_shorter_has_one_partner_in_order_and_the_ends_meet(a, b):
    pairs = align_positions(a, b)
    assert len(pairs) == min(len(a), len(b))
    for side in zip(*pairs, strict=True):
        assert list(side) == sorted(set(side))
    assert pairs[-1] == (len(a) - 1, len(b) - 1)


@given(st.integers(1, 60), st.integers(1, 60))
def test_points_meet_at_the_same_relative_depth(n, m):
    a, b = [str(i) for i in range(n)], [str(i) for i in range(m)]
    pairs = align_points(a, b)
    assert len(pairs) == (max(n, m) if min(n, m) > 1 else 1)
    assert pairs[-1] == (n - 1, m - 1)
    if min(n, m) > 1:
        assert pairs[0] == (0, 0)
        for i, j in pairs:
            assert abs(i / (n - 1) - j / (m - 1)) <= 0.5 / (min(n, m) - 1) + 1e-9


def test_models_of_one_depth_are_aligned_point_by_point():
    assert align_points("abc", "abc") == [(0, 0), (1, 1), (2, 2)]
