"""What people get wrong: one clear error, the right exit status, and nothing half-written."""

import errno
import json
import os
import re
import shutil

import pytest
import torch
from click.testing import CliRunner

from resid.commands import cli
from resid.commands.files import write_whole
from resid.errors import ResidError

from ..conftest import D_VOCAB, N_CTX, tiny_hf, write_checkpoint


def lens(folder, *arguments, **options):
    return CliRunner().invoke(cli, ["lens", "-m", str(folder), *arguments], **options)


def refused(result, match, status=1):
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) <= 3
    assert re.search(match, result.stderr), result.stderr


# --- prompts --------------------------------------------------------------------------------------


def test_empty_prompt(tiny_folder):
    refused(lens(tiny_folder, ""), "the prompt is empty; give at least one token")


def test_space_is_a_prompt(tiny_folder):
    assert lens(tiny_folder, " ").exit_code == 0


def test_prompt_that_fills_the_context(tiny_folder):
    assert lens(tiny_folder, "a" * N_CTX).exit_code == 0


def test_prompt_longer_than_the_context_never_reaches_the_model(tiny_folder, monkeypatch):
    monkeypatch.setattr("resid.model.Model.forward", lambda *_: pytest.fail("ran"))
    refused(
        lens(tiny_folder, "a" * 33), f"the prompt has 33 tokens; {tiny_folder} reads at most 32"
    )


@pytest.mark.parametrize(
    "command", [["lens"], ["norms"], ["memory"], ["attribute", "--target", "a"]], ids=" ".join
)
def test_second_prompt_is_checked_before_the_first_runs(tiny_folder, command):
    words = [*command, "a", "b" * 33, "-m", str(tiny_folder)]
    refused(CliRunner().invoke(cli, words), "the prompt has 33 tokens")


def test_prompt_that_is_not_utf8(tiny_folder):
    refused(lens(tiny_folder, "caf\udce9"), r"not valid UTF-8: it has \\xe9 at character 3", 2)


def test_prompt_file_that_is_not_utf8(tiny_folder, tmp_path):
    (tmp_path / "prompt").write_bytes(b"caf\xe9")
    result = lens(tiny_folder, "--prompt-file", str(tmp_path / "prompt"))
    refused(result, "prompt' is not valid UTF-8: byte 0xe9 at offset 3")


def test_standard_input_that_is_not_utf8(tiny_folder):
    refused(lens(tiny_folder, "-", input=b"caf\xe9"), "standard input is not valid UTF-8")


@pytest.mark.parametrize("name", ["nope", "."])
def test_prompt_file_that_cannot_be_read(tiny_folder, name):
    refused(lens(tiny_folder, "--prompt-file", name), f"cannot read '{re.escape(name)}': ")


def test_prompt_that_starts_with_a_dash(tiny_folder):
    refused(lens(tiny_folder, "-1 + 1 ="), 'put -- before it: cli lens -- "-1 ', 2)
    assert lens(tiny_folder, "--", "-1 + 1 =").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give a PROMPT, --ids, or --prompt-file"),
        (["a", "--ids", "1"], "give only one of PROMPT, --ids and --prompt-file"),
        (["--ids", "1,x"], "'1,x' is not a list of ids such as 464,3139"),
        (["--ids", "-1"], "'-1' is not a list of ids"),
        (["--ids", ","], "',' is not a list of ids"),
        (["a", "--top", "0"], "0 is not in the range x>=1"),
        (["a", "--top", "-1"], "-1 is not in the range"),
        (["a", "--foil", "b"], "--foil needs --target"),
        (["a", "--show", "rank"], "--show rank needs --target"),
        (["a", "b", "-o", "x.json"], "-o takes one prompt"),
        (["a", "-o", "x.xyz"], r"'x\.xyz' has the suffix '\.xyz'; choose one of \.png"),
        (["a", "-o", "x"], "'x' has no suffix; choose one of"),
        (["a", "-o", "\x1b[31m.xyz"], r"'\\x1b\[31m\.xyz' has the suffix"),
        (["a", "--nope\x1b[31m"], "No such option"),
    ],
)
def test_misuse(tiny_folder, arguments, told):
    result = lens(tiny_folder, *arguments)
    refused(result, told, 2)
    assert "\x1b" not in result.stderr
    assert "see cli lens --help" in result.stderr


@pytest.mark.parametrize(
    "positions", ["3", "-4", "0-3", "2-1", "x", "", ",", "0,,1", "0--1", "1.5"]
)
def test_positions_outside_of_the_prompt(tiny_folder, positions):
    result = lens(tiny_folder, "abc", f"--positions={positions}")
    refused(result, "positions 0 to 2|is not a position; give last, all, or a list", 2)


