"""Results: frozen, their axes checked when they are made, their failures found."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from resid.results import Check
from tests.render.samples import make_lens

PASSED, FAILED = Check("one", 0.0, 1e-5, True), Check("two", 1.0, 1e-5, False, "3.post")


def test_a_result_whose_arrays_disagree_cannot_be_made():
    lens = make_lens()
    expected = r"LogitLens\.kl_to_final has 4 along 'pos', LogitLens\.positions has 5"
    with pytest.raises(ValueError, match=expected):
        replace(lens, kl_to_final=lens.kl_to_final[:, :4])


def test_a_track_of_another_size_names_the_track():
    lens = make_lens(target=" Paris")
    short = replace(lens.target, rank=lens.target.rank[:-1])
    expected = r"LogitLens\.target\.rank has 12 along 'point', LogitLens\.points has 13"
    with pytest.raises(ValueError, match=expected):
        replace(lens, target=short)


def test_a_foil_takes_part_in_the_check():
    lens = make_lens(target=" Paris", foil=" a")
    with pytest.raises(ValueError, match=r"LogitLens\.foil\.logprob is \[point pos\]"):
        replace(lens, foil=replace(lens.foil, logprob=lens.foil.logprob[0]))


def test_transposed_axes_are_refused():
    lens = make_lens()
    with pytest.raises(ValueError, match="along 'point'"):
        replace(lens, entropy=lens.entropy.T)


def test_a_result_is_frozen():
    with pytest.raises(FrozenInstanceError):
        make_lens().entropy = np.zeros((13, 5))


def test_the_failures_are_the_checks_that_did_not_pass():
    lens = replace(make_lens(), checks=(PASSED, FAILED))
    assert lens.failures == (FAILED,)
    assert replace(lens, checks=(PASSED,)).failures == ()


def test_there_is_a_row_for_every_point_and_position_shallowest_first():
    lens = make_lens(target=" Paris", foil=" a")
    rows = list(lens.rows())
    assert [(row["point"], row["pos"]) for row in rows] == [
        (point, position) for point in lens.points for position in lens.positions
    ]
    assert len({tuple(row) for row in rows}) == 1
    assert rows[7]["foil_logprob"] == lens.foil.logprob[1, 2]


def test_the_input_token_of_a_row_is_that_of_its_position():
    lens = make_lens()
    narrow = replace(
        lens,
        positions=(1, 4),
        settled_at=lens.settled_at[:2],
        flips=lens.flips[:2],
        **{
            name: getattr(lens, name)[:, :2]
            for name in ("top_ids", "top_tokens", "top_probs", "entropy", "kl_to_final", "margin")
        },
    )
    assert [row["input_token"] for row in narrow.rows()][:2] == [" capital", " is"]
