import csv
import io
import json

import pytest
import torch
from click.testing import CliRunner

import resid
from resid.commands import cli
from resid.lab.rebuilt import rebuilt_block

from ..conftest import tiny_hf, write_checkpoint

IDS = "5,290,17,260,17,99,3"


def run(folder, *arguments):
    return CliRunner().invoke(cli, ["lab", "block", "-m", str(folder), "-q", *arguments])


def test_table(tiny_folder):
    result = run(tiny_folder, "--prompt", " the the is", "--layer", "1")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("lab block of ")
    steps = [line.removeprefix("│ ").split()[0] for line in lines[5:20]]
    assert steps == [
        "x", "ln1", "q", "k", "v", "scores", "weights", "z", "attn_out", "mid", "ln2", "mlp_pre",
        "mlp_post", "mlp_out", "post",
    ]  # fmt: skip
    assert "block = Hugging Face's, step by step, error" in result.stdout
    assert "Built from scratch, block 1 comes within" in result.stdout


def test_json_equals_the_experiment(tiny_folder, tiny):
    result = run(tiny_folder, "--ids", IDS, "--layer", "2", "--seed", "4", "--format", "json")
    ids = [int(i) for i in IDS.split(",")]
    printed, wanted = json.loads(result.stdout), rebuilt_block(tiny, ids, 2, seed=4)
    assert printed["data"] == json.loads(wanted.to_json())["data"]
    assert printed["source"]["settings"]["ids"] == ids
    assert printed["source"]["seed"] == 4
    assert printed["data"]["finding"] == wanted.finding


def test_csv_has_a_row_for_every_step(tiny_folder):
    result = run(tiny_folder, "--ids", IDS, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 15
    assert rows[0] == {"layer": "0", "step": "x", "shape": "7x16", "error": ""}


def test_files_are_written(tiny_folder, tmp_path):
    names = ["block.png", "block.svg", "block.json", "block.csv"]
    options = [part for name in names for part in ("-o", str(tmp_path / name))]
    result = run(tiny_folder, "--prompt", " the", *options)
    assert (result.exit_code, result.stdout) == (0, "")
    assert all((tmp_path / name).stat().st_size > 100 for name in names)


def test_a_model_that_is_not_finite_exits_with_3(tmp_path):
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.bias[2] = torch.inf
    result = run(write_checkpoint(tmp_path, hf), "--ids", IDS, "--layer", "1")
    assert result.exit_code == 3
    assert "check failed: block_equals_original at mlp_out" in result.stderr
    assert "FAILED" in result.stdout
    assert resid.load(tmp_path).n_layers == 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--layer", "3"], 1, "there is no layer 3"),
        (["--layer", "-1"], 2, "Invalid value for '--layer'"),
        (["--layer", "1", "--ids", "1,x"], 2, "is not a list of ids"),
        (["--ids", "5", "--prompt", "x"], 2, "give only one of --prompt and --ids"),
        (["--prompt", ""], 1, "the prompt is empty"),
        (["--ids", "999"], 1, "999"),
        (["--seed", "-1"], 2, "Invalid value for '--seed'"),
        (["-o", "block.txt"], 2, "'.txt'"),
    ],
)
def test_wrong_usage_is_told(tiny_folder, arguments, code, message):
    result = run(tiny_folder, *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) <= 3


def test_an_activation_that_the_lab_does_not_have(tmp_path):
    folder = write_checkpoint(tmp_path, tiny_hf(activation_function="mish"))
    result = run(folder, "--ids", IDS)
    assert result.exit_code == 1
    assert "is mish" in result.stderr


@pytest.mark.parametrize("name", ["block", "toy", "depth"])
def test_help_ends_with_an_example(name):
    result = CliRunner().invoke(cli, ["lab", name, "-h"])
    assert result.exit_code == 0
    assert f"resid lab {name} " in result.stdout


def test_lab_alone_lists_its_experiments():
    result = CliRunner().invoke(cli, ["lab", "-h"])
    assert result.exit_code == 0
    assert all(f"  {name} " in result.stdout for name in ("block", "depth", "toy"))
    assert CliRunner().invoke(cli, ["lab", "flask"]).exit_code == 2