def test_ids_outside_of_the_vocabulary(tiny_folder):
    result = lens(tiny_folder, "--ids", f"1,{D_VOCAB}")
    refused(result, "the prompt has id 300 at position 1; the model embeds ids 0 to 299")


# --- tokens ---------------------------------------------------------------------------------------


def test_top_above_the_vocabulary(tiny_folder):
    refused(lens(tiny_folder, "a", "--top", "301"), "--top is 301; the vocabulary of .* has 300")


def test_top_of_the_whole_vocabulary(tiny_folder):
    assert lens(tiny_folder, "a", "--top", "300").exit_code == 0


def test_target_of_several_tokens_is_told_in_pieces(tiny_folder):
    result = lens(tiny_folder, "a", "--target", "Ban")
    refused(result, r'"Ban" is 3 tokens, not one: "B" \(id:66\), "a" \(id:97\), "n" \(id:110\)')


def test_target_with_a_missing_space(tiny_folder):
    refused(lens(tiny_folder, "a", "--target", "is"), 'with a leading space it is one: " is"')


@pytest.mark.parametrize("target", ["id:300", "id:99999999999999999999"])
def test_target_outside_of_the_vocabulary(tiny_folder, target):
    refused(lens(tiny_folder, "a", "--target", target), "the vocabulary has ids 0 to 299")


def test_ids_without_a_token_have_a_name(tmp_path):
    hf = tiny_hf(tie_word_embeddings=False)
    with torch.no_grad():
        hf.lm_head.weight[299] = 100 * hf.transformer.ln_f.bias
        hf.transformer.ln_f.weight.zero_()
    result = lens(write_checkpoint(tmp_path, hf), "the", "--top", "1")
    assert result.exit_code == 0
    assert '"<id 299>"' in result.stdout


# --- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["./nope", "/nope/x", "a/b/c", "~/nope"])
def test_missing_folder(name):
    refused(lens(name, "a"), f"the folder '{name}' does not exist")


@pytest.mark.parametrize("name", ["someone/nothing", "x" * 300, "a b?c", "\x1b[31m", "\udcff"])
def test_model_that_is_not_cached(name):
    result = lens(name, "a")
    refused(result, "is not in the local cache, and HF_HUB_OFFLINE is set\n .* -m FOLDER")
    assert "\x1b" not in result.stderr


def test_empty_model_name():
    refused(lens("", "a"), "the model's name is empty; give a hub name, a folder, or mini")


def test_folder_named_like_the_model(tmp_path, monkeypatch):
    (tmp_path / "gpt2").mkdir()
    monkeypatch.chdir(tmp_path)
    refused(lens("gpt2", "a"), "folder 'gpt2' in the working directory was taken for the model")


def test_whole_folder_named_like_the_model_is_told(tiny_folder, tmp_path, monkeypatch):
    shutil.copytree(tiny_folder, tmp_path / "gpt2")
    monkeypatch.chdir(tmp_path)
    told = "model: the folder 'gpt2' here, not a hub model of that name\n"
    assert lens("gpt2", "a").stderr == told
    assert lens("./gpt2", "a").stderr == ""


def test_file_in_place_of_a_folder(tiny_folder):
    refused(lens(tiny_folder / "config.json", "a"), "is a file; give the folder that holds")


def test_revision_of_a_folder(tiny_folder):
    refused(lens(tiny_folder, "a", "--revision", "v1"), "revision .* is a folder")


@pytest.mark.parametrize(
    ("name", "told"), [("nope", "'nope' does not exist"), (".", "has no tokenizer files")]
)
def test_tokenizer_folder(tiny_folder, tmp_path, monkeypatch, name, told):
    monkeypatch.chdir(tmp_path)
    refused(lens(tiny_folder, "a", "--tokenizer", name), told)


def test_text_without_a_tokenizer(tmp_path):
    write_checkpoint(tmp_path, tokenizer=False)
    refused(lens(tmp_path, "a"), "has no tokenizer files; give ids")
    assert lens(tmp_path, "--ids", "1,2").exit_code == 0
    assert lens(tmp_path, "a", "--tokenizer", "mini").exit_code in (0, 1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_device_that_is_not_there(tiny_folder):
    refused(lens(tiny_folder, "a", "--device", "cuda"), "device 'cuda' is not to be had")


def test_weights_that_are_not_numbers(tmp_path):
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.bias[2] = torch.nan
    result = lens(write_checkpoint(tmp_path, hf), "the", "--format", "json")
    assert result.exit_code == 3
    document = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))
    assert document["data"]["entropy"][2] == [None]
    assert document["data"]["entropy"][1] != [None]
    assert "check failed: finite at 1.post at position 0" in result.stderr


