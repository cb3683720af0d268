"""Figures of every result, for text that a figure would read as something else."""

import pytest
import torch
from matplotlib.text import Text

import resid
from resid.render import figure as figures
from tests.conftest import tiny_hf

PROMPTS = ["cost $5 and $6", "$$", r"\frac$x", "日本 🤗", "_init\t\x00\x1b\r"]
RESULTS = {
    "logit_lens": lambda m, r: resid.logit_lens(m, r, target="$", follow=True),
    "stream_norms": resid.stream_norms,
    "mlp_memory": lambda m, r: resid.mlp_memory(m, r, target="$"),
    "attribution": lambda m, r: resid.attribution(m, r, target="$", foil="_", heads=True),
    "param_count": lambda m, r: resid.param_count(m),
    "find": lambda m, r: resid.find_neurons(m, "$", foil="_"),
    "neuron": lambda m, r: resid.neuron_card(m, (1, 3), top=300),
    "verify": lambda m, r: resid.verify(m, [r.ids], float64=False),
}


@pytest.fixture(scope="module")
def model(tiny):
    """The tiny model under a name that is mathematics too."""
    named = resid.load(tiny.hf, tokenizer=tiny.vocabulary.tokenizer)
    named.name = "$a$ _b 日本"
    return named


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("name", RESULTS)
def test_every_text_of_every_figure_is_drawn_as_it_is(model, name, prompt):
    """A missing glyph, or mathematics that cannot be read, would be a warning or an error here."""
    drawn = figures.figure(RESULTS[name](model, resid.record(model, prompt)))
    drawn.canvas.draw()
    written = [text for text in drawn.findobj(Text) if text.get_text()]
    assert len(written) > 5
    assert [text.get_text() for text in written if text.get_parse_math()] == []
    assert [text.get_text() for text in written if text.get_usetex()] == []
    assert all(sign.isprintable() or sign == "\n" for text in written for sign in text.get_text())


@pytest.mark.parametrize("name", RESULTS)
def test_a_prompt_of_1024_tokens_stays_a_picture_of_bounded_size(name):
    hf = tiny_hf(n_positions=1024)
    model = resid.load(hf)
    recorded = resid.record(model, [i % 300 for i in range(1024)], points="everything")
    by_id = {
        "logit_lens": lambda m, r: resid.logit_lens(m, r),
        "mlp_memory": lambda m, r: resid.mlp_memory(m, r, top=2),
        "attribution": lambda m, r: resid.attribution(m, r, target=3),
        "find": lambda m, r: resid.find_neurons(m, 3, neurons=72),
    }
    drawn = figures.figure(
        (by_id | {k: v for k, v in RESULTS.items() if k not in by_id})[name](model, recorded)
    )
    width, height = drawn.get_size_inches() * 160
    assert max(width, height) < 20_000
    assert 1 / 8 < width / height < 30


def test_bars_that_are_not_finite_are_marked_and_not_drawn():
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.weight[3] = torch.inf
    found = resid.find_neurons(resid.load(hf), 3, neurons=72)
    ax = figures.figure(found).axes[0]
    assert [text.get_text() for text in ax.texts].count("n/a") == 1
    assert max(abs(bar.get_width()) for bar in ax.patches) < 100
