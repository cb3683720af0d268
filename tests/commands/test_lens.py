"""`resid lens`: what it prints, for every way of giving a prompt and a model."""

import csv
import io
import json

import pytest
import torch
from click.testing import CliRunner

import resid
from resid.commands import cli

from ..conftest import IDS, tiny_hf, write_checkpoint


def run(folder, *arguments, **options):
    return CliRunner().invoke(cli, ["lens", "-m", str(folder), *map(str, arguments)], **options)


def document(result):
    """The one JSON object that was printed, read strictly."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))


def test_table_shows_every_point_of_the_last_position(tiny_folder):
    result = run(tiny_folder, "the is")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0] == f'logit lens of {tiny_folder}  "the is"'
    assert lines[1] == 'next token after position 1, " is"'
    labels = [line.split()[0] for line in lines if line.startswith(("embed", "0.", "1.", "2."))]
    assert labels == ["embed", "0.post", "1.post", "2.post"]


def test_json_equals_the_reading(tiny_folder, tiny):
    options = ["--top", "3", "--target", "id:7", "--foil", "id:9", "--points", "all"]
    ids = ",".join(map(str, IDS))
    printed = document(run(tiny_folder, "--ids", ids, "--format", "json", *options))
    lens = resid.logit_lens(
        tiny, resid.record(tiny, IDS, points="all"), top=3, target=7, foil=9, points="all"
    )
    assert printed["data"] == json.loads(lens.to_json())["data"]
    assert printed["source"]["ids"] == IDS
    assert printed["source"]["prompt"] is None
    assert len(printed["axes"]["point"]) == 7


def test_csv_has_a_line_for_every_cell(tiny_folder):
    result = run(tiny_folder, "the is", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["point"], row["pos"]) for row in rows[:3]] == [
        ("embed", "0"), ("embed", "1"), ("0.post", "0"),
    ]  # fmt: skip
    assert len(rows) == 4 * 2


def test_files_and_no_table(tiny_folder, tmp_path):
    names = ["a.json", "a.csv", "a.png", "a.svg", "a.pdf"]
    paths = [str(tmp_path / name) for name in names]
    result = run(tiny_folder, "the is", *(part for path in paths for part in ("-o", path)))
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == "".join(f"wrote {path}\n" for path in paths)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(names)
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["axes"]["pos"] == [0, 1]


def test_quiet_and_table_beside_a_file(tiny_folder, tmp_path):
    result = run(tiny_folder, "a", "-q", "-o", tmp_path / "a.json", "--format", "table")
    assert result.stdout.startswith("logit lens")
    assert result.stderr == ""


def test_several_prompts_give_a_line_of_json_each(tiny_folder):
    result = run(tiny_folder, "a", "the is", "--format", "json")
    prompts = [json.loads(line)["source"]["prompt"] for line in result.stdout.splitlines()]
    assert prompts == ["a", "the is"]


@pytest.mark.parametrize("text", ["the is", "the is\n", "the is\r\n"])
def test_standard_input(tiny_folder, text):
    result = run(tiny_folder, "-", "--format", "json", input=text.encode())
    assert document(result)["source"]["prompt"] == "the is"


def test_prompt_file_keeps_everything_but_its_last_line_break(tiny_folder, tmp_path):
    (tmp_path / "prompt.txt").write_bytes(b" a \n\n")
    result = run(tiny_folder, "--prompt-file", tmp_path / "prompt.txt", "--format", "json")
    assert document(result)["source"]["prompt"] == " a \n"


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ("last", [2]), ("all", [0, 1, 2]), ("0", [0]), ("-1", [2]), ("0-1", [0, 1]),
        ("2,0,0-1", [0, 1, 2]), (" 1 , 2 ", [1, 2]),
    ],
)  # fmt: skip
def test_positions(tiny_folder, positions, expected):
    result = run(tiny_folder, "abc", f"--positions={positions}", "--format", "json")
    assert document(result)["axes"]["pos"] == expected


def test_files_hold_all_positions(tiny_folder):
    assert document(run(tiny_folder, "abc", "--format", "json"))["axes"]["pos"] == [0, 1, 2]


def test_bos_is_one_token_more(tiny_folder):
    ids = document(run(tiny_folder, "the", "--bos", "--format", "json"))["source"]["ids"]
    assert ids == [264, 257]
    assert document(run(tiny_folder, "the", "--format", "json"))["source"]["ids"] == [257]


def test_model_from_the_environment(tiny_folder):
    result = CliRunner().invoke(cli, ["lens", "a"], env={"RESID_MODEL": str(tiny_folder)})
    assert result.stdout.startswith(f"logit lens of {tiny_folder}")
    assert result.stderr == ""


def test_mini_from_any_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("mini", "The")
    assert result.exit_code == 0
    assert result.stdout.startswith("logit lens of mini")
    assert result.stderr == ""


def test_default_model_is_told_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_, **__: None)
    result = CliRunner().invoke(cli, ["lens", "The"])
    assert result.stdout.startswith("logit lens of mini")
    assert result.stderr == (
        "model: mini, bundled with resid, because gpt2 is not in the local cache, and "
        "HF_HUB_OFFLINE is set; -m gpt2 insists on gpt2\n"
    )
    assert CliRunner().invoke(cli, ["lens", "-q", "The"]).stderr == ""


def test_half_precision_is_read_on_request(tiny_folder):
    result = run(tiny_folder, "the is", "--dtype", "bfloat16", "--format", "json")
    assert document(result)["source"]["dtype"] == "bfloat16"


def test_control_characters_never_reach_the_terminal(tmp_path):
    broken = tiny_hf(tie_word_embeddings=False)
    with torch.no_grad():
        broken.transformer.ln_f.weight.zero_()
        for i, byte in enumerate((0x1B, 0x0D, 0x09, 0x00)):
            broken.lm_head.weight[byte] = (100 + i) * broken.transformer.ln_f.bias
    result = run(write_checkpoint(tmp_path, broken), "\x1b[31m\r", "--top", "4")
    assert result.exit_code == 0
    assert not {"\x1b", "\r", "\t", "\x00"} & set(result.stdout)
    assert r"\x1b" in result.stdout and r"\x00" in result.stdout
    assert len([line for line in result.stdout.splitlines() if line.startswith("2.post")]) == 1


@pytest.mark.parametrize("arguments", [["-h"], ["lens", "-h"], ["lens", "--help"]])
def test_help_ends_with_an_example(arguments):
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0
    assert 'resid lens "The capital of France is"' in result.stdout
