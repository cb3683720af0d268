from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from resid.render.figure import figure, plot, save

from .lab_block_samples import make_block, make_depth, make_toy
from .samples import HOSTILE

SAMPLES = {
    "block": make_block,
    "block, 1 token": lambda: make_block(tokens=("The",)),
    "block, 16 tokens": lambda: make_block(tokens=tuple(f" token{i}" for i in range(16))),
    "block, 300 tokens": lambda: make_block(tokens=(" the",) * 300),
    "block that differs": lambda: make_block(error=0.3),
    "toy": make_toy,
    "toy, 1 seed": lambda: make_toy(seeds=1),
    "toy, silent": lambda: make_toy(silent=True),
    "depth": make_depth,
    "depth, 1 layer": lambda: make_depth(layers=1, seeds=1, inits=("0.02",)),
    "depth, 100 layers": lambda: make_depth(layers=100),
    "depth, not finite": lambda: make_depth(last=np.nan),
}


def drawn(result):
    """A figure as it comes out: what is only decided while drawing is decided."""
    made = figure(result)
    FigureCanvasAgg(made).draw()
    return made


@pytest.mark.parametrize("name", SAMPLES)
def test_texts_do_not_overlap(name):
    made = drawn(SAMPLES[name]())
    for ax in (ax for ax in made.axes if ax.axison):
        for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
            shown = [label for label in labels if label.get_visible() and label.get_text()]
            if any(label.get_rotation() for label in shown):
                continue
            boxes = [label.get_window_extent() for label in shown]
            assert all(a.x1 <= b.x0 or a.y1 <= b.y0 for a, b in pairwise(boxes))
    regions = [ax.get_tightbbox() for ax in made.axes]
    regions += [text.get_window_extent() for text in made.texts]
    for a, b in combinations(regions, 2):
        assert a.x1 <= b.x0 + 0.5 or b.x1 <= a.x0 + 0.5 or a.y1 <= b.y0 + 0.5 or b.y1 <= a.y0 + 0.5
    for region in regions:
        assert made.bbox.x0 <= region.x0 < region.x1 <= made.bbox.x1
        assert made.bbox.y0 <= region.y0 < region.y1 <= made.bbox.y1


@pytest.mark.parametrize("name", ["block", "toy", "depth"])
def test_plot_draws_on_axes_that_are_there(name):
    ax = Figure().add_subplot()
    result = SAMPLES[name]()
    assert plot(result, ax) is ax
    assert len(ax.lines) > 0
    own = result.plot()
    assert [line.get_ydata().tolist() for line in own.lines] == [
        line.get_ydata().tolist() for line in ax.lines
    ]


@pytest.mark.parametrize("name", ["block", "toy", "depth"])
def test_the_caption_says_what_was_found_and_checked(name):
    result = SAMPLES[name]()
    written = " ".join(text.get_text() for text in drawn(result).texts)
    assert result.finding in written
    assert "tolerance" in written or "exactly" in written
    assert result.source.subject in written


def test_change_is_drawn_as_it_is():
    block = make_block()
    with_attention, without = drawn(block).axes[0].lines
    assert with_attention.get_ydata().tolist() == block.change.tolist()
    assert without.get_ydata().tolist() == block.change_alone.tolist()


def test_the_four_switches_have_one_scale_and_their_numbers():
    depth = make_depth()
    _, *switches, bar = drawn(depth).axes
    assert len({ax.get_ylim() for ax in switches}) == 1
    notes = [[text.get_text() for text in ax.texts] for ax in switches]
    wanted = [depth.came_through(0, w) for w in ("neither", "no residual", "no norm", "pre-LN")]
    shown = [float(note[1].rpartition("×")[2]) for note in notes]
    assert shown == pytest.approx(wanted, rel=0.01)
    assert [patch.get_width() for patch in bar.patches] == pytest.approx([1 / 3, 2 / 3])


def test_hostile_tokens_are_drawn_literally(tmp_path):
    made = drawn(make_block(tokens=HOSTILE, activation="$x$"))
    texts = made.findobj(Text)
    assert {"$$", "$x$"} <= {text.get_text() for text in texts}
    assert not any(text.get_parse_math() for text in texts if "$" in text.get_text())
    save(make_block(tokens=HOSTILE), tmp_path / "block.png")


def test_the_same_result_gives_the_same_bytes(tmp_path):
    for name in ("a.png", "b.png"):
        save(make_depth(), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
