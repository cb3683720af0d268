import re

import pytest

import resid

from ..conftest import IDS


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


def test_every_result_shows_itself_in_one_element(results):
    for result in results:
        html = result._repr_html_()
        assert html.startswith("<pre style=") and html.endswith("</pre>")
        assert html.count("<pre") == 1


def test_showing_a_result_prints_nothing(results, capsys):
    for result in results:
        result._repr_html_()
    assert capsys.readouterr() == ("", "")


def test_tokens_are_escaped(tiny):
    # A prompt and a model whose tokens are markup themselves.
    html = resid.logit_lens(tiny, resid.record(tiny, "<b>&</b>"))._repr_html_()
    inside = re.sub(r"</?(pre|span)[^>]*>", "", html)
    assert "&lt;b&gt;&amp;&lt;/b&gt;" in inside
    assert "<" not in inside
