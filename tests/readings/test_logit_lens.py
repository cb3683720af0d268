"""The logit lens: every cell against an oracle, and the checks against planted faults."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import resid
from resid.errors import ResidError
from resid.model import Model
from resid.readings.logit_lens import _decisions, logit_lens
from resid.recording import Recording
from tests import oracle
from tests.conftest import D_MODEL, D_VOCAB, IDS, N_LAYERS, tiny_hf
from tests.oracle import Oracle

LAST = f"{N_LAYERS - 1}.post"
TARGET, FOIL = 7, 290


def read(model, ids=IDS, **options):
    return logit_lens(model, resid.record(model, ids), **options)


def assert_equals_the_oracle(lens, hf, ids=IDS, atol=1e-4):
    """Every cell: float32 against float64, whose difference was measured at 3e-6."""
    truth = Oracle(hf, ids)
    at = list(lens.positions)
    stream = np.stack([truth.at[point] for point in lens.points])[:, at]
    log_p = oracle.log_softmax(truth.decode(stream))
    final = oracle.log_softmax(truth.logits)[at]
    k = lens.top_ids.shape[2]
    np.testing.assert_array_equal(lens.top_ids, np.argsort(-log_p, axis=2)[:, :, :k])
    np.testing.assert_allclose(lens.top_probs, -np.sort(-np.exp(log_p))[:, :, :k], atol=atol)
    np.testing.assert_allclose(lens.entropy, oracle.entropy(log_p), atol=atol)
    np.testing.assert_allclose(lens.kl_to_final, oracle.kl(final, log_p), atol=atol)
    first, second = np.moveaxis(-np.sort(-log_p)[:, :, :2], 2, 0)
    np.testing.assert_allclose(lens.margin, first - second, atol=10 * atol)  # of logits near 30
    for track in (lens.target, lens.foil):
        if track is not None:
            own = log_p[:, :, track.id]
            np.testing.assert_allclose(track.logprob, own, atol=atol)
            np.testing.assert_array_equal(track.rank, 1 + (log_p > own[:, :, None]).sum(2))


def amplified():
    """A model whose last block writes a hundred times as much as the others."""
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[-1].mlp.c_proj.weight.mul_(100)
    return hf


def with_nan():
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.weight[0, 0] = float("nan")
    return resid.load(hf)


def checks(lens):
    return {check.name: check for check in lens.checks}


@pytest.mark.parametrize("target", [None, TARGET])
@pytest.mark.parametrize("positions", [None, [3, 1]])
def test_the_model_s_own_tokens_are_followed_through_every_point(tiny, target, positions):
    lens = read(tiny, points="all", target=target, positions=positions, own=True)
    truth = Oracle(tiny.hf, IDS)
    at = list(lens.positions)
    stream = np.stack([truth.at[point] for point in lens.points])[:, at]
    log_p = oracle.log_softmax(truth.decode(stream))
    ids = truth.logits[at].argmax(1)
    assert len(set(ids)) > 1, "positions that say the same cannot be told apart"
    own = np.take_along_axis(log_p, ids[None, :, None], 2)
    np.testing.assert_array_equal(lens.own.ids, ids)
    np.testing.assert_allclose(lens.own.logprob, own[:, :, 0], atol=1e-4)
    np.testing.assert_array_equal(lens.own.rank, 1 + (log_p > own).sum(2))
    assert (lens.own.rank[0] > 1).any()
    assert json.loads(lens.to_json())["data"]["own"]["id"] == ids.tolist()
    if target is not None:
        assert_equals_the_oracle(lens, tiny.hf)


@pytest.mark.parametrize("points", ["post", "all"])
def test_every_cell_equals_the_oracle(tiny, points):
    lens = read(tiny, points=points, target=TARGET, foil=FOIL)
    assert len(lens.points) == (N_LAYERS if points == "post" else 2 * N_LAYERS) + 1
    assert_equals_the_oracle(lens, tiny.hf)


@pytest.mark.parametrize(
    "changes",
    [{"tie_word_embeddings": False}, {"layer_norm_epsilon": 0.5}, {"n_layer": 1}, {"n_layer": 5}],
    ids=str,
)
def test_every_cell_of_another_model_equals_the_oracle(changes):
    hf = tiny_hf(**changes)
    lens = read(resid.load(hf), points="all", target=TARGET)
    assert len(lens.points) == 2 * hf.config.n_layer + 1
    assert_equals_the_oracle(lens, hf)


def test_a_bias_in_the_head_is_read():
    hf = tiny_hf(tie_word_embeddings=False)
    bias = torch.randn(D_VOCAB, generator=torch.Generator().manual_seed(1))
    hf.lm_head.bias = torch.nn.Parameter(bias)
    lens, truth = read(resid.load(hf), top=1), Oracle(hf, IDS)
    stream = np.stack([truth.at[point] for point in lens.points])
    log_p = oracle.log_softmax(truth.decode(stream) + bias.numpy())
    np.testing.assert_array_equal(lens.top_ids[:, :, 0], log_p.argmax(2))
    np.testing.assert_allclose(lens.kl_to_final, oracle.kl(log_p[-1], log_p), atol=1e-4)
    assert not lens.failures


def test_float64_equals_the_oracle_to_its_own_precision():
    hf = tiny_hf().double()
    assert_equals_the_oracle(read(resid.load(hf), target=TARGET), hf, atol=1e-10)


def test_the_last_row_is_the_models_own_prediction(tiny):
    logits = tiny.hf(torch.tensor([IDS])).logits[0]
    lens = read(tiny)
    top = logits.softmax(-1).topk(5)
    np.testing.assert_array_equal(lens.top_ids[-1], top.indices)
    np.testing.assert_allclose(lens.top_probs[-1], top.values.detach(), atol=1e-6)
    # The same product, of the same shapes, from the same vectors.
    assert checks(lens)["lens_equals_logits"].error <= 1e-6
    assert not lens.failures


def test_the_last_row_has_no_divergence_from_itself(tiny):
    np.testing.assert_allclose(read(tiny).kl_to_final[-1], 0, atol=1e-6)


def test_each_point_is_normed_with_its_own_statistics():
    hf = amplified()
    lens, truth = read(resid.load(hf)), Oracle(hf, IDS)
    sizes = [truth.at[point].std(-1).mean() for point in ("embed", LAST)]
    assert sizes[1] > 50 * sizes[0]
    assert_equals_the_oracle(lens, hf)


@pytest.mark.parametrize("change", [lambda x: 10 * x, lambda x: x + 3], ids=["scaled", "shifted"])
def test_the_lens_does_not_see_the_streams_scale_or_mean(tiny, change):
    recorded = resid.record(tiny, IDS)
    changed = {name: change(value) for name, value in recorded.activations.items()}
    lens = logit_lens(tiny, recorded, target=TARGET)
    other = logit_lens(tiny, replace(recorded, activations=changed), target=TARGET)
    np.testing.assert_array_equal(lens.top_ids, other.top_ids)
    # The epsilon of the norm is the only thing that does not scale.
    np.testing.assert_allclose(lens.entropy, other.entropy, atol=1e-3)
    np.testing.assert_allclose(lens.target.logprob, other.target.logprob, atol=1e-3)


def test_a_token_has_rank_one_exactly_where_it_is_on_top(tiny):
    for token in {*read(tiny).top_ids[:, :, 0].ravel().tolist()}:
        lens = read(tiny, target=int(token))
        np.testing.assert_array_equal(lens.target.rank == 1, lens.top_ids[:, :, 0] == token)


def test_every_tokens_rank_and_probability_agree_with_the_full_top(tiny):
    lens = read(tiny, top=D_VOCAB, target=TARGET)
    for i, j in np.ndindex(lens.entropy.shape):
        place = lens.target.rank[i, j] - 1
        assert lens.top_ids[i, j, place] == TARGET
        logprob = lens.target.logprob[i, j]
        assert np.exp(logprob) == pytest.approx(lens.top_probs[i, j, place], rel=1e-4)
    np.testing.assert_allclose(lens.top_probs.sum(2), 1, atol=1e-6)


def test_the_margin_is_the_same_however_few_tokens_are_kept(tiny):
    wide, narrow = read(tiny, top=4), read(tiny, top=1)
    assert narrow.top_ids.shape == (N_LAYERS + 1, len(IDS), 1)
    np.testing.assert_array_equal(narrow.margin, wide.margin)
    ratio = wide.top_probs[:, :, 0] / wide.top_probs[:, :, 1]
    np.testing.assert_allclose(np.exp(wide.margin), ratio, rtol=1e-5)
    assert wide.margin.min() > 0


def test_position_p_predicts_the_token_after_it(tiny):
    lens, shorter = read(tiny), read(tiny, IDS[:3])
    assert lens.positions == tuple(range(len(IDS)))
    np.testing.assert_array_equal(lens.top_ids[:, :3], shorter.top_ids)


@given(
    st.integers(1, 7).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=n, max_size=n), min_size=1, max_size=6
        )
    )
)
def test_settled_at_and_flips_follow_their_definition(columns):
    top1 = np.array(columns).T
    points = ("embed", *(f"{i}.post" for i in range(len(top1) - 1)))
    said = np.where(np.arange(top1.shape[1]) % 3 > 0, np.maximum(top1[-1], 0), 1)
    settled, flips = _decisions(points, top1, said)
    for j, column in enumerate(top1.T):
        stays = [p for i, p in enumerate(points) if all(token == said[j] for token in column[i:])]
        assert settled[j] == (stays[0] if stays else None)
        assert flips[j] == sum(a != b for a, b in pairwise(column))


def test_settled_at_is_read_from_the_top_tokens(tiny):
    lens = read(tiny, points="all")
    top1 = lens.top_ids[:, :, 0]
    assert (lens.settled_at, lens.flips.tolist()) == (
        _decisions(lens.points, top1, top1[-1])[0],
        (top1[1:] != top1[:-1]).sum(0).tolist(),
    )


def test_settled_at_means_the_model_s_own_token_whatever_the_points(tiny):
    final = read(tiny).top_ids[-1, :, 0]
    early = read(tiny, points=["embed", "0.post"])
    for j, settled in enumerate(early.settled_at):
        agrees = early.top_ids[:, j, 0] == final[j]
        first = "embed" if agrees.all() else "0.post" if agrees[-1] else None
        assert settled == first
    assert None in early.settled_at


def test_some_points_and_positions_are_a_slice_of_all(tiny):
    whole = read(tiny, points="all", target=TARGET)
    asked = ["2.post", "embed", "1.mid"]
    lens = read(tiny, points=asked, positions=[-1, 2, 6], target=TARGET)
    assert (lens.points, lens.positions) == (("embed", "1.mid", "2.post"), (2, 6))
    part = np.ix_([whole.points.index(point) for point in lens.points], [2, 6])
    np.testing.assert_array_equal(lens.top_ids, whole.top_ids[part])
    np.testing.assert_array_equal(lens.target.rank, whole.target.rank[part])
    for name in ("entropy", "kl_to_final", "top_probs"):
        np.testing.assert_allclose(getattr(lens, name), getattr(whole, name)[part], atol=1e-5)
    assert not lens.failures


@pytest.mark.parametrize("logits", [False, [0], [-1, 2]])
def test_a_recording_without_the_logits_is_checked_all_the_same(tiny, logits):
    lens = logit_lens(tiny, resid.record(tiny, IDS, logits=logits))
    check = checks(lens)["lens_equals_logits"]
    assert check.passed
    assert np.isfinite(check.error)


def test_a_recording_of_the_stream_alone_is_enough(tiny):
    recorded = resid.record(tiny, IDS, points="post")
    np.testing.assert_array_equal(logit_lens(tiny, recorded).top_ids, read(tiny).top_ids)


def test_a_batched_recording_reads_like_its_single_run(tiny):
    short, _ = resid.record(tiny, [IDS[:4], IDS])
    lens, single = logit_lens(tiny, short), read(tiny, IDS[:4])
    np.testing.assert_array_equal(lens.top_ids, single.top_ids)
    np.testing.assert_allclose(lens.entropy, single.entropy, atol=1e-5)
    assert not lens.failures


def test_no_hook_of_the_users_on_norm_or_head_fires_again():
    model, fired = resid.load(tiny_hf()), []
    for module in (model.hf.transformer.ln_f, model.hf.lm_head):
        module.register_forward_hook(lambda module, *_: fired.append(type(module).__name__))
    read(model, points="all")
    assert fired == ["LayerNorm", "Linear"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_half_precision_passes_within_its_stated_tolerance(dtype, seed):
    lens = read(resid.load(tiny_hf(seed).to(dtype)))
    check = checks(lens)["lens_equals_logits"]
    assert check.passed
    assert 0 < check.error <= check.tolerance < 0.2
    assert lens.entropy.dtype in (np.float32, np.float64)


def test_json_has_the_keys_of_the_design(tiny):
    lens = read(tiny, ids="the is ?", target=" the", foil="id:3")
    document = json.loads(lens.to_json())
    assert set(document) == {"resid", "analysis", "source", "axes", "data", "checks"}
    assert (document["resid"], document["analysis"]) == (1, "logit_lens")
    assert set(document["source"]) == {
        *("model", "revision", "n_layers", "d_model", "d_vocab", "dtype", "device"),
        *("prompt", "ids", "tokens", "versions"),
    }
    assert document["axes"] == {"point": ["embed", "0.post", "1.post", "2.post"], "pos": [0, 1, 2]}
    assert set(document["data"]) == {
        *("top_ids", "top_tokens", "top_probs", "entropy", "kl_to_final"),
        *("settled_at", "flips", "margin", "target", "foil"),
    }
    assert set(document["data"]["target"]) == {"id", "token", "rank", "logprob"}
    assert [set(check) for check in document["checks"]] == [
        {"name", "error", "tolerance", "passed"}
    ] * 2


def test_json_arrays_follow_the_axes(tiny):
    data = json.loads(read(tiny, top=2, target=TARGET).to_json())["data"]
    for name in ("top_ids", "top_tokens", "top_probs"):
        assert np.shape(data[name]) == (N_LAYERS + 1, len(IDS), 2), name
    for values in (data["entropy"], data["kl_to_final"], data["target"]["rank"]):
        assert np.shape(values) == (N_LAYERS + 1, len(IDS))
    assert np.shape(data["settled_at"]) == (len(IDS),)


def test_without_a_target_there_is_none_in_the_json(tiny):
    assert not {"target", "foil"} & set(json.loads(read(tiny).to_json())["data"])


def test_a_row_of_the_table_holds_its_cell(tiny):
    lens = read(tiny, top=2, target=TARGET)
    rows = list(lens.rows())
    assert len(rows) == (N_LAYERS + 1) * len(IDS)
    row = rows[2 * len(IDS) + 3]
    assert (row["point"], row["pos"], row["input_id"]) == ("1.post", 3, IDS[3])
    assert row["top2_id"] == lens.top_ids[2, 3, 1]
    assert row["target_logprob"] == lens.target.logprob[2, 3]


def test_a_nan_fails_the_check_and_is_named():
    check = checks(read(with_nan(), points="all"))["finite"]
    assert (check.passed, check.where) == (False, "1.post at position 0")
    assert check.error == 3 * len(IDS)


def test_a_nan_in_the_model_fails_the_comparison_with_its_logits():
    assert not checks(read(with_nan()))["lens_equals_logits"].passed


def test_a_point_that_is_not_finite_shows_no_token_and_no_number():
    lens = read(with_nan(), target=TARGET)
    assert (lens.top_ids[2:] == -1).all()
    assert (lens.top_tokens[2:] == "").all()
    numbers = (lens.top_probs, lens.entropy, lens.kl_to_final, lens.margin, lens.target.logprob)
    for values in numbers:
        assert np.isnan(values[2:]).all()
    assert lens.settled_at == (None,) * len(IDS)


def test_a_single_logit_that_is_not_finite_hides_the_others():
    hf = tiny_hf(tie_word_embeddings=False)
    hf.lm_head.bias = torch.nn.Parameter(
        torch.zeros(D_VOCAB).index_fill(0, torch.tensor(3), -torch.inf)
    )
    lens = read(resid.load(hf), target=TARGET)
    assert np.isnan(lens.top_probs).all()
    assert np.isnan(lens.target.logprob).all()
    assert len(lens.failures) == 2


def test_points_before_the_first_nan_are_still_read():
    lens = read(with_nan())
    np.testing.assert_allclose(lens.entropy[:2], read(resid.load(tiny_hf())).entropy[:2], atol=1e-6)


def test_what_is_not_finite_is_null_in_json():
    document = json.loads(read(with_nan(), target=TARGET).to_json())
    data = document["data"]
    assert data["entropy"][2] == data["kl_to_final"][2] == [None] * len(IDS)
    assert data["top_ids"][2] == data["top_tokens"][2] == [[None] * 5] * len(IDS)
    assert document["checks"][1]["where"] == "1.post at position 0"


def test_a_final_norm_applied_twice_fails_the_check(tiny, monkeypatch):
    once = Model.ln_final
    monkeypatch.setattr(Model, "ln_final", lambda self, x: once(self, once(self, x)))
    check = checks(read(tiny))["lens_equals_logits"]
    assert not check.passed
    assert check.where.startswith(f"{LAST} at position ")


def test_a_final_norm_left_out_fails_the_check(tiny, monkeypatch):
    monkeypatch.setattr(Model, "ln_final", lambda self, x: x)
    assert not checks(read(tiny))["lens_equals_logits"].passed


def test_a_final_norm_without_its_bias_fails_the_check(tiny, monkeypatch):
    whole, bias = Model.ln_final, tiny.hf.transformer.ln_f.bias.detach()
    monkeypatch.setattr(Model, "ln_final", lambda self, x: whole(self, x) - bias)
    assert not checks(read(tiny))["lens_equals_logits"].passed


def test_the_last_points_statistics_everywhere_are_seen_by_the_oracle(monkeypatch):
    hf = amplified()
    model = resid.load(hf)
    last, norm = resid.record(model, IDS)[LAST], hf.transformer.ln_f

    def frozen(self, rows):
        own = last.repeat(len(rows) // len(last), 1)
        mean, variance = own.mean(1, keepdim=True), own.var(1, unbiased=False, keepdim=True)
        return ((rows - mean) / (variance + norm.eps).sqrt() * norm.weight + norm.bias).detach()

    monkeypatch.setattr(Model, "ln_final", frozen)
    lens = read(model)
    assert checks(lens)["lens_equals_logits"].passed
    with pytest.raises(AssertionError):
        assert_equals_the_oracle(lens, hf)


def test_points_off_by_one_are_seen_by_the_oracle(tiny, monkeypatch):
    stream = Recording.stream
    monkeypatch.setattr(Recording, "stream", lambda self, p: stream(self, p).roll(1, 0))
    with pytest.raises(AssertionError):
        assert_equals_the_oracle(read(tiny), tiny.hf)


def test_a_recording_of_another_model_fails_the_check(tiny):
    recorded = resid.record(resid.load(tiny_hf(seed=1)), IDS)
    assert not checks(logit_lens(tiny, recorded))["lens_equals_logits"].passed


def test_a_recording_of_another_width_is_refused(tiny):
    recorded = resid.record(resid.load(tiny_hf(n_embd=2 * D_MODEL)), IDS)
    with pytest.raises(ResidError, match=r"d_model is 16, but of .* is 32"):
        logit_lens(tiny, recorded)


@pytest.mark.parametrize("position", [7, -8])
def test_a_position_outside_of_the_prompt_is_refused(tiny, position):
    with pytest.raises(ResidError, match=f"no position {position}; the prompt has 0 to 6"):
        read(tiny, positions=[position])


@pytest.mark.parametrize("options", [{"points": []}, {"positions": []}], ids=str)
def test_nothing_asked_for_is_refused(tiny, options):
    with pytest.raises(ResidError, match="were asked for"):
        read(tiny, **options)


def test_a_point_that_was_not_recorded_is_refused(tiny):
    with pytest.raises(ResidError, match="mid was not recorded"):
        logit_lens(tiny, resid.record(tiny, IDS, points="post"), points="all")


@pytest.mark.parametrize("top", [0, -1, D_VOCAB + 1])
def test_a_top_outside_of_the_vocabulary_is_refused(tiny, top):
    with pytest.raises(ResidError, match=f"top is {top}"):
        read(tiny, top=top)


def test_a_target_of_several_tokens_is_refused(tiny):
    with pytest.raises(ResidError, match=r"the foil .* tokens, not one"):
        read(tiny, foil="the cat")


def test_a_prompt_of_one_token_is_read(tiny):
    assert_equals_the_oracle(read(tiny, [3], points="all"), tiny.hf, [3])
