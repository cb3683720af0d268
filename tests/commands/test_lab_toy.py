import csv
import io
import json

import pytest
from click.testing import CliRunner

from resid.commands import cli


def run(*arguments):
    return CliRunner().invoke(cli, ["lab", "toy", "--seeds", "3", *arguments])


def test_table():
    result = run()
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("lab toy of a net of five layers  sizes 3 3 3 3 3 1")
    first = next(line for line in result.stdout.splitlines() if line.startswith("0  "))
    assert first.split()[1:4] == ["2.02e-4", "0.222", "×1,099"]
    assert "first activation's gradients = the published ones, error" in result.stdout


def test_json_and_csv():
    document = json.loads(run("--format", "json").stdout, parse_constant=pytest.fail)
    assert document["analysis"] == "lab_toy"
    assert document["source"]["seed"] == 123
    assert document["axes"]["draw"] == [123, 124, 125]
    assert document["data"]["gradients"][0][0][0] == pytest.approx(2.01736e-4, rel=1e-4)
    rows = list(csv.DictReader(io.StringIO(run("--format", "csv").stdout)))
    assert len(rows) == 3 * 2 * 5
    assert float(rows[0]["mean_gradient"]) == pytest.approx(2.01736e-4, rel=1e-4)


def test_another_seed_is_another_net(tmp_path):
    result = run("--seed", "7", "-o", str(tmp_path / "toy.png"), "--format", "json")
    assert result.exit_code == 0
    assert "wrote " in result.stderr
    assert json.loads(result.stdout)["data"]["gradients"][0][0][0] != pytest.approx(2.01736e-4)
    assert (tmp_path / "toy.png").stat().st_size > 5000


@pytest.mark.parametrize("arguments", [["--seed", "-1"], ["--seeds", "0"], ["--layers", "3"]])
def test_wrong_usage_is_told(arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) <= 3
