"""Followed tokens and baseline, in the terminal and as figures."""

import io
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from rich.cells import cell_len

from resid.errors import ResidError
from resid.render.figure import draw_followed
from resid.render.figure.lens_followed import spread_out
from resid.render.figure.style import mark_token
from resid.render.lens_words import leading_stretches
from resid.render.terminal import make_console
from resid.render.terminal.lens_followed import spark

from .samples import HOSTILE, make_lens, with_baseline, with_followed, with_nan
from .test_figure_lens import drawn
from .test_terminal_lens import body, lines

POINTS = ("embed", "0.post", "1.post", "2.post")


def section(text):
    """The lines from the followed tokens on."""
    return text[next(i for i, line in enumerate(text) if line.startswith("every token that")) :]


class Ascii(io.StringIO):
    encoding = "ascii"


@pytest.mark.parametrize(
    ("leads", "expected"),
    [
        ((1, 1, 1, 1), "embed-2.post"),
        ((0, 1, 0, 1), "0.post, 2.post"),
        ((1, 0, 1, 1), "embed, 1.post-2.post"),
        ((0, 0, 0, 0), ""),
    ],
)
def test_neighbours_that_lead_are_joined(leads, expected):
    assert leading_stretches(POINTS, np.array(leads, bool)) == expected


def test_a_spark_reaches_from_zero_to_its_own_peak():
    values = np.array([0, 0.01, 0.1, 0.199, 0.2, np.nan])
    assert spark(make_console(io.StringIO()), values) == "▁▁▅██?"
    assert spark(make_console(Ascii()), values) == "..+@@?"
    assert spark(make_console(io.StringIO()), np.zeros(3)) == "▁▁▁"


def test_one_line_for_every_followed_token():
    lens = with_followed(make_lens())
    rows = body(section(lines(lens)))
    which = lens.followed.at(4)
    assert len(rows) == len(which) > 2
    for row, i in zip(rows, which, strict=True):
        assert row.startswith(f'"{lens.followed.tokens[i]}"')
        assert leading_stretches(lens.points, lens.followed.leads[:, i]).split(",")[0] in row
    leader = next(r for r, i in zip(rows, which, strict=True) if lens.followed.leads[-1, i])
    assert leader.split()[-1] == ".950"


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("n_layers", [12, 96])
def test_no_line_is_wider_than_the_terminal(monkeypatch, width, n_layers):
    monkeypatch.setenv("COLUMNS", str(width))
    lens = with_baseline(with_followed(make_lens(HOSTILE, HOSTILE, n_layers=n_layers)))
    for position in range(0, len(HOSTILE), 3):
        text = section(lines(lens, positions=[position]))
        rule = next(line for line in text if line.startswith("─"))
        assert {cell_len(row) for row in body(text)} == {cell_len(rule)}
        assert cell_len(rule) <= width
    shown = " ".join(text)
    assert ("not shown" in shown) == (width < 80)
    assert ("one sign for" in shown) == (n_layers == 96 or width == 20)


def test_an_encoding_without_blocks_gets_plain_signs():
    file = Ascii()
    from resid.render.terminal import render

    render(with_followed(make_lens()), make_console(file))
    text = file.getvalue()
    assert text.isascii()
    assert all("@" in line for line in body(section(text.splitlines()), "-"))


def test_a_grid_names_the_position_of_every_list():
    text = lines(with_followed(make_lens()), positions=[1, 3], grid=True)
    heads = " ".join(text)
    assert 'leads somewhere after position 1, " capital", with' in heads
    assert 'leads somewhere after position 3, " France", with' in heads
    assert not any(a == b == "" for a, b in pairwise(text))


def test_where_nothing_is_finite_no_token_is_followed():
    lens = with_followed(with_nan(make_lens(), slice(0, 13), 4))
    assert section(lines(lens))[1] == "none: no point is finite"
    assert section(lines(lens, positions=[3]))[1] == ""


