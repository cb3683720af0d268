"""Deep stacks: the published trends, the traps, and checks with bugs put before them."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from resid.commands.lab.depth import depth as command
from resid.errors import ResidError
from resid.lab import depth as stacks
from resid.lab.block import LayerNorm
from resid.lab.depth import INITS, WIRINGS, Stack, Wiring, chain_rule_error, gelu_tanh, measure
from resid.lab.depth_trends import depth
from resid.lab.pretrained import relu

DEPTHS = (5, 10, 20, 40)
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def passes():
    """[init, wiring, depth, seed] the passes of pre-LN and post-LN stacks."""
    return {
        (init, wiring, n, seed): measure(Stack(n, WIRINGS[wiring], INITS[init], relu, seed))
        for init in ("1/sqrt(n_in)", "0.02", "uniform")
        for wiring in ("pre-LN", "post-LN")
        for n in DEPTHS
        for seed in SEEDS
    }


@pytest.fixture(scope="module")
def small():
    return depth(4, inits=["1/sqrt(n_in)", "0.02"], seeds=2)


def last(passes, init, wiring):
    """[depth] the last layer's gradient, mean over seeds."""
    return np.array(
        [np.mean([passes[init, wiring, n, s].weight_gradient[-1] for s in SEEDS]) for n in DEPTHS]
    )


@pytest.mark.parametrize("init", ["1/sqrt(n_in)", "uniform"])
def test_under_pre_ln_the_last_gradient_falls_with_depth(passes, init):
    gradients = last(passes, init, "pre-LN")
    assert (np.diff(gradients) < 0).all()
    assert gradients[-1] < 0.7 * gradients[0]


@pytest.mark.parametrize("init", ["1/sqrt(n_in)", "uniform"])
def test_under_post_ln_it_does_not(passes, init):
    gradients = last(passes, init, "post-LN")
    assert gradients.max() / gradients.min() < 1.5
    # FACTS: 2.56 for torch's own layers.
    assert gradients[-1] / last(passes, init, "pre-LN")[-1] > 2


def test_with_small_weights_neither_changes(passes):
    for wiring in ("pre-LN", "post-LN"):
        gradients = last(passes, "0.02", wiring)
        assert gradients.max() / gradients.min() < 1.1


@pytest.mark.parametrize("n", DEPTHS)
def test_the_pre_ln_stream_lies_in_the_band_of_the_lemma(passes, n):
    squares = np.mean(
        [np.square(passes["1/sqrt(n_in)", "pre-LN", n, seed].rms) for seed in SEEDS], axis=0
    )
    layers = np.arange(n + 1)
    # The lemma is about expectations; two seeds are within a hundredth of its ends.
    assert (squares >= 0.99 * (1 + layers / 2)).all()
    assert (squares <= 1.01 * (1 + 3 * layers / 2)).all()


@pytest.mark.parametrize("init", ["1/sqrt(n_in)", "0.02", "uniform"])
def test_the_post_ln_stream_has_size_one(passes, init):
    for n in DEPTHS:
        assert np.allclose(passes[init, "post-LN", n, 0].rms, 1, rtol=0, atol=1e-4)


def test_the_second_moments_are_the_published_ones():
    assert stacks.second_moment(gelu_tanh) == pytest.approx(0.425194, abs=1e-6)
    assert stacks.second_moment(relu) == pytest.approx(0.5, abs=1e-6)


def test_without_norm_and_residual_nothing_is_left():
    done = measure(Stack(40, WIRINGS["neither"], INITS["0.02"], gelu_tanh, 0))
    # Far below what float32 can hold, and not zero.
    assert 0 < done.stream_gradient[0] < 1e-100
    assert 0 < done.rms[-1] < 1e-100


def test_a_sum_behind_a_norm_has_no_gradient_and_our_loss_has():
    stack = Stack(5, WIRINGS["pre-LN"], INITS["1/sqrt(n_in)"], gelu_tanh, 0)
    end = stack.points(stack.x)[-1]
    (nothing,) = torch.autograd.grad(stack.norm(end).sum(), stack.mlps[-1].W_out)
    assert nothing.abs().max() < 1e-12
    assert measure(stack).weight_gradient[-1] > 0.1


