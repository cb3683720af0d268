import csv
import io
import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.text import Text

import resid
from resid.commands import cli
from resid.corpus import state
from tests.corpus.conftest import corpus_file, texts  # noqa: F401


@pytest.fixture
def run(tiny_folder, corpus_file):  # noqa: F811
    def invoke(kind, *options, text=None, model=tiny_folder, **rest):
        file = str(text or corpus_file)
        line = ["corpus", kind, file, "-m", str(model), "--batch-tokens", "24", *options]
        return CliRunner().invoke(cli, line, **rest)

    return invoke


@pytest.fixture
def merge():
    return lambda *line: CliRunner().invoke(cli, ["corpus", "merge", *line])


@pytest.mark.parametrize(
    ("kind", "rows", "told"),
    [
        ("lens", 4, "last point's loss = the model's own"),
        ("norms", 4 + 6, "embed + all writes = last point"),
        ("memory", 3 * 24, "coefficients x values + bias = mlp_out"),
    ],
)
def test_a_table_json_csv_and_a_figure(run, tmp_path, kind, rows, told):
    table = run(kind)
    assert table.exit_code == 0, table.output
    assert "750 tokens in 14 documents of text.jsonl" in table.stdout
    assert told in table.stdout
    assert "2 lines" in table.stdout
    assert "left out: " in table.stderr and "line 6: not JSON" in table.stderr
    files = [str(tmp_path / f"a.{suffix}") for suffix in ("json", "csv", "png", "svg")]
    ran = run(kind, *(part for file in files for part in ("-o", file)), "-q")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", "")
    document = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert document["analysis"] == f"corpus_{kind}"
    assert document["data"]["tokens"] == 750
    assert document["source"]["files"][0]["sha256"]
    assert len(list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text("utf-8"))))) == rows
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_shards_merge_to_what_one_run_says(run, merge, tmp_path):
    whole = run("lens", "--format", "json", "-o", str(tmp_path / "whole"))
    for k in "12":
        part = run("lens", "--shard", f"{k}/2", "-o", str(tmp_path / k), "-q")
        assert part.exit_code == 0
        assert f"shard {k} of 2" in part.stdout
    joined = str(tmp_path / "joined")
    ran = merge(str(tmp_path / "2"), str(tmp_path / "1"), "-o", joined, "--format", "json")
    assert ran.exit_code == 0, ran.output
    assert ran.stdout == whole.stdout
    assert merge(joined, "--format", "json", "-q").stdout == whole.stdout
    same = [(tmp_path / name / state.FILE).read_bytes() for name in ("whole", "joined")]
    assert same[0] == same[1]
    assert merge(str(tmp_path / "1"), "-o", joined).exit_code == 1
    assert "shard 1 of 2" in merge(str(tmp_path / "1")).stdout


def test_a_finished_run_is_shown_again_without_reading(run, tmp_path, monkeypatch):
    first = run("memory", "--resume", str(tmp_path / "run"), "--format", "json")

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr("resid.corpus.memory.MemoryReading.read", fail)
    again = run("memory", "--resume", str(tmp_path / "run"), "--format", "json", "-q")
    assert again.stdout == first.stdout


