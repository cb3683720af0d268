import csv
import io
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from resid.commands import cli

IDS = "5,290,17,260,17,99,3"


def run(*arguments, **environment):
    return CliRunner(env=environment).invoke(cli, ["lab", "activations", *arguments])


def test_table_without_a_model():
    result = run()
    assert result.exit_code == 0
    assert result.stdout.startswith("lab activations of five functions")
    assert "-0.169971 at -0.751792" in result.stdout
    assert "-0.170041 at -0.752461" in result.stdout
    assert "+4.7324e-4" in result.stdout
    assert "neurons" not in result.stdout
    assert result.stderr == ""


def test_no_model_is_loaded_because_one_is_set():
    result = run(RESID_MODEL="/absent/model")
    assert result.exit_code == 0
    assert "five functions" in result.stdout


def test_without_a_model_torch_is_not_imported():
    code = (
        "import sys\nfrom resid.commands import cli\n"
        "cli(['lab', 'activations', '--format', 'csv'], standalone_mode=False)\n"
        "assert 'numpy' in sys.modules\nassert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_table_with_a_model(tiny_folder):
    result = run("-m", str(tiny_folder), "--ids", IDS, "-q")
    assert result.exit_code == 0
    assert "whose own function is tanh GELU" in result.stdout
    assert "neurons at or below 0 at all 7 positions" in result.stdout


def test_json_equals_the_function(tiny_folder, tiny):
    from resid.lab.activations_in_model import activations_of

    result = run("-m", str(tiny_folder), "--ids", IDS, "--format", "json", "--seed", "3")
    document = json.loads(result.stdout)
    ids = [int(i) for i in IDS.split(",")]
    assert document["data"] == json.loads(activations_of(tiny, ids).to_json())["data"]
    assert document["axes"]["layer"] == [0, 1, 2]
    assert document["source"]["seed"] == 3
    assert document["source"]["settings"]["ids"] == ids


def test_csv_has_a_row_for_every_x():
    rows = list(csv.DictReader(io.StringIO(run("--format", "csv").stdout)))
    assert len(rows) == 161
    (zero,) = [row for row in rows if float(row["x"]) == 0]
    assert float(zero["gelu"]) == 0
    assert float(zero["gelu_slope"]) == 0.5


def test_files_are_written(tmp_path, tiny_folder):
    names = ["a.png", "a.svg", "a.json", "a.csv"]
    options = [part for name in names for part in ("-o", str(tmp_path / name))]
    result = run("-m", str(tiny_folder), "--prompt", " the the", "-q", *options)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert all((tmp_path / name).stat().st_size > 100 for name in names)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--prompt", "x", "--ids", "1"], 2, "give only one of --prompt and --ids"),
        (["-m", "/absent/model"], 1, "/absent/model"),
        (["--ids", "1,x"], 2, "is not a list of ids"),
        (["--seed", "-1"], 2, "--seed"),
    ],
)
def test_wrong_usage_is_told(arguments, code, message):
    result = run(*arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""


def test_an_empty_prompt_is_told(tiny_folder):
    result = run("-m", str(tiny_folder), "--prompt", "", "-q")
    assert result.exit_code == 1
    assert "the prompt is empty" in result.stderr


def test_help_ends_with_examples():
    text = run("-h").stdout
    assert text.index("Examples:") < text.index("resid lab activations -m gpt2")
