import dataclasses
import io
import itertools
import json
import math

import numpy as np
import pytest

from resid.render.corpus_words import describe_growth, describe_left_out, pair, perplexity
from resid.render.figure import draw, figure, save
from resid.render.terminal import make_console, render
from resid.render.terminal.corpus_triggers import in_context
from tests.render.corpus_samples import (
    make_corpus_lens,
    make_corpus_memory,
    make_corpus_norms,
    make_source,
    without_numbers,
)

MAKERS = [make_corpus_lens, make_corpus_norms, make_corpus_memory]


@pytest.mark.parametrize(
    ("n_layers", "tokens", "told"),
    [(1, 9, "it takes two layers"), (3, 5, "no token stands after position 0"), (3, 9, "finite")],
)
def test_why_there_is_no_growth(n_layers, tokens, told):
    norms = make_corpus_norms(n_layers)
    growth = dataclasses.replace(norms.growth, per_layer=math.nan)
    norms = dataclasses.replace(norms, growth=growth, tokens=tokens, tokens_at_start=5)
    assert describe_growth(norms).startswith("no growth per layer: ")
    assert told in describe_growth(norms)


def printed(result, encoding="utf-8"):
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    render(result, make_console(file))
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_no_line_of_a_table_is_wider_than_the_terminal(make, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = printed(make(n_layers=48))
    assert max(map(len, text.splitlines())) <= columns
    assert "1,234,567 tokens in 1,234 documents" in text.replace("\n", " ")
    assert "\x1b" not in text


@pytest.mark.parametrize("make", MAKERS)
def test_a_table_is_printed_in_ascii_where_the_terminal_has_no_more(make):
    text = printed(make(), "ascii")
    assert text.isascii()
    assert "\\u" not in text


def test_the_numbers_of_the_lens_are_in_the_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = printed(make_corpus_lens(n_layers=4))
    row = next(line for line in text.splitlines() if line.startswith("1.post"))
    assert row.split()[1:3] == ["8.00", "±0.01"]
    assert "50.0%" in row and "20.0%" in row and f"{math.exp(8):,.1f}" in row
    assert "shard 2 of 8" in text
    assert "windows of 1,024 tokens every 512" in text
    assert "not shown" not in text


def test_what_was_left_out_is_named_and_cannot_steer_a_terminal():
    lines = describe_left_out(make_source())
    assert lines[0].startswith(
        "left out, as they cannot be read: 5 lines: b\\x1b.txt line 7 (not JSON)"
    )
    assert lines[0].endswith("and 2 more")
    assert lines[1] == "1 document had no text"
    one = make_source(bad_lines=1, bad_lines_first=make_source().bad_lines_first[:1])
    assert "as it cannot be read: 1 line: " in describe_left_out(one)[0]


@pytest.mark.parametrize(
    ("value", "error", "told"),
    [
        (3.14159, 0.012, ("3.142", "±0.012")),
        (314.159, 12.0, ("314", "±12")),
        (3.14159, float("nan"), ("3.14", "")),
        (float("nan"), 1.0, ("n/a", "")),
    ],
)
def test_a_mean_is_written_as_far_as_its_error_allows(value, error, told):
    assert pair(value, error) == told


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (0.0, "1.0"),
        (7.5, "1,808.0"),
        (18.0, "6.6e7"),
        (math.log(9.96e9), "1.0e10"),
        (800.0, "2.7e347"),
        (1e30, "> 1e99999"),
    ],
)
def test_a_perplexity_is_written_however_large(loss, told):
    assert perplexity(loss) == told


@pytest.mark.parametrize("room", [8, 14, 30, 200])
def test_a_trigger_is_shown_whole_with_what_fits_around_it(room):
    console = make_console(io.StringIO())
    text = in_context(console, "a" * 40, "TOKEN", "b" * 40, room).plain
    assert "«TOKEN»" in text
    assert len(text) <= max(room, 7)
    if room == 30:
        assert text.startswith("…a") and text.endswith("b…")


def test_a_layer_that_nothing_fires_and_a_model_without_a_head():
    text = printed(make_corpus_memory(projection=None))
    assert "agrees" not in text
    assert "L1N1" in text and "L0N0" not in text
    assert "« times»" in text


def test_numbers_that_are_missing_are_null_in_json_and_loud_in_the_table():
    lens = without_numbers(make_corpus_lens())
    document = json.loads(lens.to_json(), parse_constant=pytest.fail)
    assert document["data"]["cross_entropy"] == [None] * 13
    assert "n/a" in printed(lens)
    save(lens, io.BytesIO(), format="png")


@pytest.mark.parametrize("make", MAKERS)
def test_json_has_the_axes_that_its_lists_follow(make):
    document = json.loads(make(n_layers=3).to_json())
    axes, data = document["axes"], document["data"]
    if "point" in axes:
        name = "cross_entropy" if "cross_entropy" in data else "mean_l2"
        assert len(data[name]) == len(axes["point"]) == 4
    else:
        assert len(data["fires"]) == len(data["agreement"]) == len(axes["layer"]) == 3
        assert len(data["fires"][0]) == 40
    assert document["source"]["settings"]["context"] == 1024


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("n_layers", [1, 2, 12, 48])
def test_a_figure_has_two_panels_whose_labels_do_not_meet(make, n_layers):
    drawn = figure(make(n_layers=n_layers))
    drawn.canvas.draw()
    assert len(drawn.axes) == 2
    for ax in drawn.axes:
        assert ax.get_xlabel() and ax.get_ylabel() and ax.get_legend()
        boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
        assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))
        legend = ax.get_legend().get_window_extent()
        assert legend.y0 >= ax.get_window_extent().y1 - 2
        assert legend.x1 <= drawn.bbox.x1
    left, right = (ax.get_legend().get_window_extent() for ax in drawn.axes)
    assert left.x1 <= right.x0
    title = drawn.texts[0].get_window_extent()
    assert title.y0 >= max(left.y1, right.y1) - 1


def test_the_curve_of_loss_has_the_numbers_and_their_band():
    lens = make_corpus_lens(se=0.5)
    ax = figure(lens).axes[0]
    loss = next(line for line in ax.lines if line.get_label() == "cross-entropy")
    assert np.array_equal(loss.get_ydata(), lens.cross_entropy)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(13.5)


def test_results_are_drawn_on_axes_of_the_user(monkeypatch):
    from matplotlib.figure import Figure

    for make in MAKERS:
        ax = Figure().add_subplot()
        assert draw(make(), ax) is ax
        assert ax.lines


def test_norms_without_position_0_say_nothing_of_it():
    assert "pos 0" not in printed(make_corpus_norms(first=False))
    save(make_corpus_norms(first=False), io.BytesIO(), format="svg")


@pytest.mark.parametrize("make", MAKERS)
def test_a_file_whose_name_the_font_cannot_show_is_named_in_a_figure(make):
    name = "日本 $x$.txt"
    files = ({"name": name, "bytes": 7, "sha256": "0"},)
    bad = ({"file": name, "line": 7, "reason": "not JSON"},)
    save(make(files=files, bad_lines_first=bad), io.BytesIO(), "svg")  # A warning is an error.
