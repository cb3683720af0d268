import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import resid
from resid.errors import ResidError

from ..conftest import D_MODEL, IDS, N_LAYERS, tiny_hf
from ..oracle import Oracle
from .test_stream_norms import POSTS, close, measure, norm


@pytest.fixture(scope="module")
def recording(tiny):
    return resid.record(tiny, IDS)


def check(norms, name):
    (found,) = [each for each in norms.checks if each.name == name]
    return found


def constant_model(value, dtype, width):
    """A model whose stream is `value` everywhere, in every dimension."""
    hf = tiny_hf(n_embd=width)
    with torch.no_grad():
        hf.transformer.wpe.weight.zero_()
        hf.transformer.wte.weight.fill_(value)
        for block in hf.transformer.h:
            for parameter in (*block.attn.c_proj.parameters(), *block.mlp.c_proj.parameters()):
                parameter.zero_()
    return hf.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_norm_of_half_precision_does_not_overflow(dtype):
    norms = measure(constant_model(3000.0, dtype, width=768))
    stored = float(torch.tensor(3000.0, dtype=dtype))
    assert norms.l2.dtype == np.float32
    # 83138 for 3000: more than float16 can hold.
    assert np.allclose(norms.l2, stored * np.sqrt(768), rtol=1e-6)
    assert np.allclose(norms.centred_l2, 0)
    assert norms.failures == ()


def test_norm_of_what_float32_cannot_square(tiny, recording):
    huge = {name: 1e25 * vectors for name, vectors in recording.activations.items()}
    norms = resid.stream_norms(tiny, replace(recording, activations=huge))
    assert np.allclose(norms.l2 / 1e25, resid.stream_norms(tiny, recording).l2)
    assert norms.failures == ()


def test_float64_stays_float64():
    hf = tiny_hf().double()
    norms = measure(hf)
    at = Oracle(hf, IDS).at
    assert norms.l2.dtype == norms.mlp_out_ratio.dtype == np.float64
    assert close(norms.l2, [norm(at[point]) for point in POSTS], tolerance=1e-13)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_states_a_wider_tolerance_and_keeps_it(dtype):
    adds_up = check(measure(tiny_hf().to(dtype)), "stream_adds_up")
    assert adds_up.passed
    assert 1e-4 < adds_up.tolerance < 2 * N_LAYERS * torch.finfo(dtype).eps
    assert adds_up.error > 1e-5


def test_stream_adds_up(tiny, recording):
    adds_up = check(resid.stream_norms(tiny, recording), "stream_adds_up")
    assert adds_up.passed
    assert adds_up.where is None
    assert adds_up.error < adds_up.tolerance == 1e-4


@pytest.mark.parametrize("name", ["embed", "0.attn_out", "2.mlp_out"])
def test_write_that_is_off_is_caught_with_its_position(tiny, recording, name):
    broken = recording[name].clone()
    broken[3] *= 1.01
    tampered = replace(recording, activations=recording.activations | {name: broken})
    adds_up = check(resid.stream_norms(tiny, tampered), "stream_adds_up")
    assert not adds_up.passed
    assert adds_up.error > 1e-4
    assert adds_up.where == "2.post at position 3"


def test_planted_massive_activation_is_found():
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.wpe.weight[3, 5] = 5000
    norms = measure(hf)
    assert {(o.point, o.pos, o.dim) for o in norms.outliers} == {(p, 3, 5) for p in POSTS}
    at = Oracle(hf, IDS).at
    for outlier in norms.outliers:
        vector = at[outlier.point][3]
        assert outlier.value == pytest.approx(vector[5], rel=1e-4)
        assert outlier.share == pytest.approx(vector[5] ** 2 / (vector @ vector), rel=1e-4)
        times = abs(vector[5]) / np.median(np.abs(vector))
        assert outlier.times_median == pytest.approx(times, rel=1e-3)
        assert outlier.massive == (times >= 1000)
    shares = [outlier.share for outlier in norms.outliers]
    assert shares == sorted(shares, reverse=True)


def test_ordinary_dimensions_are_no_outliers(tiny, recording):
    # In 16 dimensions a share of 0.05 is below the average, 1 / 16.
    assert resid.stream_norms(tiny, recording, outlier_share=0.05).outliers == ()


