import csv
import io
import json

import pytest
from click.testing import CliRunner

from resid.commands import cli
from resid.lab.depth_trends import depth


def run(*arguments):
    quick = ["--layers", "3", "--seeds", "2", "--init", "0.02"]
    return CliRunner().invoke(cli, ["lab", "depth", *quick, *arguments])


def test_table():
    result = run()
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("lab depth of stacks of random blocks  layers 3")
    assert lines[0].endswith("seeds 2, seed 0")
    wirings = [line[9:22].strip() for line in lines[6:11]]
    assert "gradient x movement = change of the loss, at every point, error" in result.stdout
    assert wirings == ["pre-LN", "post-LN", "no norm", "no residual", "neither"]


def test_json_equals_the_experiment():
    printed = json.loads(run("--seed", "5", "--activation", "relu", "--format", "json").stdout)
    wanted = depth(3, inits=["0.02"], activation="relu", seed=5, seeds=2)
    assert printed["data"] == json.loads(wanted.to_json())["data"]
    assert printed["axes"]["seed"] == [5, 6]
    assert printed["axes"]["init"] == ["0.02"]


def test_an_init_that_is_named_twice_counts_once():
    result = run("--init", "uniform", "--init", "0.02", "--format", "json")
    assert json.loads(result.stdout)["axes"]["init"] == ["0.02", "uniform"]


def test_csv_and_figure(tmp_path):
    result = run("-o", str(tmp_path / "depth.png"), "--format", "csv", "-q")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 1 * 5 * 2 * 4
    assert (rows[0]["weight_gradient"], rows[1]["point"]) == ("", "0.post")
    assert (tmp_path / "depth.png").stat().st_size > 5000


@pytest.mark.parametrize(
    "arguments",
    [["--layers", "0"], ["--layers", "101"], ["--seeds", "0"], ["--init", "he"], ["--seed", "x"]],
)
def test_wrong_usage_is_told(arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) <= 3
