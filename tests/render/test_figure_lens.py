import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm, to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from resid.errors import ResidError
from resid.render.figure import figure, plot
from resid.render.figure.lens import draw_lens
from resid.render.figure.style import ink_on, mark_token, text_width
from resid.results import Check

from .samples import HOSTILE, make_lens, with_nan


def drawn(lens, **options):
    """A figure as it comes out: what is only decided while drawing is decided."""
    made = figure(lens, **options)
    FigureCanvasAgg(made).draw()
    return made


def texts(labels):
    return [label.get_text() for label in labels]


def cells(ax, lens):
    """[point, pos] the cells' texts."""
    shape = (len(lens.points), len(lens.positions))
    found = np.full(shape, None, object)
    for text in ax.texts:
        j, i = text.get_position()
        assert found[i, j] is None
        found[i, j] = text.get_text()
    assert not np.any(np.equal(found, None))
    return found


def next_tokens(ax):
    (above,) = ax.child_axes
    return texts(above.get_xticklabels())


def test_the_picture_of_the_field():
    lens = make_lens()
    ax, bar = drawn(lens).axes
    assert texts(ax.get_xticklabels()) == ["0 The", "1 ␣capital", "2 ␣of", "3 ␣France", "4 ␣is"]
    assert next_tokens(ax) == ["␣capital", "␣of", "␣France", "␣is", "?"]
    assert texts(ax.get_yticklabels()) == list(lens.points)
    assert ax.get_ylim() == (-0.5, 12.5)
    assert cells(ax, lens)[0, 0] == mark_token(lens.top_tokens[0, 0, 0])
    assert (cells(ax, lens) == np.vectorize(mark_token)(lens.top_tokens[:, :, 0])).all()
    assert bar.get_ylabel() == "probability of the top token"


def test_colours_are_the_values_of_their_cells():
    lens = make_lens()
    (mesh,) = drawn(lens).axes[0].collections
    assert np.array_equal(mesh.get_array().reshape(13, 5), lens.top_probs[:, :, 0])
    assert mesh.get_clim() == (0, 1)


def test_repeated_tokens_are_separate_columns():
    lens = make_lens(("the", " cat", "the"))
    ax = drawn(lens).axes[0]
    assert texts(ax.get_xticklabels()) == ["0 the", "1 ␣cat", "2 the"]
    assert ax.get_xlim() == (-0.5, 2.5)


def test_positions_that_were_chosen_keep_their_names():
    lens = make_lens(("a", "b"))
    source = replace(lens.source, ids=(1,) * 6, tokens=tuple("uvwxyz"))
    ax = drawn(replace(lens, source=source, positions=(2, 5))).axes[0]
    assert texts(ax.get_xticklabels()) == ["2 w", "5 z"]
    assert next_tokens(ax) == ["x", "?"]


@pytest.mark.parametrize("show", ["prob", "rank"])
def test_no_text_is_read_as_mathematics(show):
    lens = make_lens(HOSTILE, HOSTILE, n_layers=2, target="$$")
    lens = replace(lens, source=replace(lens.source, model="$a$"))
    written = [text for text in drawn(lens, show=show).findobj(Text) if text.get_text()]
    assert len(written) > 3 * 15 + 30
    assert [text.get_text() for text in written if text.get_parse_math()] == []
    assert [text.get_text() for text in written if text.get_usetex()] == []


def test_hostile_tokens_are_shown_literally():
    lens = make_lens(HOSTILE, HOSTILE, n_layers=3)
    ax = drawn(lens).axes[0]  # a missing glyph would warn, and a warning is an error here
    labels = texts(ax.get_xticklabels())
    assert labels[:6] == [
        "0 $$", r"1 $\frac$", r"2 \n", r"3 \x1b", r"4 ␣\u65e5\u672c", r"5 ␣\U0001f917",
    ]  # fmt: skip
    assert re.fullmatch("6 x+…", labels[6])
    assert labels[7:] == [
        "7 _init", "8 [bold]", "9 </script>", "10 ", '11 "', r"12 ␣\u200f", "13 é", "14 →",
    ]  # fmt: skip


def test_raw_control_characters_never_reach_the_font():
    ax = drawn(make_lens(("\x1b", "\x00", "\t"), ("\x07", "\u202e", "\ud800"))).axes[0]
    assert texts(ax.get_xticklabels()) == [r"0 \x1b", r"1 \x00", r"2 \x09"]


