"""`resid params`, as it is typed."""

import csv
import io
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from resid.commands import cli


def run(*arguments, **options):
    return CliRunner().invoke(cli, ["params", *map(str, arguments)], **options)


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def test_gpt2_is_the_default():
    done = run()
    assert done.exit_code == 0
    assert done.stdout.startswith("parameters of gpt2 ")
    assert "124,439,808" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", [("gpt2-xl",), ("-m", "gpt2-xl"), ("--model", "gpt2-xl")])
def test_a_model_is_named_in_either_way(arguments):
    (document,) = objects(run(*arguments, "--format", "json").stdout)
    assert document["data"]["total"] == 1557611200
    assert document["source"]["model"] == "gpt2-xl"


def test_environment_names_a_model_and_an_argument_wins(monkeypatch):
    monkeypatch.setenv("RESID_MODEL", "mini")
    assert objects(run("--format", "json").stdout)[0]["source"]["model"] == "mini"
    assert objects(run("gpt2", "--format", "json").stdout)[0]["source"]["model"] == "gpt2"


def test_both_ways_at_once_are_a_usage_error():
    done = run("gpt2", "-m", "gpt2-xl")
    assert done.exit_code == 2
    assert "not both" in done.stderr


def test_several_models_are_one_table_or_one_object_a_line():
    assert "parameters of 3 models" in run("gpt2", "gpt2-medium", "mini").stdout
    found = objects(run("gpt2", "gpt2-medium", "mini", "--format", "json").stdout)
    assert [document["source"]["model"] for document in found] == ["gpt2", "gpt2-medium", "mini"]
    assert [document["analysis"] for document in found] == ["param_count"] * 3


def test_csv_holds_the_rows_of_all(tmp_path):
    printed = run("gpt2", "mini", "--format", "csv").stdout
    done = run("gpt2", "mini", "-o", tmp_path / "x.csv")
    assert (done.stdout, done.stderr) == ("", f"wrote {tmp_path / 'x.csv'}\n")
    assert (tmp_path / "x.csv").read_text() == printed
    sums = {"gpt2": 0, "mini": 0}
    for row in csv.DictReader(io.StringIO(printed)):
        sums[row["model"]] += int(row["parameters"])
    assert sums == {"gpt2": 124439808, "mini": 4394880}


def test_json_file_holds_one_model(tmp_path):
    assert run("gpt2", "-o", tmp_path / "x.json", "-q").exit_code == 0
    assert json.loads((tmp_path / "x.json").read_text())["data"]["total"] == 124439808
    done = run("gpt2", "mini", "-o", tmp_path / "y.json")
    assert done.exit_code == 2
    assert "--format json, one object a line" in " ".join(done.stderr.split())
    assert not (tmp_path / "y.json").exists()


def test_figures_of_one_and_of_several(tmp_path):
    one, several = tmp_path / "one.png", tmp_path / "several.svg"
    assert run("gpt2", "-o", one, "-q").output == ""
    done = run("gpt2", "gpt2-xl", "-o", several, "--format", "json")
    assert one.read_bytes().startswith(b"\x89PNG")
    assert several.read_text().startswith("<?xml")
    assert len(objects(done.stdout)) == 2
    assert done.stderr == f"wrote {several}\n"


def test_length_sets_the_pass_that_flops_are_of():
    (document,) = objects(run("--length", 1, "--format", "json").stdout)
    assert document["data"]["flops_per_token"]["length"] == 1
    assert run("--length", 0).exit_code == 2
    done = run("--length", 1025)
    assert done.exit_code == 1
    assert done.stderr == "Error: the length is 1025; gpt2 reads 1 to 1024 tokens\n"


def test_folder_in_the_working_directory_wins_and_says_so(tiny_folder, tmp_path, monkeypatch):
    (tmp_path / "gpt2").symlink_to(tiny_folder)
    monkeypatch.chdir(tmp_path)
    done = run("gpt2", "--format", "json")
    assert objects(done.stdout)[0]["source"]["n_layers"] == 3
    assert done.stderr == "model: the folder 'gpt2' here, not a hub model of that name\n"
    assert run("gpt2", "-q").stderr == ""


@pytest.mark.parametrize("name", ["./nope", "someone/unknown"])
def test_what_is_not_there_is_told_in_three_lines(name):
    done = run("gpt2", name)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: the ")
    assert len(done.stderr.splitlines()) <= 3


def test_a_failed_check_ends_with_3(monkeypatch):
    monkeypatch.setattr("resid.layout.Sizes.total", lambda sizes: 124439809)
    done = run("gpt2")
    assert done.exit_code == 3
    assert "check failed: parts_add_up at 124,439,808 in parts" in done.stderr


def test_known_names_need_no_torch():
    command = [sys.executable, "-X", "importtime", "-m", "resid", "params", "gpt2-xl", "mini"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "1,557,611,200" in done.stdout
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "rich" in imported
    assert not imported & {"torch", "transformers", "huggingface_hub", "matplotlib"}


@pytest.mark.parametrize("name", ["mini", "folder"])
def test_a_revision_of_what_has_none_is_refused_and_not_left_unread(tiny_folder, name):
    done = run(tiny_folder if name == "folder" else name, "--revision", "v1")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "--revision is for models from the hub" in done.stderr
