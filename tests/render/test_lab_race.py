import io
from dataclasses import replace

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.cells import cell_len

from resid.render.figure import draw, figure, plot, save
from resid.render.lab_race_words import reach, rule, span
from resid.render.terminal import make_console, render
from resid.results import Check

from .lab_samples import make_race


def lines(race):
    file = io.StringIO()
    render(race, make_console(file))
    return file.getvalue().splitlines()


def table(lines, head):
    start = next(i for i, line in enumerate(lines) if line.startswith(head)) + 2
    return lines[start : lines.index("", start)]


def test_race_at_80_columns():
    race = make_race()
    shown = lines(race)
    assert shown[0].startswith("lab race of GPTs of 4 layers, d_model 64")
    assert [line.split()[0] for line in table(shown, "variant")] == [
        "base", "no-residual", "post-ln", "relu", "base",
    ]  # fmt: skip
    assert [line.split()[-1] for line in table(shown, "against base")] == [
        "worse", "better", "noise", "noise",
    ]  # fmt: skip
    assert "Student's t on differences paired run by run, 2 degrees of freedom" in " ".join(shown)
    told = (
        f"no-residual is worse than base by {race.difference[0]:.2f} nats a byte; post-ln is better"
    )
    assert any(line.startswith(told) for line in shown)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_tables_are_aligned_and_fit(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    shown = lines(make_race())
    assert max(map(cell_len, shown)) <= width
    for head in ("variant", "against base"):
        rows = table(shown, head)
        rule = shown[shown.index(rows[0]) - 1]
        assert set(rule) == {"─"}
        assert all(cell_len(row) <= cell_len(rule) for row in rows)
    missing = any("not shown at this width" in line for line in shown)
    assert missing == (width < 80)


def test_a_race_of_all_pairs_names_both(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    rows = table(lines(make_race(all_pairs=True)), "pair")
    assert len(rows) == 10
    assert rows[4].startswith("post-ln - no-residual")
    assert rows[4].split()[-1] == "better"


def test_an_output_without_blocks_gets_signs_that_it_has():
    class Ascii(io.StringIO):
        encoding = "ascii"

    file = Ascii()
    render(make_race(), make_console(file))
    assert file.getvalue().isascii()


def test_one_seed_is_said_to_tell_nothing():
    race = make_race(seeds=1)
    shown = lines(race)
    assert all(line.endswith("no verdict") for line in table(shown, "against base"))
    assert "no verdict; ask for at least 2 seeds" in rule(race)
    assert reach(race) == ""


def test_a_loss_that_is_not_finite_is_loud():
    race = make_race()
    loss = race.loss.copy()
    loss[3, 1, 2] = np.nan
    difference, low, high = (each.copy() for each in (race.difference, race.low, race.high))
    difference[2] = low[2] = high[2] = np.nan
    checks = (Check("finite", 1.0, 0.0, False, "relu, seed 1, step 100"),)
    broken = replace(race, loss=loss, difference=difference, low=low, high=high, checks=checks)
    shown = lines(broken)
    assert "n/a" in table(shown, "variant")[3]
    assert table(shown, "against base")[2].endswith("no verdict")
    assert any("FAILED: every loss is finite" in line for line in shown)
    assert "1 pair without a verdict" in broken.finding
    save(broken, io.BytesIO(), "png")


def test_an_interval_has_its_signs():
    assert span(-0.0204, 1.5) == "-0.020 to +1.500"
    assert span(-np.inf, np.inf) == "none"


# The figure


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_intervals_are_drawn_where_they_are():
    race = make_race()
    axes = plot(race)
    bars = [line for line in axes.lines if len(line.get_xdata()) == 2 and line.get_linewidth() == 2]
    ends = [tuple(line.get_xdata()) for line in bars]
    assert ends == list(zip(race.low, race.high, strict=True))
    assert texts(axes) == ["worse", "better", "noise", "noise"]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["no-residual", "post-ln", "relu", "base (2)"]
    assert "final loss minus that of base, nats a byte; 95% intervals" in axes.get_xlabel()


def test_every_variant_has_a_panel_with_the_first_beside_it():
    race = make_race()
    panels = figure(race).axes[1:]
    assert [panel.get_title(loc="left") for panel in panels] == list(race.variants[1:])
    for i, panel in enumerate(panels, 1):
        reference, own = panel.lines[0], panel.lines[1]
        assert np.allclose(reference.get_ydata(), race.loss[0].mean(0))
        assert np.allclose(own.get_ydata(), race.loss[i].mean(0))
        low, high = race.loss[i, :, -1].min(), race.loss[i, :, -1].max()
        corners = panel.collections[1].get_paths()[0].vertices[:, 1]
        assert low == pytest.approx(corners[np.argmin(abs(corners - low))])
        assert high == pytest.approx(corners[np.argmin(abs(corners - high))])
    assert {panel.get_ylim() for panel in panels} == {panels[0].get_ylim()}


def test_a_verdict_has_one_colour_in_both_parts():
    drawn = figure(make_race())
    words = [text.get_color() for text in drawn.axes[0].texts]
    curves = [panel.lines[1].get_color() for panel in drawn.axes[1:]]
    assert words == curves
    assert len({matplotlib.colors.to_hex(colour) for colour in words}) == 3


@pytest.mark.parametrize(
    "race",
    [
        make_race(("base",)),
        make_race(("base", "relu")),
        make_race(seeds=1),
        make_race(all_pairs=True),
        make_race(tuple(f"no-residual+no-norm+8x-equal+swiglu ({i})" for i in range(2, 16))),
    ],
    ids=["alone", "two", "one seed", "all pairs", "many and long"],
)
def test_every_race_can_be_drawn(race):
    drawn = figure(race)
    width, height = drawn.get_size_inches()
    assert width < 16
    assert height < 14
    file = io.BytesIO()
    save(race, file, "png")
    assert file.tell() > 5000


def test_it_draws_on_axes_that_exist():
    axes = Figure().add_axes((0.2, 0.2, 0.7, 0.7))
    assert draw(make_race(), axes) is axes
