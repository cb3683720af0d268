"""Activation functions against published numbers, torch, and a model's own coefficients."""

import json
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

import resid
from resid.lab.activations import FUNCTIONS, activations, normal_cdf
from resid.lab.activations_in_model import activations_of

from ..conftest import tiny_hf
from ..oracle import Oracle

IDS = [5, 290, 17, 260, 17, 99, 3]
TORCH = {
    "ReLU": functional.relu,
    "GELU": functional.gelu,
    "tanh GELU": lambda x: functional.gelu(x, approximate="tanh"),
    "SiLU": functional.silu,
    "quick GELU": lambda x: x * torch.sigmoid(1.702 * x),
}


@pytest.fixture(scope="module")
def found():
    return activations()


@pytest.fixture(scope="module")
def inside(tiny):
    return activations_of(tiny, IDS).inside


def of(found, name):
    return found.functions.index(name)


def value(name, x):
    return float(FUNCTIONS[name][1](np.array([float(x)]), normal_cdf)[0][0])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_slopes_are_torchs(name):
    x = torch.linspace(-9, 9, 401, dtype=torch.float64, requires_grad=True)
    y = TORCH[name](x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    ours = FUNCTIONS[name][1](x.detach().numpy(), normal_cdf)
    assert np.abs(ours[0] - y.detach().numpy()).max() < 1e-14
    assert np.abs(ours[1] - slope.numpy()).max() < 1e-13


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_name_in_transformers_is_this_function(name):
    from transformers.activations import ACT2FN

    known, function = FUNCTIONS[name]
    x = torch.linspace(-6, 6, 101, dtype=torch.float64)
    assert np.abs(ACT2FN[known](x).numpy() - function(x.numpy(), normal_cdf)[0]).max() < 1e-14


# Computed from the formulas, and found by others; the digits are those that are known.
@pytest.mark.parametrize(
    ("x", "exact", "tanh"),
    [
        (-3, -0.00404969, -0.00363739),
        (-1, -0.15865525, -0.15880801),
        (-0.5, -0.15426877, -0.15428599),
        (0.5, 0.34573123, 0.34571401),
        (1, 0.84134475, 0.84119199),
        (2, 1.95449974, 1.95459769),
        (3, 2.99595031, 2.99636261),
    ],
)
def test_values_of_gelu(x, exact, tanh):
    assert value("GELU", x) == pytest.approx(exact, abs=5.1e-9)
    assert value("tanh GELU", x) == pytest.approx(tanh, abs=5.1e-9)


@pytest.mark.parametrize(
    ("name", "at", "lowest", "places", "digits"),
    [
        ("GELU", -0.751791525, -0.169971207480, 9, 12),
        ("tanh GELU", -0.752461422, -0.170040750571, 9, 12),
        ("quick GELU", -0.75115, -0.16361, 5, 5),
    ],
)
def test_minima(found, name, at, lowest, places, digits):
    i = of(found, name)
    assert round(found.minimum_at[i], places) == at
    assert round(found.minimum[i], digits) == lowest


def test_relu_is_lowest_everywhere_below_0(found):
    i = of(found, "ReLU")
    assert math.isnan(found.minimum_at[i])
    assert found.minimum[i] == 0


def test_the_steepest_slope_of_gelu_is_at_the_root_of_2(found):
    i = of(found, "GELU")
    assert found.steepest_at[i] == pytest.approx(math.sqrt(2), abs=1e-6)
    assert round(found.steepest[i], 6) == 1.128904
    slope = FUNCTIONS["GELU"][1](np.array([-math.sqrt(2), 0.0]), normal_cdf)[1]
    assert slope == pytest.approx([-0.128904, 0.5], abs=5e-7)


@pytest.mark.parametrize(
    ("first", "second", "extremes"),
    [
        ("tanh GELU", "GELU", [(2.6989, 4.7324e-4), (1.3645, -2.3367e-4)]),
        ("quick GELU", "GELU", [(2.2704, -0.020335)]),
        ("GELU", "ReLU", [(0.7518, -0.169971)]),
        ("tanh GELU", "ReLU", [(0.7525, -0.170041)]),
    ],
)
def test_where_functions_are_furthest_apart(found, first, second, extremes):
    pair = (of(found, first), of(found, second))
    rows = [i for i, each in enumerate(zip(found.first, found.second, strict=True)) if each == pair]
    assert len(rows) >= len(extremes)
    for row, (at, by) in zip(rows, extremes, strict=False):
        assert found.apart_at[row] == pytest.approx(at, abs=5.1e-5)
        assert found.apart[row] == pytest.approx(by, rel=2e-5)


def test_nowhere_are_they_further_apart(found):
    x = np.linspace(-9, 9, 7919)
    for i in found.furthest():
        a, b = (FUNCTIONS[found.functions[j]][1] for j in (found.first[i], found.second[i]))
        apart = np.abs(a(x, normal_cdf)[0] - b(x, normal_cdf)[0]).max()
        assert 0.999 * abs(found.apart[i]) < apart <= abs(found.apart[i]) * (1 + 1e-9)


def test_standard_normal_inputs(found):
    exact, tanh, relu = (of(found, name) for name in ("GELU", "tanh GELU", "ReLU"))
    means, squares = found.normal_mean.round(7), found.normal_square.round(6)
    assert (means[exact], means[tanh], means[relu]) == (0.2820948, 0.2820386, 0.3989423)
    assert (squares[exact], squares[tanh], squares[relu]) == (0.425221, 0.425194, 0.5)
    for share in (found.normal_zero, found.normal_no_slope, found.normal_flat):
        assert share[relu] == pytest.approx(0.5, abs=1e-12)
    assert found.normal_no_slope[exact] == 0
    assert 0.01 < found.normal_flat[exact] < 0.02


def test_it_passes_its_checks_whatever_was_drawn():
    for seed in range(3):
        checks = activations(seed=seed).checks
        assert [check.passed for check in checks] == [True] * 4
    errors = {activations(seed=seed).checks[3].error for seed in range(3)}
    assert len(errors) == 3


def test_a_wrong_slope_fails_its_check(monkeypatch):
    def bent(x, cdf):
        return x * cdf(x), cdf(x)

    monkeypatch.setitem(FUNCTIONS, "GELU", ("gelu", bent))
    failed = [check for check in activations().checks if not check.passed]
    assert [(check.name, check.where) for check in failed] == [("slopes_are_derivatives", "GELU")]


def test_the_finding_is_made_of_the_numbers(found):
    assert found.finding == (
        "Of standard normal inputs, 50% get no gradient through ReLU and 0% through GELU (1.5% a "
        "slope below 0.01); where the tanh form is furthest from GELU, at x = ±2.70, they are "
        "0.00047 apart."
    )


# In a model


def test_shares_are_those_of_the_oracle(inside, tiny):
    oracle = Oracle(tiny.hf, IDS)
    for layer in range(3):
        pre = oracle.at[f"{layer}.mlp_pre"]
        assert pre.shape == (7, 24)
        assert inside.off[layer] == pytest.approx((pre <= 0).sum() / pre.size)
        never = [column for column in pre.T if all(each <= 0 for each in column)]
        assert inside.off_neurons[layer] == len(never)
        assert inside.no_slope[0, layer] == inside.zero[0, layer] == inside.off[layer]
        x = torch.tensor(pre, requires_grad=True)
        (slope,) = torch.autograd.grad(functional.gelu(x, approximate="tanh").sum(), x)
        assert inside.flat[2, layer] == pytest.approx(float((slope.abs() < 0.01).double().mean()))
    assert 0 < inside.off_neurons.sum() < 72
    assert (inside.positions, inside.d_mlp) == (7, 24)
    assert inside.off_throughout == pytest.approx(inside.off_neurons / 24)


def test_a_shorter_prompt_leaves_more_neurons_off(tiny, inside):
    one = activations_of(tiny, IDS[:1]).inside
    assert (one.off_neurons >= inside.off_neurons).all()
    assert one.off_neurons.sum() > inside.off_neurons.sum()
    assert one.off_throughout == pytest.approx(one.off)


@pytest.mark.parametrize(
    ("name", "function"),
    [("gelu_new", "tanh GELU"), ("gelu", "GELU"), ("relu", "ReLU"), ("silu", "SiLU"),
     ("quick_gelu", "quick GELU"), ("gelu_pytorch_tanh", "tanh GELU")],
)  # fmt: skip
def test_the_models_own_function_is_recognised(name, function):
    model = resid.load(tiny_hf(activation_function=name))
    result = activations_of(model, IDS)
    assert result.functions[result.inside.own] == function
    assert result.checks[-1].name == "own_activation"
    assert result.failures == ()


def test_a_function_that_is_none_of_them_is_not_taken_for_one():
    result = activations_of(resid.load(tiny_hf(activation_function="tanh")), IDS)
    assert result.inside.own is None
    assert "own_activation" not in [check.name for check in result.checks]
    assert result.measured()["model"]["own"] is None


def test_the_finding_names_the_model(tiny):
    result = activations_of(tiny, IDS)
    share = 100 * result.inside.off_neurons.sum() / 72
    assert f"{share:.3g}% of the neurons stay at or below 0" in result.finding
    assert result.source.subject == tiny.name


def test_a_layer_that_is_not_finite_has_no_shares_and_is_named(tiny):
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_fc.bias[2] = torch.nan
    result = activations_of(resid.load(hf), IDS)
    (failed,) = result.failures
    assert (failed.name, failed.where) == ("finite", "1.mlp_pre at position 0")
    inside, whole = result.inside, activations_of(tiny, IDS).inside
    assert np.isfinite(inside.off).tolist() == [True, False, False]
    assert inside.off[0] == whole.off[0]
    for name in ("zero", "no_slope", "flat"):
        shares = getattr(inside, name)
        np.testing.assert_array_equal(shares[:, 0], getattr(whole, name)[:, 0])
        assert np.isnan(shares[:, 1:]).all()
    # ReLU, the first of the five, was taken for the model's own where nothing could be compared.
    assert inside.own is None and np.isnan(inside.errors).all()
    assert json.loads(result.to_json())["data"]["model"]["off"][1:] == [None, None]
