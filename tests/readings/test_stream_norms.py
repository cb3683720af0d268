import copy
from itertools import pairwise

import numpy as np
import pytest
import torch

import resid

from ..conftest import IDS, N_LAYERS, tiny_hf
from ..oracle import Oracle

POSTS = ["embed", *(f"{layer}.post" for layer in range(N_LAYERS))]
ALL = ["embed", *(f"{layer}.{kind}" for layer in range(N_LAYERS) for kind in ("mid", "post"))]


@pytest.fixture(scope="module")
def recording(tiny):
    return resid.record(tiny, IDS)


@pytest.fixture(scope="module")
def at(tiny):
    """The oracle's vectors by name, [pos, d_model]."""
    return Oracle(tiny.hf, IDS).at


def measure(hf, ids=IDS, **options):
    model = resid.load(hf)
    return resid.stream_norms(model, resid.record(model, ids, logits=False), **options)


def norm(x):
    return np.sqrt((x**2).sum(-1))


def cosine(a, b):
    return (a * b).sum(-1) / (norm(a) * norm(b))


def close(ours, oracles, tolerance=1e-5):
    # float32 activations against the oracle's float64.
    oracles = np.asarray(oracles)
    assert ours.shape == oracles.shape
    return np.allclose(ours, oracles, rtol=tolerance, atol=tolerance)


def fit(l2, kept):
    """Growth and R^2 of a line through the mean log norms at [post, pos]."""
    logs = np.log(l2[:, kept]).mean(1)
    slope, start = np.polyfit(np.arange(len(logs)), logs, 1)
    residual = logs - start - slope * np.arange(len(logs))
    return np.exp(slope), 1 - residual @ residual / ((logs - logs.mean()) ** 2).sum()


@pytest.mark.parametrize(("asked", "points"), [("post", POSTS), ("all", ALL)])
def test_points_equal_the_oracle(tiny, recording, at, asked, points):
    norms = resid.stream_norms(tiny, recording, points=asked)
    last = at[f"{N_LAYERS - 1}.post"]
    assert list(norms.points) == points
    assert close(norms.l2, [norm(at[p]) for p in points])
    assert close(norms.centred_l2, [norm(at[p] - at[p].mean(-1, keepdims=True)) for p in points])
    assert close(norms.cosine_to_final, [cosine(at[p], last) for p in points])
    assert close(norms.cosine_to_embed, [cosine(at[p], at["embed"]) for p in points])
    embed = at["embed"]
    held = [(at[p] * embed).sum(-1) / (embed**2).sum(-1) for p in points]
    assert close(norms.embed_coefficient, held)
    assert np.isnan(norms.cosine_to_previous[0]).all()
    neighbours = [cosine(at[a], at[b]) for a, b in pairwise(points)]
    assert close(norms.cosine_to_previous[1:], neighbours)


def test_last_norm_is_that_of_the_raw_block_output(tiny, recording, at):
    norms = resid.stream_norms(tiny, recording)
    with torch.no_grad():
        # A copy: transformers leaves hooks of its own behind.
        hf = copy.deepcopy(tiny.hf)
        states = hf(torch.tensor([IDS]), output_hidden_states=True).hidden_states
    assert not np.allclose(norms.l2[-1], norm(states[-1][0].numpy()), rtol=0.05)
    assert np.allclose(norms.l2[:-1], [norm(x[0].numpy()) for x in states[:-1]], rtol=1e-5)


def test_writes_equal_the_oracle(tiny, recording, at):
    norms = resid.stream_norms(tiny, recording, points="1.post")
    assert norms.layers == tuple(range(N_LAYERS))
    before = {
        "attn_out": ["embed", *(f"{layer}.post" for layer in range(N_LAYERS - 1))],
        "mlp_out": [f"{layer}.mid" for layer in range(N_LAYERS)],
    }
    for sublayer, streams in before.items():
        pairs = [(at[f"{i}.{sublayer}"], at[stream]) for i, stream in enumerate(streams)]
        assert close(getattr(norms, f"{sublayer}_l2"), [norm(w) for w, _ in pairs])
        ratios = [norm(w) / norm(x) for w, x in pairs]
        assert close(getattr(norms, f"{sublayer}_ratio"), ratios)
        assert close(getattr(norms, f"{sublayer}_cosine"), [cosine(w, x) for w, x in pairs])


