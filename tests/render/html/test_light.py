"""What a notebook shows of a result."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import resid

from ...conftest import IDS, tiny_hf

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Balanced(HTMLParser):
    """Fails where an element is not closed; collects the names of all."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(html):
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


@pytest.fixture(scope="module")
def results(tiny):
    recording = resid.record(tiny, IDS)
    return [
        resid.logit_lens(tiny, recording, target=7),
        resid.stream_norms(tiny, recording),
        resid.mlp_memory(tiny, recording, positions=[-1]),
        resid.attribution(tiny, recording, target=7),
        resid.find_neurons(tiny, 7),
        resid.neuron_card(tiny, "L0N1"),
        resid.param_count("gpt2"),
    ]


def test_every_result_is_one_element_without_scripts_or_requests(results):
    for result in results:
        html = result._repr_html_()
        parser = parsed(html)
        assert parser.seen[0] == "div" and html.strip().endswith("</div>")
        assert not {"script", "style", "link", "img", "iframe"} & {*parser.seen}
        assert not [name for name in parser.attributes if name.startswith("on") or name == "src"]


def test_the_lens_shows_every_cell_deepest_point_first(tiny):
    lens = resid.logit_lens(tiny, resid.record(tiny, IDS))
    html = lens._repr_html_()
    points = re.findall(r'<th style="[^"]*font-weight:normal">([^<]*)</th>', html)
    assert points == [*lens.points[::-1], "input"]
    assert html.count("<td ") == lens.entropy.size
    told = re.findall(r'<td title="([^"]*)"', html)
    assert told[0].startswith(f"{lens.points[-1]}, position {lens.positions[0]}: ")
    settled = re.findall(r"border-bottom:2px", html)
    assert len(settled) == sum(point is not None for point in lens.settled_at)


def test_a_long_prompt_shows_its_end(tiny):
    lens = resid.logit_lens(tiny, resid.record(tiny, [5] * 30))
    html = lens._repr_html_()
    assert html.count("<td ") == 24 * len(lens.points)
    assert "the last 24 of 30 positions" in html
    assert ">29 " in html and ">5 " not in html


def test_what_is_not_finite_has_no_colour_and_says_so(tiny):
    import torch

    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.bias[2] = torch.nan
    model = resid.load(hf)
    lens = resid.logit_lens(model, resid.record(model, IDS))
    broken = np.isnan(lens.entropy).sum()
    assert broken
    assert lens._repr_html_().count("not finite at this point") == broken


def test_showing_a_result_prints_nothing(results, capsys):
    for result in results:
        result._repr_html_()
    assert capsys.readouterr() == ("", "")


def test_tokens_are_escaped(tiny):
    # A prompt and a model whose tokens are markup themselves.
    html = resid.logit_lens(tiny, resid.record(tiny, "<b>&</b>"))._repr_html_()
    assert "b" not in parsed(html).seen
    text = re.sub(r"<[^>]*>", "", html)
    assert "&lt;b&gt;&amp;&lt;/b&gt;" in text
