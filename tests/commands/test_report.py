"""`resid report`, and .html as the suffix of the other commands."""

import json
import re
import shlex
import stat

import pytest
import torch
from click.testing import CliRunner

from resid.commands import cli
from resid.readings import float64

from ..conftest import tiny_hf, write_checkpoint


def run(*arguments, command="report"):
    return CliRunner().invoke(cli, [command, *map(str, arguments)])


def numbers(path):
    (data,) = re.findall(r'id="numbers">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    return json.loads(data)


def test_a_report_has_every_reading(tiny_folder, tmp_path):
    path = tmp_path / "page.html"
    result = run(" the the is", "-m", tiny_folder, "-o", path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines()[-1].startswith(f"wrote {path} (")
    (report,) = numbers(path)["reports"]
    assert {"lens", "norms", "attribution", "memory", "params", "checks"} <= {*report}
    assert all(check["passed"] for check in report["checks"])


def test_without_a_target_every_position_explains_what_the_model_says_there(tiny_folder, tmp_path):
    path = tmp_path / "page.html"
    run("--ids", "5,290,17,260", "-m", tiny_folder, "-o", path)
    (report,) = numbers(path)["reports"]
    explained = {each["position"]: each["target"] for each in report["attribution"]["each"]}
    assert explained == dict(enumerate(report["lens"]["own"]["id"]))


def test_a_target_is_explained_at_every_position(tiny_folder, tmp_path):
    path = tmp_path / "page.html"
    run("--ids", "5,290,17", "-m", tiny_folder, "--target", "id:7", "--foil", "id:9", "-o", path)
    (report,) = numbers(path)["reports"]
    explained = [(each["target"], each["foil"]) for each in report["attribution"]["each"]]
    assert explained == [(7, 9)] * 3
    assert report["memory"]["target"] == 7


def test_the_command_does_not_tell_where_the_page_lay(tiny_folder, tmp_path):
    path = tmp_path / "page.html"
    run("--ids", "5", "-m", tiny_folder, "-o", path)
    (told,) = re.findall(r'id="command">([^<]*)<', path.read_text("utf-8"))
    assert str(tmp_path) not in told.replace(str(tiny_folder), "")


def test_the_command_of_a_shard_says_which(tiny_folder, tmp_path):
    text, path = tmp_path / "a.txt", tmp_path / "page.html"
    text.write_text("the is the is", encoding="utf-8")
    words = ["corpus", "lens", text, "-m", tiny_folder, "--shard", "1/3", "-o", path]
    words += ["--resume", tmp_path / "run", "--save-every", "9"]
    ran = CliRunner().invoke(cli, [*map(str, words), "-o", str(tmp_path / "other.html")])
    assert ran.exit_code == 0, ran.output
    (told,) = re.findall(r'id="command">([^<]*)<', path.read_text("utf-8"))
    assert " --shard 1/3 " in told
    assert " -o page.html -o other.html -m " in told


def test_an_option_of_nought_is_told(tiny_folder, tmp_path):
    path = tmp_path / "page.html"
    run("block", "-m", tiny_folder, "--layer", "0", "-o", path, command="lab")
    (told,) = re.findall(r'id="command">([^<]*)<', path.read_text("utf-8"))
    assert " --layer 0 " in told


def test_the_numbers_are_those_of_the_other_commands(tiny_folder, tmp_path):
    path, other = tmp_path / "page.html", tmp_path / "lens.json"
    asked = ("--ids", "5,290,17,260", "-m", tiny_folder, "--target", "id:7")
    run(*asked, "-o", path)
    run(*asked, "-o", other, command="lens")
    shown, lens = numbers(path)["reports"][0]["lens"], json.loads(other.read_text("utf-8"))["data"]
    assert shown["top_ids"] == lens["top_ids"]
    assert shown["target"]["rank"] == lens["target"]["rank"]
    assert shown["entropy"][-1] == pytest.approx(lens["entropy"][-1], rel=1e-4)


def test_positions_narrow_attribution_and_neurons_but_not_the_grid(tiny_folder, tmp_path):
    path = tmp_path / "page.html"
    run("--ids", "5,290,17,260", "-m", tiny_folder, "--positions", "1,-1", "-o", path)
    (report,) = numbers(path)["reports"]
    assert [each["position"] for each in report["attribution"]["each"]] == [1, 3]
    assert report["memory"]["positions"] == [1, 3]
    assert report["lens"]["positions"] == [0, 1, 2, 3]


def test_two_prompts_are_aligned(tiny_folder, tmp_path):
    path = tmp_path / "page.html"
    result = run(" the is", "--against", " the the is", "-m", tiny_folder, "-o", path)
    assert result.exit_code == 0
    document = numbers(path)
    assert len(document["reports"]) == 2
    assert document["alignment"]["positions"][-1] == [
        len(report["lens"]["positions"]) - 1 for report in document["reports"]
    ]


def test_two_models_are_aligned_by_depth(tiny_folder, tmp_path):
    deeper = write_checkpoint(tmp_path / "deeper", tiny_hf(seed=1, n_layer=5))
    path = tmp_path / "page.html"
    asked = ("--ids", "5,290,17", "-m", tiny_folder, "--against-model", deeper, "-o", path)
    assert run(*asked).exit_code == 0
    document = numbers(path)
    assert [report["model"] for report in document["reports"]] == [str(tiny_folder), str(deeper)]
    assert document["alignment"]["points"] == [[0, 0], [1, 1], [1, 2], [2, 3], [2, 4], [3, 5]]


def test_a_failed_check_is_told_and_ends_with_3(tmp_path):
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.bias[2] = torch.inf
    folder = write_checkpoint(tmp_path / "broken", hf)
    path = tmp_path / "page.html"
    result = run("--ids", "5,290", "-m", folder, "-o", path)
    assert result.exit_code == 3
    assert "check failed: finite at" in result.stderr
    assert "Traceback" not in result.stderr
    assert not all(check["passed"] for check in numbers(path)["reports"][0]["checks"])


def test_many_failures_are_told_in_few_lines_and_made_again_on_one_copy(tmp_path, monkeypatch):
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.weight[3] = 1e25  # Its square overflows in float32 alone.
    folder = write_checkpoint(tmp_path / "broken", hf)
    right, copies = float64.in_float64, []
    monkeypatch.setattr(float64, "in_float64", lambda model: copies.append(model) or right(model))
    path = tmp_path / "page.html"
    result = run("--ids", "5,290,17,260", "-m", folder, "-o", path, "-q")
    assert result.exit_code == 3
    made = numbers(path)["reports"][0]["checks"]
    failed = sum(not check["passed"] for check in made)
    lines = result.stderr.splitlines()
    assert len(copies) == 1
    assert [line.split(":")[0] for line in lines[:2]] == ["check failed"] * 2
    assert 3 <= failed <= int(re.fullmatch(r"(\d+) more checks failed", lines[2])[1]) + 2
    assert [re.search("in float64", line) is not None for line in lines[3:]] == [True, True]


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["a", "-o", "page.png"], 2, "choose one of .html"),
        (["a"], 2, "'-o'"),
        (["a", "b", "-o", "page.html"], 2, "--against"),
        (["a", "--foil", "b", "-o", "page.html"], 2, "--foil needs --target"),
        (["a", "-o", "absent/page.html"], 1, "does not exist"),
        ([" the", "--positions", "9", "-o", "page.html"], 2, "outside of the prompt"),
        ([" the", "--top", "301", "-o", "page.html"], 1, "the vocabulary"),
        ([" the", "--target", "nope nope", "-o", "page.html"], 1, "the target"),
    ],
)
def test_what_cannot_be_done_is_refused(
    tiny_folder, tmp_path, monkeypatch, arguments, status, told
):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments, "-m", tiny_folder)
    assert result.exit_code == status
    assert told in result.stderr and result.stderr.count("\n") <= 3
    assert [*tmp_path.iterdir()] == []


