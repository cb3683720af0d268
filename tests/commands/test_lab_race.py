import csv
import io
import json

import pytest
from click.testing import CliRunner

from resid.commands import cli
from resid.lab import race as racing


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Models and measurements that take no time; what decides is under test elsewhere."""
    monkeypatch.setattr(racing, "_D_MODEL", 16)
    monkeypatch.setattr(racing, "_HELD_OUT", 640)


SMALL = ("--steps", "2", "--layers", "1")


def run(*arguments):
    return CliRunner().invoke(cli, ["lab", "race", *arguments])


def test_table():
    result = run(*SMALL, "--variants", "base,no-residual", "--seeds", "2")
    assert result.exit_code == 0
    assert result.stdout.startswith("lab race of GPTs of 1 layer, d_model 16")
    rows = [line.split()[0] for line in result.stdout.splitlines() if " " in line]
    assert rows.count("base") == 1
    assert rows.count("no-residual") >= 2  # What it came to, and its verdict.
    assert "against base" in result.stdout
    assert "1 degree of freedom" in result.stdout
    assert result.stderr == ""


def test_json_and_csv_hold_every_run():
    arguments = (*SMALL, "--variants", "base,base", "--seeds", "2", "--seed", "7")
    result = run(*arguments, "--format", "json")
    document = json.loads(result.stdout, parse_constant=pytest.fail)
    assert document["analysis"] == "lab_race"
    assert document["source"]["seed"] == 7
    assert document["axes"]["variant"] == ["base", "base (2)"]
    assert document["data"]["seeds"] == [[7, 8], [9, 10]]
    assert document["data"]["degrees_of_freedom"] == 1
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--format", "csv").stdout)))
    assert len(rows) == 2 * 2 * 3
    loss = document["data"]["loss"]
    assert float(rows[-1]["held_out_loss"]) == loss[1][1][2]


def test_the_same_seed_gives_the_same_bytes():
    arguments = (*SMALL, "--variants", "base,relu", "--seeds", "2", "--format", "json")
    assert run(*arguments).stdout == run(*arguments).stdout
    assert run(*arguments, "--seed", "1").stdout != run(*arguments).stdout


def test_files_are_written(tmp_path):
    names = ["race.png", "race.svg", "race.json", "race.csv"]
    options = [part for name in names for part in ("-o", str(tmp_path / name))]
    result = run(*SMALL, "--variants", "base,linear", "--seeds", "2", "-q", *options)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert all((tmp_path / name).stat().st_size > 100 for name in names)


def test_a_text_of_ones_own(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_bytes("Grüße, ".encode() * 500)
    options = ("--text", str(file), "--seeds", "1", "--variants", "base")
    result = run(*SMALL, *options, "--format", "json")
    settings = json.loads(result.stdout)["source"]["settings"]
    assert (settings["text"], settings["bytes"]) == ("mine.txt", 4500)


def test_it_goes_on_after_an_interruption(tmp_path, monkeypatch):
    arguments = (*SMALL, "--variants", "base,relu", "--seeds", "2", "--format", "json")
    folder = ("--resume", str(tmp_path / "runs"))
    undisturbed = run(*arguments)
    monkeypatch.setattr(racing, "_cores", lambda: 1)  # So that it is known which run it hits.
    real = racing.advance
    made = []

    def interrupted(*given, **named):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(1)
        real(*given, **named)

    monkeypatch.setattr(racing, "advance", interrupted)
    stopped = run(*arguments, *folder)
    assert stopped.exit_code == 130
    assert stopped.stdout == ""
    monkeypatch.setattr(racing, "advance", real)
    assert len(list((tmp_path / "runs").glob("*.seed*.json"))) == 2
    result = run(*arguments, *folder)
    assert (result.exit_code, result.stdout) == (0, undisturbed.stdout)


def test_what_is_not_finite_ends_with_3():
    result = run(
        "--steps", "8", "--layers", "4", "--seeds", "2", "--variants", "base,relu",
        "--learning-rate", "10", "--format", "json",
    )  # fmt: skip
    assert result.exit_code == 3
    assert "check failed: finite at" in result.stderr
    json.loads(result.stdout, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--variants", "base,gelo"], 1, "there is no variant 'gelo'; choose from base"),
        (["--variants", ""], 1, "there is no variant ''"),
        (["--variants", "2x+8x"], 1, "changes expansion twice"),
        (["--text", "/absent/file"], 1, "cannot read '/absent/file'"),
        (["--resume", "/absent/folder"], 1, "cannot use '/absent/folder'"),
        (["--seeds", "0"], 2, "--seeds"),
        (["--steps", "0"], 2, "--steps"),
        (["--learning-rate", "0"], 2, "--learning-rate"),
        (["--pairs", "some"], 2, "--pairs"),
    ],
)
def test_wrong_usage_is_told(arguments, code, message):
    result = run(*SMALL, *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert len(result.stderr.splitlines()) <= 3
    assert result.stdout == ""


def test_another_race_in_the_folder_is_named(tmp_path):
    folder = ("--resume", str(tmp_path / "runs"), "--seeds", "1", "--variants", "base")
    assert run(*SMALL, *folder, "-q").exit_code == 0
    result = run("--layers", "1", "--steps", "3", *folder)
    assert result.exit_code == 1
    assert "holds a race with steps 2; this one has 3" in result.stderr


def test_help_names_every_variant_and_ends_with_examples():
    from resid.lab.race_variants import CHANGES

    text = run("-h").stdout
    assert all(name in text for name in CHANGES)
    assert text.index("Examples:") < text.index("resid lab race --text")