@pytest.mark.parametrize("exclude", [(0,), (), (0, 2, -1)])
def test_growth_equals_a_least_squares_fit(tiny, recording, at, exclude):
    growth = resid.stream_norms(tiny, recording, points="embed", exclude=exclude).growth
    kept = [p for p in range(len(IDS)) if p not in {e % len(IDS) for e in exclude}]
    l2 = np.array([norm(at[point]) for point in POSTS])
    per_layer, r_squared = fit(l2[1:], kept)
    assert growth.per_layer == pytest.approx(per_layer, rel=1e-6)
    assert growth.r_squared == pytest.approx(r_squared, rel=1e-5)
    assert growth.excluded_positions == tuple(sorted({e % len(IDS) for e in exclude}))
    assert growth.growing_steps == (l2[1:] > l2[:-1])[:, kept].mean()
    assert growth.reason is None
    fitted = growth.fitted_l2
    assert np.allclose(fitted[1:] / fitted[:-1], per_layer)
    # A least-squares line passes through the mean.
    assert np.log(fitted).mean() == pytest.approx(np.log(l2[1:, kept]).mean(), rel=1e-6)


def test_positions_narrow_every_array_and_the_growth(tiny, recording, at):
    whole = resid.stream_norms(tiny, recording)
    part = resid.stream_norms(tiny, recording, positions=[-1, 2, 0])
    assert part.positions == (0, 2, 6)
    for name in ("l2", "centred_l2", "cosine_to_final", "attn_out_ratio", "mlp_out_cosine"):
        assert np.array_equal(getattr(part, name), getattr(whole, name)[:, [0, 2, 6]])
    l2 = np.array([norm(at[point]) for point in POSTS[1:]])
    assert part.growth.per_layer == pytest.approx(fit(l2, [2, 6])[0], rel=1e-6)
    assert resid.stream_norms(tiny, recording, positions=[3]).growth.excluded_positions == ()


def test_model_that_writes_nothing_is_flat():
    hf = tiny_hf()
    with torch.no_grad():
        for block in hf.transformer.h:
            for parameter in (*block.attn.c_proj.parameters(), *block.mlp.c_proj.parameters()):
                parameter.zero_()
    norms = measure(hf, points="all")
    assert (norms.l2 == norms.l2[0]).all()
    for name in ("cosine_to_final", "cosine_to_embed", "embed_coefficient"):
        assert np.allclose(getattr(norms, name), 1, atol=1e-6)
    assert norms.growth.per_layer == pytest.approx(1, abs=1e-12)
    assert np.isnan(norms.growth.r_squared)
    assert norms.growth.growing_steps == 0
    assert (norms.attn_out_l2 == 0).all()
    assert (norms.mlp_out_ratio == 0).all()
    assert np.isnan(norms.mlp_out_cosine).all()
    assert norms.failures == ()


def test_scaled_stream_has_scaled_norms_and_the_same_growth():
    scale = 8.0
    small, large = tiny_hf(), tiny_hf()
    with torch.no_grad():
        writers = [large.transformer.wte, large.transformer.wpe]
        for block in large.transformer.h:
            writers += [block.attn.c_proj, block.mlp.c_proj]
        for writer in writers:
            for parameter in writer.parameters():
                parameter *= scale
    a, b = measure(small), measure(large)
    # LayerNorm is blind to scale up to its epsilon, 1e-5 beside a variance of about 0.5.
    for name in ("l2", "centred_l2", "attn_out_l2", "mlp_out_l2"):
        assert np.allclose(getattr(b, name), scale * getattr(a, name), rtol=1e-3)
    assert b.growth.per_layer == pytest.approx(a.growth.per_layer, rel=1e-4)
    assert np.allclose(b.cosine_to_embed, a.cosine_to_embed, atol=1e-3)


def test_position_0_is_left_out_of_the_growth_and_said_so():
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.wpe.weight[0] *= 1000
    at = Oracle(hf, IDS).at
    l2 = np.array([norm(at[point]) for point in POSTS])
    norms, everywhere = measure(hf), measure(hf, exclude=())
    assert norms.l2[0, 0] > 100 * norms.l2[0, 1:].max()
    assert close(norms.l2, l2, tolerance=1e-4)
    kept = fit(l2[1:], range(1, len(IDS)))
    averaged = fit(l2[1:], range(len(IDS)))
    assert norms.growth.per_layer == pytest.approx(kept[0], rel=1e-4)
    assert everywhere.growth.per_layer == pytest.approx(averaged[0], rel=1e-4)
    assert abs(kept[0] - averaged[0]) > 0.01
    assert norms.growth.excluded_positions == (0,)
    assert everywhere.growth.excluded_positions == ()
