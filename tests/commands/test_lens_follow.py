"""`resid lens --follow --baseline`: the options reach the reading and every output."""

import json

import pytest
from click.testing import CliRunner

import resid
from resid.commands import cli

from ..conftest import IDS


def run(folder, *arguments):
    ids = ",".join(map(str, IDS))
    return CliRunner().invoke(cli, ["lens", "-m", str(folder), "-q", "--ids", ids, *arguments])


def test_json_equals_the_reading(tiny_folder, tiny):
    result = run(tiny_folder, "--follow", "--baseline", "--format", "json")
    assert result.exit_code == 0, result.output
    lens = resid.logit_lens(tiny, resid.record(tiny, IDS), follow=True, baseline=True)
    assert json.loads(result.stdout)["data"] == json.loads(lens.to_json())["data"]


@pytest.mark.parametrize("option", ["--follow", "--baseline"])
def test_each_option_asks_for_its_own_key_alone(tiny_folder, option):
    data = json.loads(run(tiny_folder, option, "--format", "json").stdout)["data"]
    assert {"followed", "baseline"} & set(data) == {
        "--follow": {"followed"}, "--baseline": {"baseline"}
    }[option]  # fmt: skip


def test_the_table_has_both(tiny_folder):
    result = run(tiny_folder, "--follow", "--baseline")
    assert result.exit_code == 0
    assert "every token that leads somewhere" in result.stdout
    assert "\nnothing " in result.stdout
    assert "\nrandom " in result.stdout


def test_the_grid_shows_the_margin(tiny_folder):
    result = run(tiny_folder, "--positions", "0,3", "--show", "margin")
    assert "with margin of the top token, nats" in result.stdout


def test_a_figure_is_written_for_the_last_position_shown(tiny_folder, tmp_path, monkeypatch):
    from resid.render.figure import lens_layout

    drawn, whole = [], lens_layout.followed_figure

    def spy(lens, position):
        drawn.append(position)
        return whole(lens, position)

    monkeypatch.setattr(lens_layout, "followed_figure", spy)
    for positions in ([], ["--positions", "1,4"], ["--positions", "all"]):
        file = tmp_path / "f.png"
        result = run(tiny_folder, "--follow", *positions, "-o", str(file))
        assert result.exit_code == 0, result.output
        assert file.stat().st_size > 5000
    assert drawn == [6, 4, 6]
