"""Every command under every encoding, and what each refuses."""

import json

import pytest
from click.testing import CliRunner

from resid.commands import cli
from tests.hard.every_command import NAMES, WITH_FORMATS, run


@pytest.mark.parametrize("charset", ["ascii", "latin-1", "cp1252", "utf-8"])
@pytest.mark.parametrize("name", NAMES)
def test_every_command_writes_to_every_encoding(tiny_folder, tmp_path, name, charset):
    result = run(name, tiny_folder, prompt="→ 🤗", charset=charset, out=tmp_path)
    assert (result.exit_code, "Traceback" in result.output) == (0, False)


@pytest.mark.parametrize("name", WITH_FORMATS)
def test_json_is_alone_on_standard_output_and_has_a_number_for_every_check(tiny_folder, name):
    result = run(name, tiny_folder, "--format", "json", charset="latin-1")
    document = json.loads(result.stdout, parse_constant=lambda text: pytest.fail(text))
    assert document["resid"] == 1
    assert all(isinstance(check["error"], int | float) for check in document["checks"])
    assert result.stderr == ""


REFUSED = [
    (["memory", "ab", "--positions", "2"], 2, "2 is outside of the prompt, .* 0 to 1"),
    (["memory", "ab", "--positions=-3"], 2, "-3 is outside of the prompt"),
    (["norms", "ab", "--positions", "5"], 2, "--positions: 5 is outside"),
    (["norms", "ab", "--exclude", "9"], 2, "--exclude: 9 is outside"),
    (["attribute", "ab", "--target", " is", "--position", "2"], 2, "--position: 2 is outside"),
    (["attribute", "ab", "--target", " is", "--position", "0,1"], 2, "give one position"),
    (["report", "ab", "-o", "x.html", "--positions", "7"], 2, "7 is outside"),
    (["memory", "ab", "--top", "0"], 2, "0 is not in the range"),
    (["memory", "ab", "--top", "301"], 1, "top is 301; it lies between 1 and .* 300"),
    (["memory", "ab", "--neurons", "-1"], 2, "-1 is not in the range"),
    (["find", " is", "--neurons", "0"], 2, "0 is not in the range"),
    (["neuron", "L1N3", "--top", "301"], 1, "top is 301; it lies between 1 and .* 300"),
    (["neuron", "L1N3", "--top", "-1"], 2, "-1 is not in the range"),
    (["neuron", "L3N0"], 1, "no layer 3; .* has layers 0 to 2"),
    (["neuron", "L0N24"], 1, "no neuron 24; layer 0 has 0 to 23"),
    (["neuron", "L0N-1"], 1, "'L0N-1' is not a neuron; write one as L9N652"),
    (["report", "ab", "-o", "x.html", "--top", "301"], 1, "--top is 301; .* has 300"),
    (["norms", "ab", "--points", "3.post"], 1, "'3.post': the model has layers 0 to 2"),
    (["record", "ab", "--points", "-1.post", "-o", "x.safetensors"], 1, "no point '-1.post'"),
    (["find", "Ban"], 1, '"Ban" is 3 tokens, not one'),
    (["attribute", "ab", "--target", "id:7", "--foil", "Ban"], 1, 'the foil "Ban" is 3 tokens'),
    (["find", "-1"], 2, "put -- before it"),
    (["attribute", "-1", "--target", "id:7"], 2, "put -- before it"),
    (["corpus", "memory", "-", "--top", "0"], 2, "0 is not in the range"),
    # Out of memory it would only be found to be when the machine has none left.
    (
        ["corpus", "memory", "-", "--top", "2000000"],
        1,
        "top is 2000000; .* between 1 and 992,063",
    ),
    (["corpus", "memory", "-", "--top", f"1{30 * '0'}"], 1, "it lies between 1 and"),
    (["corpus", "lens", "-", "-o", ""], 2, "Invalid value for -o: the name is empty"),
    (["corpus", "lens", "-", "-o", "run.v2"], 2, "choose one of .* .csv, or none for a folder"),
    (["corpus", "lens", "-", "--resume", ""], 2, "--resume: the name is empty"),
    (["corpus", "merge", ""], 2, "Invalid value for DIR: the name is empty"),
    (["neuron", "L1N3", "--triggers", ""], 2, "--triggers: the name is empty"),
    (["corpus", "merge", ".", "-o", ""], 2, "Invalid value for -o: the name is empty"),
]


@pytest.mark.parametrize(("words", "status", "told"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_is_out_of_range_is_refused_in_few_lines(
    tiny_folder, tmp_path, monkeypatch, words, status, told
):
    import re

    monkeypatch.chdir(tmp_path)
    model = [] if "merge" in words else ["-m", str(tiny_folder)]
    result = CliRunner().invoke(cli, [*words, *model], catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (status, "")
    assert re.search(told, result.stderr), result.stderr
    assert len(result.stderr.splitlines()) <= 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["memory", "ab", "--top", "300", "--neurons", "9999"],
        ["find", " is", "--neurons", "99999"],
        ["neuron", "L1N3", "--top", "300"],
        ["attribute", "ab", "--target", " is", "--position=-1", "--neurons", "999"],
    ],
    ids=lambda words: words[0],
)
def test_the_largest_that_can_be_asked_for_is_given(tiny_folder, words):
    result = CliRunner().invoke(cli, [*words, "-m", str(tiny_folder)], catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (0, "")