def test_wirings():
    x = torch.tensor([[1.0, 2.0, 6.0]], dtype=torch.float64)
    norm = LayerNorm(3).double()

    def double(read):
        return 2 * read

    with torch.no_grad():
        joined = {name: wiring.join(x, double, norm) for name, wiring in WIRINGS.items()}
        assert torch.equal(joined["pre-LN"], x + 2 * norm(x))
        assert torch.equal(joined["post-LN"], norm(x + 2 * x))
        assert torch.equal(joined["no norm"], 3 * x)
        assert torch.equal(joined["no residual"], 2 * norm(x))
        assert torch.equal(joined["neither"], 2 * x)


def test_stacks_of_one_seed_differ_in_their_wiring_alone():
    one = Stack(3, WIRINGS["pre-LN"], INITS["0.02"], gelu_tanh, 4)
    other = Stack(6, WIRINGS["neither"], INITS["1/sqrt(d)"], gelu_tanh, 4)
    for mine, theirs in zip(one.mlps, other.mlps, strict=False):
        assert torch.allclose(mine.W_out / 0.02, theirs.W_out * 8)
    assert torch.equal(one.x, other.x)
    assert torch.equal(one.head, other.head)
    assert not torch.equal(one.x, Stack(1, WIRINGS["neither"], INITS["0.02"], relu, 5).x)


def test_sizes_are_right_where_squares_are_not():
    tiny = torch.full((4,), 1e-200, dtype=torch.float64)
    assert tiny.norm() == 0
    assert stacks._norm(tiny) == pytest.approx(2e-200)
    assert stacks._norm(1e250 * torch.ones(4, dtype=torch.float64)) == pytest.approx(2e250)
    assert stacks._norm(torch.zeros(3)) == 0
    assert math.isnan(stacks._norm(torch.tensor([1.0, math.nan])))


def test_the_cosine_is_the_mean_over_pairs():
    x = torch.tensor([[3.0, 0.0], [0.0, 2.0], [1.0, 1.0]], dtype=torch.float64)
    assert stacks._cosine(x) == pytest.approx(2 * math.sqrt(0.5) / 3)
    assert stacks._cosine(1e-200 * x) == pytest.approx(2 * math.sqrt(0.5) / 3)


def test_the_result_has_what_was_measured(small):
    assert small.failures == ()
    assert small.depths == (1, 2, 4)
    assert small.rms.shape == small.stream_gradient.shape == (2, 5, 2, 5)
    assert small.weight_gradient.shape == (2, 5, 2, 4)
    direct = measure(Stack(4, WIRINGS["no norm"], INITS["0.02"], gelu_tanh, 1))
    assert small.rms[1, 2, 1].tolist() == direct.rms
    assert small.weight_gradient[1, 2, 1].tolist() == direct.weight_gradient
    assert small.last_gradient[1, 2, 1, -1] == direct.weight_gradient[-1]
    assert small.first_gradient[1, 2, 1, -1] == direct.weight_gradient[0]
    assert small.input_gradient[1, 2, 1, -1] == direct.stream_gradient[0]
    shallow = measure(Stack(2, WIRINGS["no norm"], INITS["0.02"], gelu_tanh, 1))
    assert small.last_gradient[1, 2, 1, 1] == shallow.weight_gradient[-1]
    assert (small.attention_weights, small.mlp_weights) == (4 * 64**2, 8 * 64**2)
    assert small.band_low[2] == pytest.approx(1 + 2 * 0.425194, abs=1e-5)


def test_the_same_seed_gives_the_same_result(small):
    assert depth(4, inits=["1/sqrt(n_in)", "0.02"], seeds=2).to_json() == small.to_json()
    other = depth(2, inits=["0.02"], seeds=1, seed=1)
    assert other.seeds == (1,)
    assert np.array_equal(other.rms[0, 0, 0, :3], small.rms[1, 0, 1, :3])


