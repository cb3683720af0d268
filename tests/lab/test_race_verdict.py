import math

import numpy as np
import pytest

from resid.lab.race_verdict import interval, student_t

# Two-sided, from the tables of Student's t; Fisher & Yates, and any textbook since.
TABLE = [
    (0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 3, 3.182), (0.95, 4, 2.776), (0.95, 9, 2.262),
    (0.99, 2, 9.925), (0.99, 5, 4.032), (0.99, 10, 3.169), (0.999, 2, 31.599), (0.999, 7, 5.408),
    (0.95, 30, 2.042), (0.95, 120, 1.980),
]  # fmt: skip


@pytest.mark.parametrize(("confidence", "freedom", "t"), TABLE)
def test_quantiles_are_those_of_the_tables(confidence, freedom, t):
    assert student_t(confidence, freedom) == pytest.approx(t, abs=6e-4)


@pytest.mark.parametrize("chance", [0.05, 1e-3, 1e-6, 1e-9])
def test_two_degrees_of_freedom_have_a_formula(chance):
    c = 1 - chance
    # 1 - c loses digits as c nears 1.
    assert student_t(c, 2) == pytest.approx(c * math.sqrt(2 / (1 - c * c)), rel=1e-5)
    assert student_t(c, 1) == pytest.approx(math.tan(math.pi * c / 2), rel=1e-5)


def test_an_interval_by_hand():
    found = interval(np.array([1.0, 2.0, 3.0]), np.array([1.5, 2.6, 3.4]), 0.95, pairs=1)
    # Differences .5 .6 .4: mean .5, deviation .1, half width 4.3027 x .1 / sqrt(3).
    assert found.difference == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5 - 0.24841, abs=1e-5)
    assert found.high == pytest.approx(0.5 + 0.24841, abs=1e-5)
    assert found.excludes_zero


def test_the_runs_are_paired():
    hard, easy = np.array([1.0, 5.0, 9.0]), np.array([1.11, 5.12, 9.1])
    assert interval(hard, easy, 0.95, pairs=1).excludes_zero
    assert not interval(hard, easy[::-1], 0.95, pairs=1).excludes_zero


def test_more_pairs_make_wider_intervals():
    one, ten = (interval(np.zeros(3), np.array([0.1, 0.2, 0.15]), 0.95, n) for n in (1, 10))
    assert ten.high - ten.low == pytest.approx(
        (one.high - one.low) * student_t(0.995, 2) / student_t(0.95, 2)
    )
    assert one.excludes_zero
    assert not ten.excludes_zero


def test_one_seed_has_no_interval():
    found = interval(np.array([1.0]), np.array([9.0]), 0.95, pairs=1)
    assert (found.difference, found.low, found.high) == (8, -math.inf, math.inf)
    assert not found.excludes_zero


@pytest.mark.parametrize("first", [math.nan, math.inf])
@pytest.mark.parametrize("second", [3.0, math.nan, math.inf])
def test_what_is_not_finite_is_no_finding(first, second):
    found = interval(np.array([1.0, first]), np.array([2.0, second]), 0.95, pairs=1)
    assert not found.excludes_zero


def test_noise_is_taken_for_a_finding_as_rarely_as_is_said():
    random = np.random.default_rng(0)
    # Five pairs at once, nothing but noise: in at most one race out of twenty a finding.
    races = [
        any(
            interval(*random.standard_normal((2, 3)), 0.95, pairs=5).excludes_zero for _ in range(5)
        )
        for _ in range(400)
    ]
    # 0.049 is expected; three standard errors are 0.032.
    assert 0.015 < np.mean(races) < 0.085
