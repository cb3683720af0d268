"""Ticks: as many as there is room for, at round numbers, none over another."""

import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from resid.render.figure import ticks


@pytest.fixture
def ax():
    figure = Figure(figsize=(4, 3))
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def boxes(ax, labels):
    ax.figure.canvas.draw()
    found = [label.get_window_extent() for label in labels if label.get_text()]
    return sorted(found, key=lambda box: (box.x0, box.y0))


@pytest.mark.parametrize("n_layers", [1, 2, 12, 48, 100, 1000])
@pytest.mark.parametrize("label", [ticks.label_points, ticks.label_layers])
def test_names_below_the_axes_do_not_meet(ax, label, n_layers):
    label(ax, n_layers)
    found = boxes(ax, ax.get_xticklabels())
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(found))
    names = [each.get_text() for each in ax.get_xticklabels()]
    assert names[0] == ("embed" if label is ticks.label_points else "0")
    assert n_layers < 12 or len(names) >= 2
    # A tick stands where what it names is drawn.
    if label is ticks.label_points:
        assert ticks.depths(names) == ax.get_xticks().tolist()
        assert names[-1] == f"{n_layers - 1}.post"
        marks = [*ax.get_xticks(), *ax.get_xticks(minor=True)]
        assert sorted(marks) == list(range(n_layers + 1))
    else:
        assert names == [str(int(at)) for at in ax.get_xticks()]


@pytest.mark.parametrize("values", [[3.0], [1, 1.0001], [5, 70], [1e-30, 1e30], [0, -1, np.nan, 2]])
def test_a_log_scale_has_a_few_round_numbers_inside(ax, values):
    ticks.log_scale(ax, np.array(values, dtype=float))
    low, high = ax.get_ylim()
    positive = [value for value in values if value > 0]
    assert low < min(positive) <= max(positive) < high
    assert high / low >= 1.999
    shown = ax.get_yticks().tolist()
    assert 1 <= len(shown) <= 8
    assert all(low <= tick <= high for tick in shown)
    assert [float(f"{tick:.2g}") for tick in shown] == shown
    found = sorted(boxes(ax, ax.get_yticklabels()), key=lambda box: box.y0)
    assert all(one.y1 < other.y0 for one, other in itertools.pairwise(found))


@pytest.mark.parametrize("values", [[], [0.0, -2], [np.nan]])
def test_without_a_positive_number_there_are_no_ticks(ax, values):
    ticks.log_scale(ax, np.array(values))
    assert ax.get_yscale() == "linear"
    assert not len(ax.get_yticks())
