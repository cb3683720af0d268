from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from resid.render.figure import figure, plot, save
from resid.render.figure.norms import draw_norms

from .norm_samples import MASSIVE, make_norms, with_hole
from .samples import HOSTILE


def drawn(norms):
    """A figure as it comes out: what is only decided while drawing is decided."""
    made = figure(norms)
    FigureCanvasAgg(made).draw()
    return made


def texts(labels):
    return [label.get_text() for label in labels]


def line(ax, label):
    (found,) = [each for each in ax.lines if each.get_label() == label]
    return found


def test_norms_are_lines_on_a_log_axis():
    norms = make_norms()
    ax = drawn(norms).axes[0]
    assert ax.get_yscale() == "log"
    median = line(ax, "median over positions")
    assert np.allclose(median.get_ydata(), np.median(norms.l2[:, 1:], axis=1))
    assert median.get_xdata().tolist() == list(range(13))
    assert np.allclose(line(ax, "position 0, The").get_ydata(), norms.l2[:, 0])
    fit = line(ax, "×1.200 per layer, R² .98")
    assert fit.get_xdata().tolist() == list(range(1, 13))
    assert np.allclose(fit.get_ydata(), norms.growth.fitted_l2)
    assert fit.is_dashed()
    assert ax.get_ylabel() == "L2 norm of the residual stream"


def test_band_reaches_from_the_smallest_to_the_largest():
    norms = make_norms(n_layers=3)
    band = drawn(norms).axes[0].collections[0]
    assert band.get_label() == "smallest to largest"
    ys = band.get_paths()[0].vertices[:, 1]
    assert ys.min() == pytest.approx(norms.l2[:, 1:].min())
    assert ys.max() == pytest.approx(norms.l2[:, 1:].max())


def test_writes_stand_between_the_points_that_they_join():
    norms = make_norms(n_layers=3)
    _, sizes, ratios = drawn(norms).axes
    for ax, what in ((sizes, "l2"), (ratios, "ratio")):
        attention, mlp = line(ax, "attention"), line(ax, "MLP")
        assert attention.get_xdata().tolist() == [0.25, 1.25, 2.25]
        assert mlp.get_xdata().tolist() == [0.75, 1.75, 2.75]
        wanted = np.median(getattr(norms, f"mlp_out_{what}")[:, 1:], axis=1)
        assert np.allclose(mlp.get_ydata(), wanted)
    assert sizes.get_ylabel() == "L2 norm of the write"
    assert ratios.get_ylabel() == "write / stream it is added to"


def test_mids_lie_half_way():
    ax = drawn(make_norms(n_layers=2, mids=True)).axes[0]
    xs = line(ax, "median over positions").get_xdata().tolist()
    assert xs == [0, 0.5, 1, 1.5, 2]


@pytest.mark.parametrize("n_layers", [1, 3, 12, 48, 96])
def test_texts_do_not_overlap(n_layers):
    made = drawn(make_norms(n_layers=n_layers, excluded=(0, 1, 2)))
    for ax in made.axes:
        for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
            boxes = [label.get_window_extent() for label in labels if label.get_visible()]
            assert all(a.x1 <= b.x0 or a.y1 <= b.y0 for a, b in pairwise(boxes))
    regions = [ax.get_tightbbox() for ax in made.axes]
    regions += [text.get_window_extent() for text in made.texts]
    for a, b in combinations(regions, 2):
        assert a.x1 <= b.x0 + 0.5 or b.x1 <= a.x0 + 0.5 or a.y1 <= b.y0 + 0.5 or b.y1 <= a.y0 + 0.5
    for region in regions:
        assert made.bbox.x0 <= region.x0 < region.x1 <= made.bbox.x1
        assert made.bbox.y0 <= region.y0 < region.y1 <= made.bbox.y1


def test_points_are_named_as_far_as_there_is_room():
    ticks = texts(drawn(make_norms(n_layers=3)).axes[0].get_xticklabels())
    assert ticks == ["embed", "0.post", "1.post", "2.post"]
    ticks = texts(drawn(make_norms(n_layers=48)).axes[0].get_xticklabels())
    assert ticks == ["embed", "10.post", "20.post", "30.post", "40.post", "47.post"]


def test_caption_names_what_was_left_out_and_the_checks():
    title, *caption = texts(drawn(make_norms(outliers=MASSIVE)).texts)
    assert title == "Stream norms of gpt2"
    assert caption[:2] == ["resid 0.1.0, gpt2", '"The capital of France is"']
    note = " ".join(caption[2:-1])
    assert "Medians, bands and fit: positions 1 to 4" in note
    assert "position 0 is left out and drawn apart" in note
    assert "The norm grows on 100% of the steps" in note
    assert "Massive activation in dimension 447" in note
    assert caption[-1:] == [
        "embed + all writes = last point, error 2e-7 (tolerance 1e-4)",
    ]


def test_no_text_is_read_as_mathematics():
    norms = make_norms(tokens=HOSTILE, excluded=tuple(range(5)))
    norms = replace(norms, source=replace(norms.source, model="$a$"))
    written = [text for text in drawn(norms).findobj(Text) if text.get_text()]
    assert len(written) > 30
    assert [text.get_text() for text in written if text.get_parse_math()] == []
    assert [text.get_text() for text in written if text.get_usetex()] == []
    legend = texts(drawn(norms).axes[0].get_legend().get_texts())
    assert legend[3:8] == [
        "position 0, $$", r"position 1, $\frac$", r"position 2, \n", r"position 3, \x1b",
        r"position 4, ␣\u65e5\u672c",
    ]  # fmt: skip


def test_one_token_is_one_line():
    ax = drawn(make_norms(tokens=("The",))).axes[0]
    assert [each.get_label() for each in ax.lines] == ["position 0, The"]
    assert len(ax.collections) == 0


def test_model_that_writes_nothing_still_draws():
    norms = make_norms(n_layers=3)
    zeros = {name: 0 * norms.attn_out_l2 for name in (
        "attn_out_l2", "attn_out_ratio", "mlp_out_l2", "mlp_out_ratio")}  # fmt: skip
    flat = replace(norms, l2=np.full_like(norms.l2, 7.0), **zeros)
    ax, sizes, _ = drawn(flat).axes
    low, high = ax.get_ylim()
    assert high / low >= 2
    assert len(sizes.get_yticks()) == 0


def test_not_finite_leaves_a_gap():
    ax = drawn(with_hole(make_norms())).axes[0]
    assert (
        np.isfinite(line(ax, "median over positions").get_ydata()).tolist()
        == [True] * 2 + [False] * 11
    )
    everything = make_norms()
    nothing = replace(with_hole(everything), l2=everything.l2 * np.nan)
    assert len(drawn(nothing).axes) == 3


def test_axes_that_are_given_are_drawn_on():
    made = Figure(figsize=(3, 2))
    ax = made.subplots()
    norms = make_norms()
    assert norms.plot(ax) is draw_norms(norms, ax) is ax
    FigureCanvasAgg(made).draw()
    assert len(made.axes) == 1
    assert plot(norms).figure.axes[0].get_ylabel() == ax.get_ylabel()


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_files_are_written_and_the_same_each_time(tmp_path, suffix):
    paths = [tmp_path / f"{i}.{suffix}" for i in range(2)]
    for path in paths:
        save(make_norms(), path)
    first, second = (path.read_bytes() for path in paths)
    assert len(first) > 5000
    assert first == second
