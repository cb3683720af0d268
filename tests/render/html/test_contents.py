"""The numbers in a page, against the results they come from."""

import json
import re

import numpy as np
import pytest
import torch

import resid
from resid.render.html import Report, page, page_of
from resid.render.html.contents import SHARES, contents, embedded, rounded

from ...conftest import D_MLP, IDS, tiny_hf


def readings(model, ids=IDS, **options):
    recording = resid.record(model, ids, points="all,attn_out,mlp_out,z,mlp_pre,mlp_post")
    return [
        resid.logit_lens(model, recording, follow=True, own=True, **options),
        resid.stream_norms(model, recording),
        *(
            resid.attribution(model, recording, target=7, position=at, heads=True)
            for at in range(len(recording.ids))
        ),
        resid.mlp_memory(model, recording, target=options.get("target"), neurons=D_MLP),
        resid.param_count(model),
    ]


@pytest.fixture(scope="module")
def results(tiny):
    return readings(tiny, target=7, foil=290, top=3)


@pytest.fixture(scope="module")
def document(results):
    document = contents([Report.of(results)], "resid report")
    return json.loads(embedded(document))["reports"][0]


def close(shown, values):
    np.testing.assert_allclose(np.array(shown, dtype=float), values, rtol=6e-5, atol=1e-12)


def test_the_lens(document, results):
    lens, shown = results[0], document["lens"]
    assert shown["points"] == list(lens.points)
    assert shown["top_ids"] == lens.top_ids.tolist()
    for name, values in (
        ("entropy", lens.entropy),
        ("kl", lens.kl_to_final),
        ("margin", lens.margin),
    ):
        close(shown[name], values)
    np.testing.assert_allclose(shown["top_probs"], lens.top_probs, rtol=6e-3, atol=1e-12)
    assert [lens.points[i] for i in shown["settled"]] == list(lens.settled_at)
    assert shown["target"]["rank"] == lens.target.rank.tolist()
    assert shown["own"]["id"] == lens.own.ids.tolist()
    assert shown["own"]["rank"] == lens.own.rank.tolist()
    np.testing.assert_allclose(shown["foil"]["prob"], np.exp(lens.foil.logprob), rtol=6e-3)


def test_probabilities_are_as_exact_as_they_are_shown(document, results):
    probs, shown = np.exp(results[0].foil.logprob), np.array(document["lens"]["foil"]["prob"])
    large = probs >= 0.001
    assert large.any() and not large.all()
    np.testing.assert_allclose(shown[large], probs[large], rtol=6e-5)


def test_leaders_are_the_last_ones(results, monkeypatch):
    monkeypatch.setattr("resid.render.html.contents.LEADERS", 2)
    followed = results[0].followed
    shown = contents([Report.of([results[0]])], "")["reports"][0]["lens"]
    assert any(shown["earlier"]), "no position has more leaders than are drawn"
    for index, leaders in enumerate(shown["followed"]):
        found = followed.at(index)
        assert [one["id"] for one in leaders] == followed.ids[found].tolist()[-2:]
        assert shown["earlier"][index] == len(found) - len(leaders)


def test_every_token_that_is_named_has_its_text(document, results, tiny):
    lens = results[0]
    named = {*lens.top_ids.ravel().tolist(), *lens.source.ids, 7, 290}
    for ids in document["memory"]["promotes"]:
        named.update(ids)
    held = {int(token_id): text for token_id, text in document["tokens"].items()}
    assert named - {*held} and named & {*held}, "both kinds of ids must be there"
    for token_id in named:
        assert tiny.vocabulary.show(token_id) == held.get(token_id, f"<id {token_id}>")


def test_a_negative_coefficient_promotes_what_its_value_suppresses(document, results):
    memory, shown = results[-2], document["memory"]["promotes"]
    negative = memory.coefficient < 0
    assert negative.any() and not negative.all()
    for i, ids in enumerate(shown):
        side = memory.suppressed if negative[i] else memory.promoted
        assert ids == side.ids[i].tolist()


def test_attribution_tells_the_largest_shares_and_the_sum_of_the_rest(document, results):
    found = [one for one in results if isinstance(one, resid.Attribution)]
    assert [each["position"] for each in document["attribution"]["each"]] == list(range(len(found)))
    for one, each in zip(found, document["attribution"]["each"], strict=True):
        assert each["others"] == max(0, len(one.components) - SHARES)
        assert sum(each["direct"]) + each["rest"] == pytest.approx(one.direct.sum(), rel=1e-3)
        assert np.abs(each["direct"]).min() >= np.sort(np.abs(one.direct))[-SHARES] * 0.9999
        close(each["logprob"], one.logprob)
        close(each["delta"], one.delta)


def test_norms_and_writes(document, results):
    norms, shown = results[1], document["norms"]
    close(shown["l2"], norms.l2)
    close(shown["mlp"], norms.mlp_out_l2)
    close(shown["attention"], norms.attn_out_l2)


def test_parts_sum_to_the_total(document, results):
    (params,) = document["params"]
    assert sum(part["number"] for part in params["parts"]) == results[-1].total


def test_the_worst_of_several_equal_checks_is_told(document, results):
    found = [one for one in results if isinstance(one, resid.Attribution)]
    worst = max(check.error for one in found for check in one.checks if "closes" in check.name)
    (told,) = [check for check in document["checks"] if check["name"] == "direct_closes"]
    assert told["times"] == len(found)
    assert told["error"] == pytest.approx(worst, rel=1e-4)


def test_what_is_not_finite_is_null():
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.bias[2] = torch.nan
    model = resid.load(hf)
    lens = resid.logit_lens(model, resid.record(model, IDS), own=True, follow=True)
    shown = json.loads(embedded(contents([Report.of([lens])], "")))["reports"][0]
    assert shown["lens"]["entropy"][-1][0] is None
    assert shown["lens"]["own"]["rank"][-1][0] is None
    assert [check["passed"] for check in shown["checks"] if check["name"] == "finite"] == [False]


def test_numbers_are_short():
    assert rounded(np.array([[1 / 3, 2.0], [np.nan, 1e-9 / 3]])) == [
        [0.33333, 2],
        [None, 3.3333e-10],
    ]


HOSTILE = '</script><!--&"\u2028'


def test_nothing_in_a_page_can_end_its_script_or_become_markup(tiny):
    text = page(
        [Report.of([resid.logit_lens(tiny, resid.record(tiny, HOSTILE))])], ["resid", HOSTILE]
    )
    assert text.count("<script") == 2 and text.count("</script>") == 2
    assert "<!--" not in text
    (data,) = re.findall(r'id="numbers">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data)["reports"][0]["prompt"] == HOSTILE


def test_the_policy_names_what_the_page_holds(tiny):
    import base64
    import hashlib

    text = page([Report.of([resid.logit_lens(tiny, resid.record(tiny, IDS))])])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    policy = policy.replace("&#39;", "'")
    assert policy.startswith("default-src 'none'")
    for tag, name in (("style", "style-src"), ("script", "script-src")):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy


def test_a_result_without_a_panel_shows_its_figure_and_its_table(tiny):
    import base64
    import io

    from resid.render.figure import save

    found = resid.find_neurons(tiny, 7)
    text = page_of(found)
    assert "neurons whose values promote" in text and "<script" not in text
    (drawn,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', text)
    figure = io.BytesIO()
    save(found, figure, format="svg")
    assert base64.b64decode(drawn) == figure.getvalue()
    with pytest.raises(TypeError, match="no panel"):
        Report.of([found])