@pytest.mark.parametrize(("n_tokens", "n_layers"), [(1, 1), (15, 6), (3, 48), (3, 96)])
def test_texts_stay_inside_their_cells(n_tokens, n_layers):
    made = drawn(make_lens(HOSTILE[-n_tokens:], HOSTILE, n_layers=n_layers))
    ax = made.axes[0]
    box = ax.get_window_extent()
    width, height = box.width / n_tokens, box.height / (n_layers + 1)
    assert len(ax.texts) == n_tokens * (n_layers + 1)
    for text in ax.texts:
        extent = text.get_window_extent()
        assert extent.width <= width
        assert extent.height <= height


@pytest.mark.parametrize("n_tokens", [1, 15, 60, 100, 1024])
def test_labels_do_not_overlap(n_tokens):
    lens = make_lens((HOSTILE * 69)[:n_tokens], n_layers=1, k=1)
    made = drawn(lens)
    ax = made.axes[0]
    for labels in (ax.get_xticklabels(), ax.child_axes[0].get_xticklabels(), ax.get_yticklabels()):
        boxes = [label.get_window_extent() for label in labels if label.get_text()]
        assert 0 < len(boxes) <= n_tokens + 5
        assert all(a.x1 <= b.x0 or a.y1 <= b.y0 for a, b in pairwise(boxes))
        for box in boxes:
            assert made.bbox.x0 <= box.x0 < box.x1 <= made.bbox.x1
            assert made.bbox.y0 <= box.y0 < box.y1 <= made.bbox.y1


def test_titles_and_captions_do_not_touch_the_axes():
    for lens in (make_lens(n_layers=1), make_lens(("token",) * 100, n_layers=1)):
        made = drawn(lens)
        ax = made.axes[0]
        inner = ax.get_tightbbox()
        title, *caption = [text.get_window_extent() for text in made.texts]
        assert len(caption) >= 4
        assert title.y0 >= inner.y1
        assert all(line.y1 <= inner.y0 for line in caption)
        assert all(line.y0 >= 0 and line.x1 <= made.bbox.width for line in caption)


def test_many_columns_have_no_text_in_cells():
    ax = drawn(make_lens(("a", " b") * 512, n_layers=2, k=1)).axes[0]
    assert len(ax.texts) == len(ax.lines) == 0
    assert texts(ax.get_xticklabels())[:3] == ["0 a", "10 a", "20 a"]


def test_not_finite_is_hatched_and_never_coloured():
    lens = with_nan(make_lens(target=" Paris", n_layers=6), slice(3, 6), 4)
    for show in ("kl", "rank"):
        ax = drawn(lens, show=show).axes[0]
        (mesh,) = ax.collections
        empty = np.ma.getmaskarray(mesh.get_array()).reshape(7, 5)
        assert np.argwhere(empty).tolist() == [[3, 4], [4, 4], [5, 4]]
        assert (mesh.get_facecolor().reshape(7, 5, 4)[empty][:, 3] == 0).all()
        assert ax.patch.get_hatch() == "////"
        assert (cells(ax, lens) == "n/a").tolist() == empty.tolist()


def test_finite_lens_has_no_hatches():
    assert drawn(make_lens()).axes[0].patch.get_hatch() is None


def test_all_cells_not_finite_still_draw():
    lens = make_lens(("a",), n_layers=2)
    lens = with_nan(lens, slice(0, 3), 0)
    for show in ("prob", "entropy"):
        assert (cells(drawn(lens, show=show).axes[0], lens) == "n/a").all()


