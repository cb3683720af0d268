from dataclasses import replace

import pytest

from resid.render.words import describe_check, describe_input, nats, probability, short
from resid.results import Check

from .samples import make_lens


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1.00"), (0.99949, ".999"), (0.5, ".500"), (0.001, ".001"), (0.0009, "9e-4"),
     (8.4e-12, "8e-12"), (0, "0"), (float("nan"), "n/a")],
)  # fmt: skip
def test_probability(value, text):
    assert probability(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.345, "2.35"), (-1e-7, "0.00"), (0, "0.00"), (float("inf"), "n/a")],
)
def test_nats_are_never_minus_zero(value, text):
    assert nats(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(2.2e-6, "2e-6"), (1e-5, "1e-5"), (0, "0"), (0.3, "0.3"), (2e12, "2e12")]
)
def test_short(value, text):
    assert short(value) == text


def test_passed_check_is_quiet_and_failed_check_names_the_place():
    check = Check("lens_equals_logits", 2.2e-6, 1e-5, True)
    assert describe_check(check) == "last point = logits, error 2e-6 (tolerance 1e-5)"
    failed = replace(check, error=0.3, passed=False, where="3.post at position 2")
    assert (
        describe_check(failed, "last row = logits")
        == "FAILED: last row = logits, error 0.3 (tolerance 1e-5): 3.post at position 2"
    )


def test_prompt_is_escaped_and_ids_stand_in_for_it():
    source = make_lens().source
    assert describe_input(replace(source, prompt="a\x1b\n b")) == r'"a\x1b\n b"'
    assert describe_input(replace(source, prompt=None)) == "ids 100, 101, 102, 103, 104"