def test_it_runs_on_one_thread_and_gives_the_others_back():
    before, seen = torch.get_num_threads(), []

    def watch(cells):
        seen.append(torch.get_num_threads())
        return cells

    torch.set_num_threads(2)
    try:
        depth(1, inits=["0.02"], seeds=1, watch=watch)
        assert (seen, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)


def test_one_layer_is_no_crash():
    result = depth(1, inits=["uniform"], seeds=1)
    assert result.depths == (1,)
    assert result.trend(0, "pre-LN") == 1
    assert "From 1 to 1 layers" in result.finding
    assert "in 0 of 1 initialisation;" in result.finding


def test_the_finding_is_made_of_the_numbers(small):
    weaker = small.last_gradient.copy()
    weaker[:, 1, :, -1] = weaker[:, 1, :, 0] / 100
    changed = replace(small, last_gradient=weaker)
    assert "; by 0.01 under post-LN, and in 2. With" in changed.finding
    weaker[0, 1, :, -1] *= 1000  # What rises is in the range, and not among those that fall.
    changed = replace(small, last_gradient=weaker)
    assert "; by 0.01 to 10 under post-LN, and in 1. With" in changed.finding
    assert changed.finding != small.finding


def test_rows(small):
    rows = list(small.rows())
    assert len(rows) == small.rms.size
    assert rows[0]["weight_gradient"] is None
    assert rows[1]["weight_gradient"] == small.weight_gradient[0, 0, 0, 0]


def tripled(x):
    """The tanh GELU, whose gradient comes back three times too large."""
    if x.requires_grad:
        x.register_hook(lambda gradient: 3 * gradient)
    return gelu_tanh(x)


def test_a_wrong_gradient_is_found(monkeypatch):
    good = Stack(3, WIRINGS["pre-LN"], INITS["uniform"], gelu_tanh, 0)
    assert chain_rule_error(good, 0) < 1e-12
    assert chain_rule_error(Stack(3, WIRINGS["pre-LN"], INITS["uniform"], tripled, 0), 0) > 1e-3
    monkeypatch.setitem(stacks.ACTIVATIONS, "gelu", tripled)
    (failure,) = depth(3, inits=["uniform"], seeds=1).failures
    assert failure.name == "chain_rule"
    assert failure.where in {"pre-LN, uniform", "post-LN, uniform", "no residual, uniform"}


def test_a_norm_in_the_wrong_place_is_found(monkeypatch):
    monkeypatch.setitem(stacks.WIRINGS, "post-LN", Wiring(residual=True, norm="before"))
    (failure,) = depth(3, inits=["1/sqrt(n_in)"], seeds=1).failures
    assert (failure.name, failure.where) == ("post_ln_is_unit", "2.post")


def test_what_is_not_finite_is_named(monkeypatch):
    monkeypatch.setitem(stacks.INITS, "huge", lambda weight, generator: weight + 1e200)
    result = depth(2, inits=["huge"], seeds=1)
    names = {check.name: check for check in result.failures}
    assert names["finite"].where.endswith(", huge")
    json.loads(result.to_json(), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": 0}, "0 layers"),
        ({"seeds": 0}, "0 seeds"),
        ({"inits": ["he"]}, "no initialisation 'he'; choose from 1/sqrt"),
        ({"inits": []}, "no initialisation; choose"),
        ({"activation": "tanh"}, "'tanh'; choose gelu or relu"),
    ],
)
def test_what_is_not_there_is_refused(arguments, message):
    with pytest.raises(ResidError, match=message):
        depth(**({"layers": 2} | arguments))


def test_the_command_knows_the_names_of_the_library():
    choices = {option.name: option.type for option in command.params}
    assert list(choices["inits"].choices) == list(INITS)
    assert list(choices["activation"].choices) == list(stacks.ACTIVATIONS)