@pytest.mark.parametrize(
    ("show", "label", "ticks"),
    [
        ("prob", "probability of the top token", ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        ("entropy", "entropy, nats", ["0", "2", "4", "6", "8"]),
        ("kl", "KL(final || point), nats", ["0", "0.8", "1.6", "2.4", "3.2", "4"]),
        ("rank", "rank of ␣Paris", ["1", "10", "100", "1,000", "10,000"]),
    ],
)
def test_colour_bar_names_quantity_and_unit(show, label, ticks):
    bar = drawn(make_lens(target=" Paris"), show=show).axes[1]
    assert bar.get_ylabel() == label
    assert texts(bar.get_yticklabels()) == ticks
    assert bar.yaxis_inverted() == (show != "prob")


def test_rank_is_on_a_log_scale_and_needs_a_target():
    (mesh,) = drawn(make_lens(target=" Paris"), show="rank").axes[0].collections
    assert isinstance(mesh.norm, LogNorm)
    assert mesh.norm.vmin == 1
    with pytest.raises(ResidError, match="rank of which token"):
        figure(make_lens(), show="rank")


def test_sure_is_dark_in_every_quantity():
    lens = make_lens(("a",), n_layers=2, target=" Paris")
    for show in ("prob", "entropy", "kl", "rank"):
        (mesh,) = drawn(lens, show=show).axes[0].collections
        brightness = mesh.get_facecolor()[:, :3].sum(1).reshape(3, 1)
        assert (brightness[0] > brightness[-1]).all()


def test_text_can_be_read_on_its_colour():
    assert ink_on((1, 1, 1)) == "#222222"
    assert ink_on((0.03, 0.19, 0.42)) == "white"
    lens = make_lens()
    ax = drawn(lens).axes[0]
    colours = {text.get_position(): to_hex(text.get_color()) for text in ax.texts}
    assert colours[0, 0] == "#222222"
    assert colours[0, 12] == "#ffffff"


def test_line_marks_the_settled_points():
    lens = make_lens()
    (line,) = drawn(lens).axes[0].lines
    x, y = line.get_data()
    assert x.tolist() == [-0.5, 0.5, 0.5, 1.5, 1.5, 2.5, 2.5, 3.5, 3.5, 4.5]
    wanted = [lens.points.index(at) - 0.5 for at in lens.settled_at]
    assert y[::2].tolist() == y[1::2].tolist() == wanted


def test_line_has_a_gap_where_nothing_settled():
    (line,) = drawn(with_nan(make_lens(n_layers=6), slice(3, 6), 2)).axes[0].lines
    assert np.isnan(line.get_ydata()).tolist() == [False] * 4 + [True] * 2 + [False] * 4


def test_caption_names_model_prompt_version_convention_and_check():
    lens = make_lens()
    lens = replace(lens, source=replace(lens.source, revision="607a30d783dfa663caf39e06633721c8d4"))
    title, *caption = texts(drawn(lens).texts)
    assert title == "Logit lens of gpt2"
    assert caption[:2] == ["resid 0.1.0, gpt2 at 607a30d", '"The capital of France is"']
    note = " ".join(caption[2:-1])
    assert "ln_final and the unembedding" in note
    assert "position p predicts token p + 1" in note
    assert "Orange line" in note
    assert caption[-1] == "top row = logits, error 2e-6 (tolerance 1e-5)"


def test_failed_check_is_red():
    check = Check("lens_equals_logits", 0.3, 1e-5, False, "3.post at position 2")
    last = drawn(replace(make_lens(), checks=(check,))).texts[-1]
    assert "FAILED: top row = logits, error 0.3" in last.get_text()
    assert to_hex(last.get_color()) == "#b00020"


def test_plot_draws_on_the_axes_that_are_given():
    made = Figure(figsize=(4, 3))
    left, right = made.subplots(1, 2)
    lens = make_lens(HOSTILE, HOSTILE)
    assert lens.plot(left) is left
    assert draw_lens(lens, right, show="entropy") is right
    FigureCanvasAgg(made).draw()
    assert len(left.get_xticklabels()) < 15
    assert not any(text.get_parse_math() for text in left.findobj(Text) if text.get_text())
    assert all(label.get_rotation() == 90 for label in left.get_xticklabels())
    assert len(made.axes) == 4


def test_plot_without_axes_makes_a_figure():
    ax = plot(make_lens(n_layers=1))
    assert ax.figure.axes[0] is ax
    assert len(ax.texts) == 10


def test_measured_width_is_no_less_than_the_drawn_one():
    made = Figure(dpi=360)
    for text in ("internationalisation", "␣Paris", "WWWW", "iiii", r"\u65e5", "AVAVAV"):
        width = made.text(0, 0, text, size=8).get_window_extent().width / 5
        assert width <= text_width(text, 8) * 1.02
        assert width > text_width(text, 8) * 0.85