def test_the_baseline_stands_in_two_rows_below_the_points(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    text = lines(with_baseline(make_lens(k=2, target=" Paris")))
    at = next(i for i, line in enumerate(text) if line.startswith("nothing "))
    assert text[at - 1] == ""
    assert text[at].split() == ["nothing", '"', 'z0"', ".100", '"', 'z1"', ".050", "8.25", "3.40"]
    assert text[at + 1].split() == ["random", "7.50", "4.40"]
    assert text[at].index("8.25") + 4 == text[4].index("entropy") + 7
    sentences = " ".join(" ".join(text[at + 2 :]).split())
    assert "entropy 8.25, KL to final 3.40." in sentences
    assert "7.50 (6.50 to 7.75), KL to final 4.40 (2.40 to 6.40)." in sentences
    assert "64 directions of equal length (seed 0)" in sentences
    assert "up to its epsilon: both hold for every point" in sentences


@pytest.mark.parametrize("width", [40, 80, 200])
def test_baseline_rows_keep_the_table_aligned(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    plain = make_lens(HOSTILE, HOSTILE, target=" Paris")
    for position in range(0, len(HOSTILE), 4):
        without = lines(plain, positions=[position])
        table = body(lines(with_baseline(plain), positions=[position]))
        assert [row.split() for row in table] == [row.split() for row in body(without)]
        assert max(map(cell_len, table)) <= width


def test_without_the_options_nothing_is_said_of_them():
    text = "\n".join(lines(make_lens()) + lines(make_lens(), grid=True))
    assert not any(word in text for word in ("nothing", "random", "somewhere"))


def test_a_figure_shows_a_line_for_every_followed_token():
    lens = with_followed(make_lens())
    ax = drawn(lens, follow=4).axes[0]
    which = lens.followed.at(4)
    curves = [line for line in ax.lines if line.get_linestyle() != "None"]
    dots = [line for line in ax.lines if line.get_linestyle() == "None"]
    assert len(curves) == len(dots) == len(which)
    for curve, dot, i in zip(curves, dots, which, strict=True):
        np.testing.assert_allclose(curve.get_ydata(), np.exp(lens.followed.logprob[:, i]))
        assert dot.get_xdata().tolist() == np.flatnonzero(lens.followed.leads[:, i]).tolist()
    assert ax.get_ylim() == (-0.02, 1.02)
    assert ax.get_legend() is None
    names = {text.get_text().rsplit(" ", 1)[0] for text in ax.texts}
    assert names == {mark_token(lens.followed.tokens[i]) for i in which}
    assert ax.get_xticklabels()[0].get_text() == "embed"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("point of the residual stream", "probability")


@pytest.mark.parametrize(("n_layers", "position"), [(3, 0), (12, 2), (48, 5), (96, 14)])
def test_labels_do_not_overlap_and_stay_on_the_figure(n_layers, position):
    lens = with_followed(make_lens(HOSTILE, HOSTILE, n_layers=n_layers))
    made = drawn(lens, follow=position)
    ax = made.axes[0]
    assert len(ax.texts) == len(lens.followed.at(position))
    boxes = [Text.get_window_extent(text) for text in ax.texts]  # without the arrow
    for a, b in pairwise(sorted(boxes, key=lambda box: box.y0)):
        assert a.y1 <= b.y0 + 0.5
    for text, box in zip(ax.texts, boxes, strict=True):
        assert text.arrow_patch.get_window_extent().x1 <= box.x0
    ticks = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert all(a.x1 <= b.x0 for a, b in pairwise(ticks))
    for box in boxes + ticks:
        assert made.bbox.x0 <= box.x0 < box.x1 <= made.bbox.x1
        assert made.bbox.y0 <= box.y0 < box.y1 <= made.bbox.y1
    assert all(box.x0 > ax.get_window_extent().x1 for box in boxes)


def test_hostile_names_are_written_literally():
    lens = make_lens(HOSTILE, ("_init", "$$", r"$\frac$", " 日本", "x" * 60), n_layers=30)
    ax = drawn(with_followed(lens), follow=3).axes[0]
    names = {text.get_text().rsplit(" ", 1)[0] for text in ax.texts}
    assert {"_init", "$$", r"$\frac$", r"␣\u65e5\u672c"} <= names
    assert any(name.startswith("xxx") and name.endswith("…") for name in names)
    assert not any(text.get_parse_math() for text in ax.findobj(Text) if text.get_text())


def test_the_caption_names_the_position_and_the_baseline():
    lens = with_baseline(with_followed(make_lens()))
    for options in ({"follow": 2}, {}):
        text = " ".join(text.get_text() for text in drawn(lens, **options).texts)
        assert "64 directions of equal length (seed 0)" in text
        assert "KL to final 3.20" in text if options else "KL to final 3.40" in text
        assert ("after position 2, ␣of;" in text) == bool(options)
    assert "directions" not in " ".join(text.get_text() for text in drawn(make_lens()).texts)


def test_flips_are_told_below_the_grid():
    lens = make_lens()
    text = " ".join(text.get_text() for text in drawn(lens).texts)
    assert f"flips {lens.flips.min()} to {lens.flips.max()} times on the way." in text
    text = " ".join(text.get_text() for text in drawn(replace(lens, flips=np.ones(5, int))).texts)
    assert "flips 1 time on the way." in text


def test_titles_captions_and_labels_do_not_touch():
    made = drawn(with_baseline(with_followed(make_lens())), follow=4)
    boxes = [text.get_window_extent() for text in made.texts]
    assert all(below.y1 <= above.y0 + 0.5 for above, below in pairwise(boxes[1:]))
    lowest = made.axes[0].xaxis.label.get_window_extent().y0
    assert max(box.y1 for box in boxes[1:]) <= lowest


def test_axes_of_ones_own_get_as_many_labels_as_fit():
    ax = Figure(figsize=(3, 1.2)).add_subplot()
    lens = with_followed(make_lens(n_layers=48))
    assert draw_followed(lens, ax) is ax
    assert 2 <= len(ax.texts) < len(lens.followed.at(4))
    first = max(lens.followed.at(4), key=lambda i: lens.followed.logprob[-1, i])
    assert ax.texts[0].get_text() == f"{mark_token(lens.followed.tokens[first])} .950"


def test_nothing_to_draw_is_said():
    ax = Figure().add_subplot()
    with pytest.raises(ResidError, match="no token was followed"):
        draw_followed(make_lens(), ax)
    with pytest.raises(ResidError, match="position 9 was not decoded"):
        draw_followed(with_followed(make_lens()), ax, position=9)


def test_a_position_without_a_finite_point_gives_an_empty_figure():
    lens = with_followed(with_nan(make_lens(), slice(0, 13), 4))
    assert len(drawn(lens, follow=4).axes[0].texts) == 0
    partly = with_followed(with_nan(make_lens(), slice(9, 13), 4))
    ax = drawn(partly, follow=4).axes[0]
    assert {text.get_text().rsplit(" ", 1)[1] for text in ax.texts} == {"n/a"}


def test_places_keep_their_distance_and_their_order():
    random = np.random.default_rng(0)
    for _ in range(200):
        n = int(random.integers(1, 11))
        wanted = -np.sort(-(random.uniform(0, 100, n) ** random.uniform(0.1, 1)))
        places = spread_out(wanted, 10, 100)
        assert (places[:-1] - places[1:] >= 10 - 1e-9).all()
        assert places.min() >= 0
        assert places.max() <= 100
    np.testing.assert_array_equal(spread_out(np.array([90.0, 50, 20]), 10, 100), [90, 50, 20])
