import csv
import io
import json
import re

import pytest
from click.testing import CliRunner

import resid
from resid.commands import cli


@pytest.fixture
def run(tiny_folder):
    def invoke(*arguments, model=tiny_folder):
        return CliRunner().invoke(cli, [*arguments, "-m", str(model)])

    return invoke


def test_memory_prints_the_neurons_of_the_last_position(run):
    ran = run("memory", "the the", "--neurons", "2", "--target", "the")
    assert ran.exit_code == 0
    names = [line.split()[0] for line in ran.stdout.splitlines() if line.startswith("L")]
    assert len(names) == 3 * 2
    assert 'logit of "the"' in ran.stdout
    assert "coefficients x values + bias = mlp_out" in ran.stdout
    assert "projection: folded" in ran.stdout


def test_memory_in_json_equals_the_library(run, tiny):
    ran = run("memory", "the the", "--format", "json", "--projection", "raw")
    recording = resid.record(tiny, "the the")
    expected = json.loads(resid.mlp_memory(tiny, recording, projection="raw").to_json())
    assert json.loads(ran.stdout)["data"] == expected["data"]


def test_memory_in_csv_has_a_row_for_every_neuron(run):
    ran = run("memory", "the the", "--format", "csv", "--positions", "0")
    assert len(list(csv.DictReader(io.StringIO(ran.stdout)))) == 3 * 3


def test_find_prints_both_sides(run):
    ran = run("find", " the", "--foil", "the", "--neurons", "4")
    assert ran.exit_code == 0
    assert 'promote " the" rather than "the", of 72' in ran.stdout
    rows = [line for line in ran.stdout.splitlines() if line.startswith("L")]
    assert len(rows) == 4


def test_find_in_json_equals_the_library(run, tiny):
    found = json.loads(run("find", "id:7", "--format", "json").stdout)
    assert found["data"] == json.loads(resid.find_neurons(tiny, 7).to_json())["data"]


def test_neuron_prints_its_card(run):
    ran = run("neuron", "L1N5", "--top", "3")
    assert ran.exit_code == 0
    assert "neuron L1N5 of" in ran.stdout
    assert all(head in ran.stdout for head in ("promotes", "suppresses", "driven by"))


@pytest.mark.parametrize("width", ["64", "80", "200"])
def test_tables_keep_to_the_width(run, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    for command in (
        ["memory", "the the", "--target", "the"],
        ["attribute", "a the", "--target", "a"],
    ):
        ran = run(*command)
        table = [line for line in ran.stdout.splitlines() if line.startswith(("L", "block", "─"))]
        assert table
        assert max(map(len, table)) <= int(width)


@pytest.mark.parametrize(
    "command",
    [
        ["memory", "the the", "--target", "the"],
        ["find", " the"],
        ["neuron", "L0N3"],
        ["attribute", "the the", "--target", "the", "--heads", "--neurons", "1"],
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "json", "csv"])
def test_every_suffix_is_written(run, tmp_path, command, suffix):
    path = tmp_path / f"out.{suffix}"
    ran = run(*command, "-o", str(path))
    assert ran.exit_code == 0, ran.output
    assert ran.stdout == ""
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "json": b'{"resid": 1'}
    assert path.read_bytes().startswith(begins.get(suffix, b""))
    assert path.stat().st_size > 100


def test_attribute_prints_both_readings(run):
    ran = run("attribute", "the the is", "--target", "the", "--heads", "--neurons", "2")
    assert ran.exit_code == 0
    assert "waterfall" in ran.stdout and "direct" in ran.stdout
    assert "sum of steps = final log-probability" in ran.stdout
    assert "sum of components = logit" in ran.stdout
    assert "neurons: L" in ran.stdout


def test_attribute_in_json_equals_the_library(run, tiny):
    ran = run("attribute", "the the is", "--target", "id:7", "--position", "1", "--format", "json")
    recording = resid.record(tiny, "the the is")
    expected = resid.attribution(tiny, recording, target=7, position=1).to_json()
    found, expected = json.loads(ran.stdout)["data"], json.loads(expected)["data"]
    assert found["target"] == expected["target"] and found["position"] == 1
    for one, other in zip(found["direct"], expected["direct"], strict=True):
        assert one["component"] == other["component"]
        assert one["logit"] == pytest.approx(other["logit"], abs=1e-5)


def test_record_writes_what_open_recording_reads(run, tmp_path, tiny):
    path = tmp_path / "stream.safetensors"
    ran = run("record", "the the is", "-o", str(path), "--points", "all", "--logits")
    assert ran.exit_code == 0
    assert ran.stdout == ""
    assert "7 tensors, 3 positions" in ran.stderr
    back = resid.open_recording(path)
    assert back.source.prompt == "the the is"
    assert back.logits.shape == (3, 300)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["neuron", "L9N0"], 1, "there is no layer 9; .* has layers 0 to 2"),
        (["neuron", "L0N24"], 1, "layer 0 has 0 to 23"),
        (["neuron", "nine"], 1, "write one as L9N652"),
        (["find", "zz"], 1, r'"z" \(id:\d+\), "z"'),
        (["find", "id:300"], 1, "ids 0 to 299"),
        (["memory", "the", "--target", "zz"], 1, "is 2 tokens"),
        (["memory", "the", "--order", "target"], 2, "--order target needs --target"),
        (["memory", "the", "--neurons", "0"], 2, "x>=1"),
        (["attribute", "the"], 2, "--target"),
        (["attribute", "the", "--target", "a", "--position", "0,0-0,5"], 2, "outside"),
        (["attribute", "the is", "--target", "a", "--position", "all"], 2, "give one position"),
        (["record", "the", "-o", "stream.bin"], 2, r"choose one of \.safetensors"),
        (["record", "the"], 2, "-o"),
        (["record", "the", "-o", "no/where.safetensors"], 1, "'no' does not exist"),
        (["record", "the", "--points", "9.mid", "-o", "x.safetensors"], 1, "layers 0 to 2"),
    ],
    ids=str,
)
def test_bad_input_is_told_in_few_lines(run, arguments, status, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = run(*arguments)
    assert ran.exit_code == status, ran.output
    assert ran.stdout == ""
    assert re.search(message, ran.stderr, re.DOTALL), ran.stderr
    assert status == 2 or len(ran.stderr.splitlines()) <= 3
    assert list(tmp_path.iterdir()) == []
