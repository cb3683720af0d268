import io
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

from resid.render.figure import draw, figure, save
from resid.render.lab_activations_words import percent, unseen
from resid.render.terminal import make_console, render
from resid.render.terminal.lab.plots import Curve, plot_curves
from resid.results.lab.activations import ActivationsInModel

from .lab_samples import make_activations


@pytest.fixture(scope="module")
def result():
    return make_activations()


def with_model(result, n_layers=3):
    depth = np.linspace(0.2, 0.9, n_layers)
    inside = ActivationsInModel(
        positions=5,
        d_mlp=40,
        own=2,
        close=1e-5,
        layers=tuple(range(n_layers)),
        errors=np.array([0.2, 5e-4, 1e-7, 0.2, 0.02]),
        off=depth,
        off_neurons=(20 * depth).astype(int),
        zero=np.ones((5, 1)) * depth,
        no_slope=np.ones((5, 1)) * depth,
        flat=np.ones((5, 1)) * depth / 10,
    )
    return replace(result, inside=inside)


def lines(result):
    file = io.StringIO()
    render(result, make_console(file))
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_plots_and_tables_fit(monkeypatch, result, width):
    monkeypatch.setenv("COLUMNS", str(width))
    shown = lines(with_model(result))
    assert max(map(cell_len, shown)) <= width
    frames = [line for line in shown if "|" in line[:8]]
    assert len(frames) == 30
    assert {line.index("|") for line in frames[:15]} == {frames[0].index("|")}
    missing = any("not shown at this width" in line for line in shown)
    assert missing == (width < 120)


def test_the_minima_are_shown_to_the_digits_that_are_known(result):
    shown = lines(result)
    first = next(i for i, line in enumerate(shown) if line.startswith("function"))
    rows = {line[:10].strip(): line for line in shown[first + 2 : first + 7]}
    assert "-0.169971 at -0.751792" in rows["GELU"]
    assert "-0.170041 at -0.752461" in rows["tanh GELU"]
    assert "0.000000 at x ≤ 0" in rows["ReLU"]
    assert "50.0%" in rows["ReLU"]


def test_a_curve_that_lies_on_another_is_said_not_to_be_drawn(result):
    assert unseen(result) == [("tanh GELU", "GELU", pytest.approx(4.7324e-4, rel=1e-4))]
    assert "tanh GELU is not drawn: it lies on GELU, 4.7e-04 apart at most" in lines(result)


def test_the_layers_of_a_model(result):
    shown = lines(with_model(result))
    start = next(i for i, line in enumerate(shown) if line.startswith("layer")) + 2
    assert shown[start].split()[:4] == ["0", "20.0%", "4", "10.0%"]
    assert "33 of 120 neurons at or below 0 at all 5 positions" in shown


def test_a_model_with_a_function_of_its_own(result):
    strange = with_model(result)
    strange = replace(strange, inside=replace(strange.inside, own=None))
    assert "whose own function is none of the five" in " ".join("\n".join(lines(strange)).split())
    save(strange, io.BytesIO(), "png")


def test_an_ascii_output_gets_ascii(result):
    class Ascii(io.StringIO):
        encoding = "ascii"

    file = Ascii()
    render(with_model(result), make_console(file))
    assert file.getvalue().isascii()


def plot(monkeypatch, width, *curves, **options):
    monkeypatch.setenv("COLUMNS", str(width))
    file = io.StringIO()
    x = np.linspace(-1, 1, 41)
    made = [Curve(sign, y(x)) for sign, y in curves]
    plot_curves(make_console(file), x, made, **({"height": 11} | options))
    return file.getvalue().splitlines()


def test_a_line_is_drawn_from_corner_to_corner(monkeypatch):
    shown = plot(monkeypatch, 50, ("a", lambda x: x))
    rows = shown[:11]
    assert [row.index("a") for row in rows] == sorted(
        (row.index("a") for row in rows), reverse=True
    )
    assert rows[0].endswith("a")
    assert rows[10].split("|")[1].startswith("a")
    assert rows[0].startswith(" 1.00 |")
    assert rows[5].startswith(" 0.00 |")
    assert rows[10].startswith("-1.00 |")
    assert shown[12].split() == ["-1", "0", "1"]
    assert all(cell_len(row) <= 50 for row in shown)


def test_a_jump_is_drawn_as_a_line(monkeypatch):
    shown = plot(monkeypatch, 60, ("r", lambda x: (x > 0).astype(float)))
    assert all("r" in row for row in shown[:11])


def test_the_first_curve_lies_on_top(monkeypatch):
    shown = plot(monkeypatch, 40, ("a", np.abs), ("b", np.abs))
    assert not any("b" in row for row in shown)


def test_gaps_and_flat_lines_are_no_crash(monkeypatch):
    shown = plot(monkeypatch, 40, ("n", lambda x: np.full_like(x, np.nan)), ("f", np.zeros_like))
    assert sum("f" in row for row in shown) == 1
    assert plot(monkeypatch, 40, ("n", lambda x: np.full_like(x, np.inf)))


def test_shares_in_few_digits():
    assert [percent(s) for s in (0, 1, 0.5, 0.0149, 1e-9, np.nan)] == [
        "0%", "100%", "50.0%", "1.5%", "<0.1%", "n/a",
    ]  # fmt: skip


# The figure


def test_every_function_is_drawn_in_both_upper_panels(result):
    drawn = figure(result)
    for ax, values in ((drawn.axes[0], result.value), (drawn.axes[1], result.slope)):
        lines = {
            line.get_label(): line for line in ax.lines if line.get_label() in result.functions
        }
        assert tuple(lines) == result.functions
        for name, row in zip(result.functions, values, strict=True):
            data = lines[name].get_ydata()
            assert np.array_equal(data, row[: len(data)])


def test_the_difference_is_in_ten_thousandths(result):
    ax = figure(result).axes[2]
    heights = ax.lines[1].get_ydata()
    assert heights.max() == pytest.approx(4.732, abs=2e-3)
    assert [text.get_text() for text in ax.texts] == ["+4.7324 at ±2.6989", "-2.3367 at ±1.3645"]


def test_without_a_model_shares_of_normal_inputs_are_drawn(result):
    ax = figure(result).axes[3]
    assert ax.texts[0].get_text() == "50.0%"
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(100 * result.normal_flat)


@pytest.mark.parametrize("n_layers", [1, 3, 48])
def test_with_a_model_its_layers_are_drawn(result, n_layers):
    ax = figure(with_model(result, n_layers)).axes[3]
    assert [line.get_label() for line in ax.lines] == [
        "at or below 0", "neurons that stay there", "flat in tanh GELU, its own",
    ]  # fmt: skip
    assert np.array_equal(ax.lines[0].get_ydata(), 100 * with_model(result, n_layers).inside.off)


def test_it_draws_on_axes_that_exist(result):
    ax = figure(result).axes[3]
    assert draw(result, ax) is ax


def test_pictures_have_a_size_and_the_same_bytes(result):
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        save(with_model(result), file, "png")
    assert files[0].getvalue() == files[1].getvalue()
    assert len(files[0].getvalue()) > 20_000
