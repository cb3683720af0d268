"""Axes: arrays that share an axis name share its size, or the error names both."""

from dataclasses import dataclass

import numpy as np
import pytest

from resid.axes import axes, check_axes


@dataclass
class Inner:
    rank: object = axes("point pos")


@dataclass
class Outer:
    points: tuple = axes("point")
    entropy: object = axes("point pos")
    title: str = "no axes"
    target: Inner | None = None


def test_sizes_of_all_axes_are_reported():
    assert check_axes(Outer(("embed", "0.post"), np.zeros((2, 5)))) == {"point": 2, "pos": 5}


def test_fields_that_disagree_are_both_named():
    expected = r"Outer\.entropy has 3 along 'point', Outer\.points has 2"
    with pytest.raises(ValueError, match=expected):
        check_axes(Outer(("embed", "0.post"), np.zeros((3, 5))))


def test_a_field_with_another_number_of_axes_is_named():
    with pytest.raises(ValueError, match=r"Outer\.entropy is \[point pos\], but its shape is \(2,"):
        check_axes(Outer(("embed", "0.post"), np.zeros((2, 5, 1))))


def test_a_record_inside_a_record_takes_part():
    outer = Outer(("embed", "0.post"), np.zeros((2, 5)), target=Inner(np.zeros((2, 4))))
    expected = r"Outer\.target\.rank has 4 along 'pos', Outer\.entropy has 5"
    with pytest.raises(ValueError, match=expected):
        check_axes(outer)


def test_an_absent_field_is_left_out():
    assert check_axes(Outer(("embed",), None)) == {"point": 1}