def test_outliers_need_the_share_that_is_asked_for():
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.wpe.weight[3, 5] = 20
    vector = Oracle(hf, IDS).at["embed"][3]
    share = vector[5] ** 2 / (vector @ vector)
    assert 0.5 < share < 0.999
    found = measure(hf, points="embed", outlier_share=share - 1e-4)
    assert [(o.point, o.pos, o.dim, o.massive) for o in found.outliers] == [("embed", 3, 5, False)]
    assert found.outlier_rule.share == share - 1e-4
    assert measure(hf, points="embed", outlier_share=share + 1e-4).outliers == ()


def test_not_finite_is_nan_and_named():
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.bias[2] = torch.inf
    norms = measure(hf)
    assert np.isfinite(norms.l2[:2]).all()
    for name in ("l2", "centred_l2", "cosine_to_embed", "embed_coefficient"):
        assert np.isnan(getattr(norms, name)[2:]).all()
    assert np.isnan(norms.cosine_to_final).all()
    assert np.isfinite(norms.attn_out_l2[:2]).all()
    assert np.isnan(norms.mlp_out_l2[1:]).all()
    finite, adds_up = check(norms, "finite"), check(norms, "stream_adds_up")
    assert (finite.passed, finite.where) == (False, "1.mlp_out at position 0")
    assert finite.error == len(IDS) * 6  # 1.mlp_out, 1.post, and four in block 2
    assert (adds_up.passed, adds_up.where) == (False, "2.post at position 0")
    assert np.isnan(norms.growth.per_layer)
    assert norms.growth.reason == "not every norm is finite"
    data = json.loads(norms.to_json(), parse_constant=pytest.fail)["data"]
    assert data["l2"][2] == [None] * len(IDS)
    assert data["growth"]["per_layer"] is data["growth"]["growing_steps"] is None


def test_one_token_has_no_growth_and_says_why(tiny):
    norms = resid.stream_norms(tiny, resid.record(tiny, [5]))
    assert norms.l2.shape == (N_LAYERS + 1, 1)
    assert np.isnan(norms.growth.per_layer)
    assert norms.growth.excluded_positions == (0,)
    assert norms.growth.reason == "no position is left"
    assert norms.failures == ()
    assert resid.stream_norms(tiny, resid.record(tiny, [5]), exclude=()).growth.per_layer > 0


def test_one_layer_has_no_slope():
    assert measure(tiny_hf(n_layer=1)).growth.reason == "one layer has no slope"


def test_zero_norm_has_no_logarithm():
    norms = measure(constant_model(0.0, torch.float32, width=D_MODEL))
    assert norms.growth.reason == "a norm is 0"
    assert norms.failures == ()


def test_model_without_a_head_will_do(tiny, recording):
    model = resid.load(tiny_hf().transformer)
    norms = resid.stream_norms(model, resid.record(model, IDS))
    assert np.array_equal(norms.l2, resid.stream_norms(tiny, recording).l2)


def test_batch_equals_single_runs(tiny, recording):
    _, padded = resid.record(tiny, [[*IDS, *IDS], IDS])
    norms = resid.stream_norms(tiny, padded)
    assert close(norms.l2, resid.stream_norms(tiny, recording).l2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points": "0.attn_out"}, "0.attn_out is not on the residual stream"),
        ({"points": []}, "no points were asked for"),
        ({"positions": [7]}, "there is no position 7"),
        ({"exclude": [7]}, "there is no position 7"),
        ({"outlier_share": 0.0}, "outlier_share is 0.0"),
        ({"outlier_share": 1.5}, "outlier_share is 1.5"),
    ],
)
def test_impossible_requests_are_refused(tiny, recording, options, message):
    with pytest.raises(ResidError, match=message):
        resid.stream_norms(tiny, recording, **options)


def test_recording_without_writes_is_refused(tiny):
    with pytest.raises(ResidError, match="was not recorded"):
        resid.stream_norms(tiny, resid.record(tiny, IDS, points="all"))


def test_recording_of_another_model_is_refused(recording):
    with pytest.raises(ResidError, match=r"n_layers is 2, but of .* is 3"):
        resid.stream_norms(resid.load(tiny_hf(n_layer=2)), recording)