def test_a_neuron_shows_its_triggers(run, tmp_path, tiny_folder):
    folder = str(tmp_path / "fired")
    assert run("memory", "-o", folder, "-q", "--top", "3").exit_code == 0
    found = state.open_run(folder).totals
    neuron = int(found.fires.counts[1].argmax())
    line = ["neuron", f"L1N{neuron}", "--triggers", folder, "-m", str(tiny_folder)]
    ran = CliRunner().invoke(cli, [*line, "--format", "json"])
    assert ran.exit_code == 0, ran.output
    data = json.loads(ran.stdout)["data"]
    assert len(data["triggers"]) == 3
    first = data["triggers"][0]
    assert {"activation", "document", "file", "line", "pos", "context"} <= set(first)
    assert first["context"] == first["before"] + first["token"] + first["after"]
    assert first["activation"] == pytest.approx(float(found.triggers[1].activation[neuron, 0]))
    assert data["fires"] == found.fires.counts[1, neuron] / 750
    assert data["corpus"]["tokens"] == 750
    assert [file["name"] for file in data["corpus"]["files"]] == [first["file"]]
    table = CliRunner().invoke(cli, line).stdout
    assert "of 750 tokens in 14 documents of text.jsonl" in table
    assert "fires on" in table and "fired by" in table
    whole = CliRunner().invoke(cli, ["corpus", "merge", folder, "--format", "csv", "-q"]).stdout
    (row,) = (
        row
        for row in csv.DictReader(io.StringIO(whole))
        if (row["layer"], row["neuron"]) == ("1", str(neuron))
    )
    names = ("document", "file", "line", "pos", "context", "before", "token", "after")
    assert [row[name] for name in names] == [str(first[name]) for name in names]
    rows = CliRunner().invoke(cli, [*line, "--format", "csv", "-q"]).stdout
    lists = [row["list"] for row in csv.DictReader(io.StringIO(rows))]
    assert lists.count("triggers") == 3
    fewer = CliRunner().invoke(cli, [*line, "--format", "json", "--top", "2"])
    fewer = json.loads(fewer.stdout)["data"]
    assert fewer["triggers"] == data["triggers"][:2]
    assert fewer["agreement"] == data["agreement"]
    assert CliRunner().invoke(cli, [*line, "-o", str(tmp_path / "card.png")]).exit_code == 0
    from resid.corpus.cards import with_triggers
    from resid.render.figure.memory import card_figure

    model = resid.load(tiny_folder)
    card = with_triggers(resid.neuron_card(model, f"L1N{neuron}"), model, folder)
    unknown = replace(card.promoted, ids=np.full_like(card.promoted.ids, -1))
    assert card.agreement is not None
    assert with_triggers(replace(card, promoted=unknown), model, folder).agreement is None
    drawn = [text.get_text() for text in card_figure(card).findobj(Text)]
    assert "fired by" in drawn
    assert any("fires on" in text.lower().replace("\n", " ") for text in drawn)
    for one in card.triggers:
        place = f"{Path(one['file']).name}:{one['line']}, pos {one['pos']}"
        assert any(text.endswith(place) for text in drawn)
    assert len([text for text in drawn if "«" in text and "»" in text]) == 3
    named = replace(card.corpus, files=({"name": "日本.txt", "bytes": 1, "sha256": "0"},))
    drawn = [text.get_text() for text in card_figure(replace(card, corpus=named)).findobj(Text)]
    assert r"\u65e5\u672c.txt" in " ".join(drawn)


@pytest.mark.parametrize("projection", ["folded", "raw"])
def test_a_card_says_how_often_what_it_promotes_comes_next(tmp_path, projection):
    """By the card's own projection, whichever the run had."""
    text, folder = "examples/places.txt", str(tmp_path / "fired")
    line = ["corpus", "memory", text, "--split", "lines", "-m", "mini", "-o", folder, "-q"]
    line += ["--projection", projection, "--max-tokens", "600"]
    assert CliRunner().invoke(cli, line).exit_code == 0
    totals = state.open_run(folder).totals
    differ = 0
    for neuron in range(460, 470):
        line = ["neuron", f"L7N{neuron}", "-m", "mini", "--triggers", folder, "--format", "json"]
        data = json.loads(CliRunner().invoke(cli, line).stdout)["data"]
        follows = [t.next_id for t in totals.triggers_of(7, neuron, totals.vocabulary(), [text])]
        follows = [token for token in follows if token >= 0]
        says = data["promoted"][0]["id"]
        assert data["projection"] == "folded"
        assert data["agreement"] == pytest.approx(follows.count(says) / len(follows))
        differ += says != totals.says[7, neuron]
    assert (differ > 0) == (projection == "raw")


def test_a_folder_that_cannot_be_written_to_is_told_before_the_model_is_loaded(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)  # Root may all.
    for option in ("-o", "--resume"):
        ran = run("lens", option, str(tmp_path / "run"), model="also-nowhere/model/x")
        assert ran.exit_code == 1
        assert f"cannot save a run in '{tmp_path / 'run'}': no permission" in ran.stderr


def test_triggers_of_another_model_or_analysis_are_refused(run, tmp_path, tiny_folder):
    for kind, name in (("lens", "L1N0"), ("memory", "L1N0")):
        run(kind, "-o", str(tmp_path / kind), "-q")
        model = "mini" if kind == "memory" else str(tiny_folder)
        line = ["neuron", name, "--triggers", str(tmp_path / kind), "-m", model]
        ran = CliRunner().invoke(cli, line)
        assert ran.exit_code == 1
        told = "other weights" if kind == "memory" else "keeps no triggers"
        assert told in ran.stderr
        assert len(ran.stderr.splitlines()) <= 3
    folder, line = str(tmp_path / "memory"), ["neuron", "L1N0", "-m", str(tiny_folder)]
    ran = CliRunner().invoke(cli, [*line, "--triggers", folder, "--dtype", "bfloat16"])
    assert "made with other dtype" in ran.stderr
    ran = run("memory", "--resume", folder, "--dtype", "bfloat16")
    assert "made with another dtype: float32, not bfloat16" in ran.stderr
    folder = shutil.copytree(tiny_folder, tmp_path / "heads")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"n_head": 1}), encoding="utf-8")
    line = ["neuron", "L1N0", "--triggers", str(tmp_path / "memory"), "-m", str(folder)]
    assert "made with other configuration" in CliRunner().invoke(cli, line).stderr
    ran = run("memory", "--resume", str(tmp_path / "memory"), model=folder)
    assert ran.exit_code == 1
    assert "made with another configuration" in ran.stderr


