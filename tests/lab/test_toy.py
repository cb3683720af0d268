"""The five-layer net against its published gradients, finite differences, and bugs put into it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from resid.lab import toy as lab
from resid.lab.toy import toy

# Without shortcuts and with them; tanh GELU from Raschka's book, the others printed with fewer
# digits. The last digit may be off by one half.
EXACT = (
    ("2.01741e-4", "1.20118e-4", "7.15244e-4", "1.398851e-3", "5.049604e-3"),
    ("0.2218680", "0.2070927", "0.3292389", "0.2667772", "1.3268067"),
)
RELU = (
    ("6.876e-4", "1.908e-3", "3.821e-3", "3.861e-3", "2.481e-2"),
    ("0.5558", "0.0914", "0.7914", "0.2171", "3.1407"),
)


@pytest.fixture(scope="module")
def result():
    return toy(seeds=20)


def half_a_digit(text):
    digits, _, power = text.partition("e")
    return 0.51 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def test_published_gradients(result):
    assert np.allclose(result.gradients[0], lab.PUBLISHED, rtol=1e-4, atol=0)
    assert result.failures == ()
    assert [check.name for check in result.checks] == [
        "published", "shortcut_adds_one", "slopes_multiply",
    ]  # fmt: skip


@pytest.mark.parametrize(("activation", "published"), [(1, EXACT), (2, RELU)])
def test_published_gradients_of_other_activations(result, activation, published):
    for net in (0, 1):
        for found, text in zip(result.gradients[activation, net], published[net], strict=True):
            wanted = float(text)
            assert found == pytest.approx(wanted, rel=1e-4, abs=half_a_digit(text))


@pytest.mark.parametrize("shortcut", [False, True])
@pytest.mark.parametrize("name", list(lab.ACTIVATIONS))
def test_gradients_are_finite_differences(name, shortcut):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        net = lab.DeepNet(lab.ACTIVATIONS[name], shortcut).double()
    x = torch.tensor([lab.INPUT], dtype=torch.float64)
    step, means = 1e-6, []
    with torch.no_grad():
        for linear in net.linears:
            weight, slopes = linear.weight, []
            for cell in np.ndindex(*weight.shape):
                before, losses = weight[cell].item(), []
                for side in (1, -1):
                    weight[cell] = before + side * step
                    losses.append(net(x).pow(2).mean().item())
                weight[cell] = before
                slopes.append(abs(losses[0] - losses[1]) / (2 * step))
            means.append(np.mean(slopes))
    found = lab.mean_gradients(lab.ACTIVATIONS[name], shortcut, 7)
    assert found == pytest.approx(means, rel=1e-4, abs=1e-9)


def test_slopes_of_a_stack_multiply(result):
    for depth, power in ((12, 0.28243), (40, 0.014781), (48, 0.0063627)):
        assert lab._through(0.9, depth, shortcut=False) == pytest.approx(power, rel=1e-5)
    assert result.product[0] == pytest.approx(0.0063627, rel=1e-5)
    # A slope of -0.1 takes as much off a shortcut as a slope of 0.9 leaves without one.
    assert result.product_shortcut[-1] == pytest.approx(result.product[0], rel=1e-12)


def test_a_shortcut_adds_one_to_the_slope(result):
    assert np.allclose(result.slope_shortcut, result.slope + 1, rtol=0, atol=1e-12)
    middle = int(np.argmin(np.abs(result.x)))
    assert result.slope[:2, middle] == pytest.approx([0.5, 0.5])
    assert set(result.slope[2]) == {0.0, 1.0}


def test_another_seed_has_no_published_net():
    other = toy(seed=5, seeds=1)
    assert "published" not in [check.name for check in other.checks]
    assert not np.allclose(other.gradients[0], lab.PUBLISHED, rtol=0.1)
    assert "over" not in other.finding


def test_draws_begin_with_the_net_that_is_shown(result):
    assert result.first_gradients.shape == (3, 2, 20)
    assert np.array_equal(result.first_gradients[:, :, 0], result.gradients[:, :, 0])
    assert result.axis_labels()["draw"][:2] == [123, 124]
    assert result.axis_labels()["draw"] == list(range(123, 143))


def test_where_nothing_arrives_there_is_no_factor(result):
    silent = result.first_gradients[2, 0] == 0
    assert silent.any()
    assert np.isnan(result.factors[2][silent]).all()
    assert result.silent[2, 0] == silent.mean()
    data = json.loads(result.to_json(), parse_constant=pytest.fail)["data"]
    assert data["factors"][2][int(np.argmax(silent))] is None


def test_the_global_generator_is_left_alone():
    torch.manual_seed(3)
    wanted = torch.rand(4)
    torch.manual_seed(3)
    toy(seeds=1)
    assert torch.equal(torch.rand(4), wanted)


def test_the_same_seed_gives_the_same_result(result):
    assert toy(seeds=20).to_json() == result.to_json()


def test_the_finding_is_made_of_the_numbers(result):
    assert result.finding.startswith(
        "Shortcuts take the mean gradient at layer 0 from 0.0002 to 0.22 "
    )
    worse = result.gradients.copy()
    worse[0, 1, 0] = 3e-9
    assert "from 0.0002 to 3e-9 with" in replace(result, gradients=worse).finding


def without_shortcut(self, x):
    for linear in self.linears:
        x = self.activation(linear(x))
    return x


def test_a_bug_in_the_net_is_found(monkeypatch):
    monkeypatch.setattr(lab.DeepNet, "forward", without_shortcut)
    (failure,) = toy(seeds=1).failures
    assert (failure.name, failure.where) == ("published", "layer 1 with shortcuts")


def test_another_gelu_is_found(monkeypatch):
    # Without shortcuts the two differ by less than the tolerance; with them by 8e-4.
    monkeypatch.setattr(lab, "ACTIVATIONS", {"GELU (tanh)": nn.GELU})
    assert [check.name for check in toy(seeds=1).failures] == ["published"]


def test_a_wrong_shortcut_slope_is_found(monkeypatch):
    slopes = lab._slopes
    monkeypatch.setattr(lab, "_slopes", lambda f, xs, shortcut: slopes(f, xs, False))
    assert "shortcut_adds_one" in [check.name for check in toy(seeds=1).failures]


def test_a_wrong_product_is_found(monkeypatch):
    through = lab._through
    monkeypatch.setattr(lab, "_through", lambda s, depth, shortcut: through(s, depth + 1, shortcut))
    assert "slopes_multiply" in [check.name for check in toy(seeds=1).failures]
