import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from resid.render.data import to_csv, to_dict, to_json
from resid.results import Check

from .samples import HOSTILE, make_lens, with_nan


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def parse(text):
    return json.loads(text, parse_constant=refuse)


def test_json_has_exactly_the_documented_keys():
    document = parse(make_lens(target=" Paris", foil=" Rome").to_json())
    assert list(document) == ["resid", "analysis", "source", "axes", "data", "checks"]
    assert document["resid"] == 1
    assert document["analysis"] == "logit_lens"
    assert set(document["source"]) == {
        "model", "revision", "n_layers", "d_model", "d_vocab", "dtype", "device",
        "prompt", "ids", "tokens", "versions",
    }  # fmt: skip
    assert set(document["data"]) == {
        "top_ids", "top_tokens", "top_probs", "entropy", "kl_to_final", "settled_at", "flips",
        "margin", "target", "foil",
    }  # fmt: skip
    assert list(document["data"]["target"]) == ["id", "token", "rank", "logprob"]
    assert list(document["checks"][0]) == ["name", "error", "tolerance", "passed"]


def test_arrays_follow_their_axes():
    lens = make_lens(n_layers=3, k=4)
    document = parse(to_json(lens))
    assert document["axes"] == {"point": list(lens.points), "pos": [0, 1, 2, 3, 4]}
    assert np.shape(document["data"]["top_probs"]) == (4, 5, 4)
    assert document["data"]["top_ids"] == lens.top_ids.tolist()
    assert document["data"]["flips"] == lens.flips.tolist()


def test_floats_read_back_to_the_same_float32():
    entropy = np.random.default_rng(0).lognormal(-9, 20, (401, 5)).astype(np.float32)
    lens = replace(make_lens(n_layers=400), entropy=entropy)
    assert np.array_equal(np.array(parse(to_json(lens))["data"]["entropy"], np.float32), entropy)


def test_floats_are_written_in_their_own_precision():
    lens = replace(make_lens(), entropy=np.full((13, 5), np.float32(0.1)))
    assert to_dict(lens)["data"]["entropy"][0] == [0.1] * 5


def test_not_finite_is_null_in_json():
    lens = with_nan(make_lens(target=" Paris"), slice(3, 6), 4)
    document = parse(to_json(lens))
    data = document["data"]
    for name in ("entropy", "kl_to_final"):
        assert [row[4] for row in data[name]].count(None) == 3
        assert [row[3] for row in data[name]].count(None) == 0
    assert (
        data["top_ids"][3][4] == data["top_tokens"][3][4] == data["top_probs"][3][4] == [None] * 5
    )
    assert data["target"]["logprob"][3][4] is None
    assert data["settled_at"][4] is None
    assert document["checks"] == [
        {
            "name": "lens_equals_logits",
            "error": None,
            "tolerance": 1e-5,
            "passed": False,
            "where": "2.post at position 4",
        }
    ]


def test_json_is_utf8_and_ascii_on_request():
    lens = make_lens(tokens=HOSTILE, guesses=HOSTILE)
    assert parse(to_json(lens).encode("utf-8"))["source"]["tokens"] == list(HOSTILE)
    assert "日本" in to_json(lens)
    assert parse(to_json(lens, ensure_ascii=True).encode("ascii")) == parse(to_json(lens))


def test_json_of_a_folder_whose_name_is_not_utf8():
    lens = make_lens()
    lens = replace(lens, source=replace(lens.source, model="caf\udce9"))
    assert parse(to_json(lens).encode("utf-8"))["source"]["model"] == "caf\udce9"


def test_json_holds_one_line_without_indent():
    assert "\n" not in to_json(make_lens(tokens=HOSTILE))
    assert to_json(make_lens(), indent=2).startswith('{\n  "resid": 1,')


def test_csv_reads_back():
    lens = make_lens(tokens=HOSTILE, guesses=HOSTILE, target='"', k=2)
    text = to_csv(lens)
    assert "\r" not in text
    rows = list(csv.DictReader(io.StringIO(text)))
    expected = list(lens.rows())
    assert len(rows) == len(expected) == 13 * 15
    assert list(rows[0]) == list(expected[0])
    for row, wanted in zip(rows, expected, strict=True):
        assert row["input_token"] == wanted["input_token"]
        assert row["top1_token"] == wanted["top1_token"]
        assert np.float32(row["top1_prob"]) == wanted["top1_prob"]
        assert int(row["target_rank"]) == wanted["target_rank"]


def test_not_finite_is_empty_in_csv():
    lens = with_nan(make_lens(target=" Paris"), slice(3, 6), 4)
    rows = [row for row in csv.DictReader(io.StringIO(to_csv(lens))) if row["pos"] == "4"]
    empty = {"entropy", "kl_to_final", "settled_at", "margin", "target_logprob"}
    empty |= {f"top{k}_{what}" for k in range(1, 6) for what in ("id", "token", "prob")}
    assert {name for name, value in rows[3].items() if value == ""} == empty
    assert {name for name, value in rows[2].items() if value == ""} == {"settled_at"}


def test_check_that_is_numpy_is_plain_json():
    check = Check("lens_equals_logits", np.float32(0.1), np.float64(1), np.bool_(True))
    document = parse(to_json(replace(make_lens(), checks=(check,))))
    assert document["checks"][0]["error"] == 0.1
    assert document["checks"][0]["passed"] is True


def test_what_json_cannot_hold_is_refused():
    lens = make_lens()
    lens = replace(lens, source=replace(lens.source, versions={"torch": object()}))
    with pytest.raises(TypeError, match="a result cannot hold a object"):
        to_json(lens)


def test_json_holds_no_sign_that_a_terminal_would_obey():
    prompt = "\x7f\x9b31m\u202e\u2028\u200b\ufeff\U000e0041\udce9\ud83d\ue000 é日🤗\u0301"
    lens = make_lens()
    lens = replace(lens, source=replace(lens.source, prompt=prompt))
    for indent in (None, 1):
        text = to_json(lens, indent=indent)
        assert text.replace("\n", "").isprintable()
        assert "é日🤗" in text
        assert parse(text)["source"]["prompt"] == prompt
