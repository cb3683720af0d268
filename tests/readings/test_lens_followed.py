"""Followed tokens: who is followed, and every probability against the oracle."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import resid
from resid import unembed
from resid.readings.lens_followed import follow_leaders
from resid.readings.logit_lens import logit_lens
from tests import oracle
from tests.conftest import D_VOCAB, IDS, N_LAYERS, tiny_hf
from tests.oracle import Oracle
from tests.readings.test_logit_lens import read, with_nan


def log_probs(hf, points, ids=IDS):
    """[point, pos, d_vocab] of the oracle."""
    truth = Oracle(hf, ids)
    return oracle.log_softmax(truth.decode(np.stack([truth.at[point] for point in points])))


@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": False}, {"n_layer": 1}], ids=str)
def test_every_probability_equals_the_oracle(changes):
    hf = tiny_hf(**changes)
    lens = read(resid.load(hf), points="all", follow=True)
    log_p = log_probs(hf, lens.points)
    followed = lens.followed
    assert len(followed.ids) > len(IDS)
    expected = log_p[:, followed.index, followed.ids]
    np.testing.assert_allclose(followed.logprob, expected, atol=1e-4)
    np.testing.assert_array_equal(
        followed.leads, log_p.argmax(2)[:, followed.index] == followed.ids
    )


def test_a_bias_in_the_head_is_followed():
    hf = tiny_hf(tie_word_embeddings=False)
    bias = torch.randn(D_VOCAB, generator=torch.Generator().manual_seed(1))
    hf.lm_head.bias = torch.nn.Parameter(bias)
    followed = read(resid.load(hf), top=D_VOCAB, follow=True).followed
    again = read(resid.load(hf), target=int(followed.ids[0])).target.logprob[:, 0]
    np.testing.assert_allclose(followed.logprob[:, 0], again, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_each_followed_token_leads_and_each_leader_is_followed(seed):
    lens = read(resid.load(tiny_hf(seed)), points="all", follow=True)
    assert lens.followed.leads.any(0).all()
    assert (lens.followed.leads.sum(1) == len(IDS)).all()
    for j in range(len(IDS)):
        found = lens.followed.ids[lens.followed.at(j)].tolist()
        assert found == list(dict.fromkeys(lens.top_ids[:, j, 0].tolist()))


def test_a_leaders_probability_is_the_one_in_its_cell(tiny):
    lens = read(tiny, top=1, points="all", follow=True)
    points, columns = np.nonzero(lens.followed.leads)
    cells = lens.top_probs[points, lens.followed.index[columns], 0]
    np.testing.assert_allclose(np.exp(lens.followed.logprob[points, columns]), cells, rtol=1e-5)


def test_followed_are_as_a_target_would_be(tiny):
    lens = read(tiny, follow=True)
    for i, token_id in enumerate(lens.followed.ids.tolist()[:6]):
        track = read(tiny, target=token_id).target
        expected = track.logprob[:, lens.followed.index[i]]
        np.testing.assert_allclose(lens.followed.logprob[:, i], expected, atol=1e-5)
        assert lens.followed.tokens[i] == track.token


def test_positions_and_points_are_those_chosen(tiny):
    whole = read(tiny, follow=True, points="all")
    part = read(tiny, follow=True, points=["1.mid", "2.post"], positions=[2, -1])
    assert part.followed.logprob.shape[0] == 2
    for j, position in enumerate(part.positions):
        chosen = part.followed.at(j)
        leaders = whole.top_ids[[whole.points.index(p) for p in part.points], position, 0]
        assert part.followed.ids[chosen].tolist() == list(dict.fromkeys(leaders.tolist()))


def test_points_that_are_not_finite_have_no_leader_and_no_probability():
    lens = read(with_nan(), follow=True)
    assert np.isnan(lens.followed.logprob[2:]).all()
    assert np.isfinite(lens.followed.logprob[:2]).all()
    assert not lens.followed.leads[2:].any()


def test_a_cell_without_a_top_token_has_no_probability_either(tiny):
    rows = resid.record(tiny, IDS).stream("post").flatten(0, 1)
    decoded = unembed.decode(tiny, rows, 1)
    top1 = decoded.top_ids.view(N_LAYERS + 1, len(IDS)).numpy().copy()
    top1[1] = -1
    followed = follow_leaders(tiny, rows, decoded, top1)
    assert np.isnan(followed.logprob[1]).all()
    assert np.isfinite(followed.logprob[[0, 2, 3]]).all()


def test_where_no_point_is_finite_nothing_is_followed():
    lens = read(with_nan(), points=[f"{N_LAYERS - 1}.post"], follow=True)
    assert len(lens.followed.ids) == 0
    assert json.loads(lens.to_json())["data"]["followed"] == [[]] * len(IDS)


def test_json_holds_a_list_for_every_position(tiny):
    lens = read(tiny, follow=True)
    followed = json.loads(lens.to_json())["data"]["followed"]
    assert len(followed) == len(IDS)
    assert sum(map(len, followed)) == len(lens.followed.ids)
    for tokens, j in zip(followed, range(len(IDS)), strict=True):
        assert [token["id"] for token in tokens] == lens.followed.ids[lens.followed.at(j)].tolist()
        for token in tokens:
            assert set(token) == {"id", "token", "logprob"}
            assert np.shape(token["logprob"]) == (N_LAYERS + 1,)


def test_without_the_option_there_is_none(tiny):
    lens = read(tiny)
    assert lens.followed is lens.baseline is None
    assert not {"followed", "baseline"} & set(json.loads(lens.to_json())["data"])


def test_following_changes_no_other_number(tiny):
    recorded = resid.record(tiny, IDS)
    plain = logit_lens(tiny, recorded)
    asked = logit_lens(tiny, recorded, follow=True, baseline=True)
    assert replace(asked, followed=None, baseline=None).to_json() == plain.to_json()


def test_arrays_that_do_not_fit_their_axes_are_refused(tiny):
    lens = read(tiny, follow=True)
    with pytest.raises(ValueError, match=r"followed\.logprob has 3 along 'point'"):
        replace(lens, followed=replace(lens.followed, logprob=lens.followed.logprob[1:]))
    with pytest.raises(ValueError, match="along 'followed'"):
        replace(lens, followed=replace(lens.followed, ids=lens.followed.ids[1:]))


def test_half_precision_is_followed_in_float32():
    lens = read(resid.load(tiny_hf().to(torch.bfloat16)), follow=True)
    points, columns = np.nonzero(lens.followed.leads)
    cells = lens.top_probs[points, lens.followed.index[columns], 0]
    np.testing.assert_allclose(np.exp(lens.followed.logprob[points, columns]), cells, rtol=1e-5)
