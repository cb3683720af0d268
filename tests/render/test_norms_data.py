import csv
import io
import json
from dataclasses import replace

import numpy as np

from .norm_samples import MASSIVE, make_norms


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def parse(norms):
    return json.loads(norms.to_json(), parse_constant=refuse)


def test_json_has_exactly_the_documented_keys():
    document = parse(make_norms(outliers=MASSIVE))
    assert document["analysis"] == "stream_norms"
    assert list(document["axes"]) == ["point", "pos", "layer"]
    data = document["data"]
    assert set(data) == {
        "l2", "centred_l2", "cosine_to_previous", "cosine_to_final", "cosine_to_embed",
        "embed_coefficient", "attn_out_l2", "attn_out_ratio", "attn_out_cosine", "mlp_out_l2",
        "mlp_out_ratio", "mlp_out_cosine", "growth", "outliers", "outlier_rule",
    }  # fmt: skip
    assert set(data["growth"]) == {
        "per_layer", "r_squared", "growing_steps", "excluded_positions", "fitted_l2", "reason",
    }  # fmt: skip
    assert list(data["outlier_rule"]) == ["share", "times_median"]
    assert list(data["outliers"][0]) == [
        "point", "pos", "dim", "value", "share", "times_median", "massive",
    ]  # fmt: skip


def test_arrays_follow_their_axes():
    norms = make_norms(n_layers=3, mids=True)
    document = parse(norms)
    assert document["axes"]["point"] == list(norms.points)
    assert document["axes"]["pos"] == [0, 1, 2, 3, 4]
    assert document["axes"]["layer"] == [0, 1, 2]
    data = document["data"]
    for name in ("l2", "centred_l2", "cosine_to_final", "cosine_to_embed", "embed_coefficient"):
        assert np.array_equal(data[name], getattr(norms, name))
        assert np.shape(data[name]) == (7, 5)
    for name in ("attn_out_l2", "mlp_out_l2", "attn_out_ratio", "mlp_out_cosine"):
        assert np.array_equal(data[name], getattr(norms, name))
        assert np.shape(data[name]) == (3, 5)
    assert np.shape(data["growth"]["fitted_l2"]) == (3,)
    assert data["cosine_to_previous"][0] == [None] * 5


def test_infinite_ratio_of_an_outlier_is_null():
    outlier = replace(MASSIVE[0], times_median=float("inf"))
    assert parse(make_norms(outliers=(outlier,)))["data"]["outliers"][0]["times_median"] is None


def test_growth_that_is_not_there_is_null_with_its_reason():
    growth = parse(make_norms(tokens=("The",)))["data"]["growth"]
    assert growth["per_layer"] is growth["r_squared"] is None
    assert growth["reason"] == "no position is left"
    assert growth["excluded_positions"] == [0]


def test_csv_holds_a_write_beside_the_point_that_it_led_to():
    norms = make_norms(n_layers=2)
    rows = list(csv.DictReader(io.StringIO(norms.to_csv())))
    assert len(rows) == 3 * 5
    assert [row["in_growth"] for row in rows[:5]] == ["False"] + ["True"] * 4
    assert rows[0]["attn_out_l2"] == rows[0]["mlp_out_cosine"] == ""
    last = rows[-1]
    assert (last["point"], last["pos"], last["input_token"]) == ("1.post", "4", " is")
    for name in ("l2", "cosine_to_embed", "embed_coefficient"):
        assert float(last[name]) == getattr(norms, name)[2, 4]
    for name in ("attn_out_l2", "attn_out_ratio", "mlp_out_l2", "mlp_out_cosine"):
        assert float(last[name]) == getattr(norms, name)[1, 4]


def test_csv_with_mids_writes_each_write_once():
    rows = list(csv.DictReader(io.StringIO(make_norms(n_layers=2, mids=True).to_csv())))
    points = {row["point"] for row in rows if row["attn_out_l2"]}
    assert points == {"0.mid", "1.mid"}
    points = {row["point"] for row in rows if row["mlp_out_l2"]}
    assert points == {"0.post", "1.post"}
