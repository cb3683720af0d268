import csv
import io
import json

import pytest
import torch
from click.testing import CliRunner

import resid
from resid.commands import cli

from ..conftest import tiny_hf, write_checkpoint

IDS = "5,290,17,260,17,99,3"


def run(folder, *arguments):
    return CliRunner().invoke(cli, ["norms", "-m", str(folder), "-q", *arguments])


@pytest.fixture(scope="module")
def broken_folder(tmp_path_factory):
    """A model whose block 1 writes infinity."""
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.bias[2] = torch.inf
    return write_checkpoint(tmp_path_factory.mktemp("broken"), hf)


def test_table(tiny_folder):
    result = run(tiny_folder, " the the is")
    assert result.exit_code == 0
    assert result.stdout.startswith("stream norms of ")
    assert [line.split()[0] for line in result.stdout.splitlines()[6:10]] == [
        "embed", "0.post", "1.post", "2.post",
    ]  # fmt: skip
    assert "position 0 left out)" in result.stdout
    assert result.stderr == ""


def test_json_equals_the_reading(tiny_folder, tiny):
    result = run(tiny_folder, "--ids", IDS, "--points", "all", "--format", "json")
    ids = [int(i) for i in IDS.split(",")]
    norms = resid.stream_norms(tiny, resid.record(tiny, ids), points="all")
    printed = json.loads(result.stdout)
    assert printed["data"] == json.loads(norms.to_json())["data"]
    assert printed["axes"]["pos"] == list(range(7))
    assert len(printed["axes"]["point"]) == 7


def test_positions_exclude_and_outliers_are_passed_on(tiny_folder):
    result = run(
        tiny_folder, "--ids", IDS, "--format", "json", "--positions", "0,2-5",
        "--exclude", "0,-2", "--outliers", "0.3",
    )  # fmt: skip
    document = json.loads(result.stdout)
    assert document["axes"]["pos"] == [0, 2, 3, 4, 5]
    assert document["data"]["growth"]["excluded_positions"] == [0, 5]
    assert document["data"]["outlier_rule"]["share"] == 0.3
    result = run(tiny_folder, "--ids", IDS, "--format", "json", "--exclude", "none")
    assert json.loads(result.stdout)["data"]["growth"]["excluded_positions"] == []


def test_csv_has_a_row_for_every_point_and_position(tiny_folder):
    result = run(tiny_folder, "--ids", IDS, "--format", "csv")
    assert len(list(csv.DictReader(io.StringIO(result.stdout)))) == 4 * 7


def test_files_are_written(tiny_folder, tmp_path):
    names = ["norms.png", "norms.svg", "norms.json", "norms.csv"]
    options = [part for name in names for part in ("-o", str(tmp_path / name))]
    result = run(tiny_folder, " the", *options)
    assert (result.exit_code, result.stdout) == (0, "")
    assert all((tmp_path / name).stat().st_size > 100 for name in names)


def test_several_prompts_follow_each_other(tiny_folder):
    result = run(tiny_folder, " the", " is is", "--format", "json")
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert [document["source"]["prompt"] for document in documents] == [" the", " is is"]


def test_one_token_is_no_crash(tiny_folder):
    result = run(tiny_folder, " the")
    assert result.exit_code == 0
    assert "no growth per layer: no position is left (position 0 left out)" in result.stdout


def test_not_finite_is_printed_and_exits_with_3(broken_folder):
    result = run(broken_folder, "--ids", IDS, "--format", "json")
    assert result.exit_code == 3
    data = json.loads(result.stdout, parse_constant=pytest.fail)["data"]
    assert data["l2"][2] == [None] * 7
    assert "check failed: finite at 1.mlp_out at position 0" in result.stderr
    table = run(broken_folder, "--ids", IDS)
    assert table.exit_code == 3
    assert "n/a" in table.stdout


def test_not_finite_still_draws(broken_folder, tmp_path):
    result = run(broken_folder, "--ids", IDS, "-o", str(tmp_path / "norms.png"))
    assert result.exit_code == 3
    assert (tmp_path / "norms.png").stat().st_size > 5000


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(tiny_folder, dtype):
    result = run(tiny_folder, "--ids", IDS, "--dtype", dtype)
    assert result.exit_code == 0
    assert "embed + all writes = last point" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["x", "--exclude", "9"], 2, "Invalid value for --exclude"),
        (["x", "--exclude", "some"], 2, "'some' is not a position"),
        (["x", "--positions", "9"], 2, "Invalid value for --positions"),
        (["x", "--outliers", "0"], 2, "--outliers"),
        (["x", "--points", "7.post"], 1, "the model has layers 0 to 2"),
        (["x", "--points", "0.attn_out"], 1, "0.attn_out is not on the residual stream"),
        (["x", "y", "-o", "norms.json"], 2, "-o takes one prompt"),
        ([], 2, "give a PROMPT"),
    ],
)
def test_wrong_usage_is_told(tiny_folder, arguments, code, message):
    result = run(tiny_folder, *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""


def test_help_ends_with_an_example():
    result = CliRunner().invoke(cli, ["norms", "-h"])
    assert result.exit_code == 0
    assert 'resid norms "The capital of France is"' in result.stdout