COMMANDS = {
    "lens": ["--ids", "5,290"],
    "norms": ["--ids", "5,290"],
    "memory": ["--ids", "5,290"],
    "attribute": ["--ids", "5,290", "--target", "id:7"],
    "find": ["id:7"],
    "neuron": ["L0N1"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_reading_writes_a_page_that_tells_how_to_make_it_again(
    tiny_folder, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    result = run(*COMMANDS[command], "-m", tiny_folder, "-o", "page.html", command=command)
    assert result.exit_code == 0
    first = (tmp_path / "page.html").read_bytes()
    (told,) = re.findall(r'id="command">([^<]*)<', first.decode())
    words = shlex.split(told.replace("&#39;", "'"))
    assert words[:2] == ["resid", command]
    (tmp_path / "page.html").unlink()
    again = run(*words[2:], command=command)
    assert again.exit_code == 0
    assert (tmp_path / "page.html").read_bytes() == first


def test_a_page_of_params_needs_no_model(tmp_path):
    path = tmp_path / "page.html"
    assert run("gpt2", "gpt2-xl", "-o", path, command="params").exit_code == 0
    counted = [count["total"] for count in numbers(path)["reports"][0]["params"]]
    assert counted == [124_439_808, 1_557_611_200]


def test_a_prompt_from_standard_input_and_one_that_looks_like_an_option(tiny_folder, tmp_path):
    path = tmp_path / "page.html"
    arguments = ["report", "-m", str(tiny_folder), "-o", str(path)]
    CliRunner().invoke(cli, [*arguments, "-"], input="-is it\n")
    (told,) = re.findall(r'id="command">([^<]*)<', path.read_text("utf-8"))
    words = shlex.split(told.replace("&#39;", "'"))
    assert words[-2:] == ["--", "-is it"]


def test_the_page_replaces_an_old_one_whole_and_keeps_its_mode(tiny_folder, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    path.chmod(0o640)
    assert run(" the", "-m", tiny_folder, "-o", path).exit_code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_text("utf-8").startswith("<!doctype html>")