# --- files ----------------------------------------------------------------------------------------


def test_missing_output_folder_is_told_before_loading(tmp_path):
    result = lens("./nope", "a", "-o", str(tmp_path / "no" / "a.json"))
    refused(result, r"cannot write '.*a\.json': the folder '.*no' does not exist")


def test_output_that_is_a_folder(tmp_path):
    (tmp_path / "a.json").mkdir()
    refused(lens("./nope", "a", "-o", str(tmp_path / "a.json")), "it is a folder")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_read_only_target(tmp_path):
    (tmp_path / "a.json").write_text("old")
    (tmp_path / "a.json").chmod(0o400)
    refused(lens("./nope", "a", "-o", str(tmp_path / "a.json")), "no permission")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
def test_full_device(tiny_folder, tmp_path):
    (tmp_path / "a.json").symlink_to("/dev/full")
    result = lens(tiny_folder, "a", "-o", str(tmp_path / "a.json"))
    refused(result, r"cannot write '.*a\.json': No space left on device")


def test_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(ResidError, match=r"cannot write '.*a\.json': No space left on device"):
        write_whole(tmp_path / "a.json", b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_text() == "old"


def test_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.chmod", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.json", b"new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_new_files_follow_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "a.json", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == mode


def test_replaced_file_keeps_its_mode_and_its_link(tmp_path):
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "real.json").chmod(0o640)
    (tmp_path / "link.json").symlink_to("real.json")
    write_whole(tmp_path / "link.json", b"new")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_bytes() == b"new"
    assert (tmp_path / "real.json").stat().st_mode & 0o777 == 0o640


# --- what the fuzzers found -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["~nobody-of-that-name", "~nobody-of-that-name/x"])
@pytest.mark.parametrize("words", [["lens", "a", "-m"], ["params"], ["lens", "a", "--tokenizer"]])
def test_home_of_somebody_who_is_not_there(tiny_folder, words, name, monkeypatch):
    monkeypatch.setenv("RESID_MODEL", str(tiny_folder))
    refused(CliRunner().invoke(cli, [*words, name]), "'~nobody-of-that-name.*' does not exist")


@pytest.mark.parametrize("n", [20, 5000])
def test_id_of_more_digits_than_python_reads(tiny_folder, n):
    refused(lens(tiny_folder, "a", "--target", f"id:{'9' * n}"), "the vocabulary has ids 0 to 299")


@pytest.mark.parametrize(
    "words",
    [["memory", "a", "--neurons"], ["find", "id:7", "--neurons"],
     ["attribute", "a", "--target", "id:7", "--neurons"]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_more_neurons_than_there_are_numbers(tiny_folder, words):
    result = CliRunner().invoke(cli, [*words, "9" * 30, "-m", str(tiny_folder), "-q"])
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    "words",
    [["norms", "a", "--outliers"], ["corpus", "lens", "x.txt", "--save-every"],
     ["lab", "race", "--learning-rate"]],
    ids=lambda words: words[-1],
)  # fmt: skip
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
def test_number_that_is_none(words, value):
    refused(CliRunner().invoke(cli, [*words, value]), f"'?{value}|in the range", 2)


@pytest.mark.parametrize("name", ["loop.json", "nowhere.json", "file/a.json", "a" * 300 + ".json"])
def test_output_that_cannot_be_there_is_told_before_loading(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.json").symlink_to("loop.json")
    (tmp_path / "nowhere.json").symlink_to("nowhere/a.json")
    (tmp_path / "file").touch()
    before = sorted(tmp_path.iterdir())
    refused(lens("./nope", "a", "-o", name), f"cannot write '{name}': ")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [["lens", "--positions", "1"], ["norms", "--positions", "1"], ["norms", "--exclude", "1"],
     ["memory", "--positions", "1"], ["attribute", "--target", "id:7", "--position", "1"]],
    ids=lambda words: " ".join(words),
)  # fmt: skip
def test_positions_are_checked_for_all_prompts_before_the_first_is_shown(tiny_folder, words):
    line = [*words, "-m", str(tiny_folder), "abc", "a"]
    refused(CliRunner().invoke(cli, line), "1 is outside of the prompt", 2)