def test_standard_input(run):
    ran = run("lens", "--split", "lines", "-q", "--format", "json", text="-", input="the the\nis\n")
    assert json.loads(ran.stdout)["data"]["documents"] == 2
    refused = run("lens", "--resume", "somewhere", text="-", input="x")
    assert refused.exit_code == 1
    assert "standard input cannot be read twice" in refused.stderr


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (["--shard", "3/2"], 2, "not a shard"),
        (["--shard", "x"], 2, "not a shard"),
        (["--context", "99"], 1, "the context is 99"),
        (["--context", "4", "--stride", "5"], 1, "the stride is 5"),
        (["--strict"], 1, "line 6: not JSON"),
        (["-o", "nowhere/run"], 1, "'nowhere' does not exist"),
        (["-o", "a", "-o", "b"], 2, "one -o can be a folder"),
        (["-o", "a.txt"], 2, "suffix"),
        (["--resume", "a", "-o", "b"], 2, "not both"),
        (["--shards", "1/2"], 2, "--shards"),
        (["--field", ""], 2, "the name is empty"),
        ([""], 2, "the name is empty"),
    ],
)
def test_what_cannot_be_meant_is_told_in_few_lines(
    run, tmp_path, monkeypatch, options, status, told
):
    monkeypatch.chdir(tmp_path)
    ran = run("lens", *options)
    assert ran.exit_code == status, ran.output
    assert told in ran.stderr
    assert len(ran.stderr.splitlines()) <= 3
    assert "Traceback" not in ran.output
    assert "put --" not in ran.stderr  # There is no prompt that could begin with it.


def test_a_text_that_holds_nothing_is_an_error(run, tmp_path, corpus_file):  # noqa: F811
    ran = run("lens", "--field", "nope")
    assert ran.exit_code == 1
    assert ran.stdout == ""
    assert f"Error: there is nothing to read in '{corpus_file}'" in ran.stderr
    assert "17 of its lines cannot be read, the first of them" in ran.stderr
    assert "text.jsonl, line 1: no field 'nope'" in ran.stderr
    assert "left out in all: 17 lines" in ran.stderr
    (tmp_path / "empty.txt").touch()
    ran = run("memory", text=tmp_path / "empty.txt")
    assert ran.exit_code == 1
    assert "1 of its documents had no text" in ran.stderr


def test_a_shard_that_holds_nothing_says_why_and_merges(run, merge, tmp_path):
    parts = [str(tmp_path / f"{k}") for k in (1, 2, 90)]
    for part in parts:
        ran = run("lens", "--shard", f"{Path(part).name}/90", "-o", part)
        assert ran.exit_code == 0, ran.output
    assert "0 tokens in 0 documents, shard 90 of 90" in ran.stdout
    assert "nothing fell to this part" in ran.stdout and "0.0%" not in ran.stdout
    table = merge(*parts).stdout
    assert "shards 1, 2, 90 of 90 of text.jsonl" in table
    assert "missing: shards 3-89 of 90" in table
    assert "nothing fell" not in table


def test_an_interrupted_run_says_that_it_is_saved(run, tmp_path, monkeypatch):
    folder = str(tmp_path / "run")
    expected = run("lens", "-q").stdout
    from resid.commands.corpus_progress import Progress

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "step", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        ran = run("lens", "--resume", folder)
    assert (ran.exit_code, ran.stdout) == (130, "")
    assert ran.stderr.endswith(
        f"what was read is saved; go on with it by --resume {folder}\ninterrupted\n"
    )
    assert state.read(Path(folder) / state.FILE).tally.tokens > 0
    assert run("lens", "--resume", folder, "-q").stdout == expected


def test_a_text_that_does_not_exist_is_told_before_the_model_is_loaded(run):
    ran = run("lens", text="nowhere.txt", model="also-nowhere/model/x")
    assert ran.exit_code == 1
    assert "no file 'nowhere.txt'" in ran.stderr


def test_a_failed_check_ends_with_status_3(run, monkeypatch):
    from resid import unembed

    right = unembed.logprobs_of
    monkeypatch.setattr(unembed, "logprobs_of", lambda *args: right(*args) + 0.01)
    ran = run("lens", "-q")
    assert ran.exit_code == 3
    assert "check failed: loss_equals_own at document" in ran.stderr
    assert "FAILED" in ran.stdout


def test_every_help_ends_with_an_example():
    for name in ("lens", "norms", "memory", "merge"):
        ran = CliRunner().invoke(cli, ["corpus", name, "-h"])
        assert "Example" in ran.stdout
        assert f"resid corpus {name}" in ran.stdout
    assert CliRunner().invoke(cli, ["corpus", "-h"]).exit_code == 0
