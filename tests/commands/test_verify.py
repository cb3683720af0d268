import csv
import io
import json
import re
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner

from resid.commands import cli
from resid.model import Model
from resid.readings import attribution, float64

from ..conftest import D_MODEL, tiny_hf, write_checkpoint
from ..faults import FAULTS, transposed

IDS = "5,290,17,260,17,99,3"


@pytest.fixture(scope="module")
def square_folder(tmp_path_factory):
    """A model whose MLP's keys and values are square: a transposed one keeps its shape."""
    return write_checkpoint(tmp_path_factory.mktemp("square"), tiny_hf(n_inner=D_MODEL))


def verify(folder, *arguments):
    return CliRunner().invoke(cli, ["verify", str(folder), "-q", "--ids", IDS, *arguments])


def test_a_certificate_names_model_format_device_and_prompt(square_folder):
    result = verify(square_folder, "--prompt", " the is")
    assert result.exit_code == 0
    head, told, text, ids, *_ = result.stdout.splitlines()
    assert head == f"verification of {square_folder}"
    assert told.startswith("float32 on cpu; resid ")
    assert text == 'prompt 0: " the is", 2 tokens'
    assert ids == "prompt 1: ids 5, 290, 17, 260, 17, 99, 3, 7 tokens"
    assert "float64  neurons_add_up" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("all ")
    assert result.stderr == ""


def test_without_float64_there_is_one_format(square_folder):
    result = verify(square_folder, "--no-float64")
    assert result.exit_code == 0
    assert "float64" not in result.stdout


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_ends_with_status_3_and_is_named(square_folder, fault, monkeypatch):
    fault.plant(monkeypatch)
    result = verify(square_folder, "--no-float64")
    assert result.exit_code == 3
    assert re.search(f"^check failed: {fault.seen_by[0]} at {fault.where}$", result.stderr, re.M)
    assert re.search(rf"{fault.seen_by[0]} .* FAILED  ", result.stdout)
    assert result.stdout.splitlines()[-1].endswith("checks FAILED")


def test_of_many_failures_the_first_are_named_and_the_rest_counted(tmp_path):
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.bias[2] = torch.nan
    folder = write_checkpoint(tmp_path, hf)
    result = verify(folder, "--format", "json")
    assert result.exit_code == 3
    failed = [check for check in json.loads(result.stdout)["checks"] if not check["passed"]]
    assert len(failed) > 10
    *named, more = result.stderr.splitlines()
    assert named == [f"check failed: {check['name']} at {check['where']}" for check in failed[:2]]
    assert more == f"{len(failed) - 2} more checks failed"
    table = verify(folder).stdout
    assert table.count("FAILED  ") > 10


def test_files_in_every_format(square_folder, tmp_path):
    files = [tmp_path / f"certificate.{suffix}" for suffix in ("json", "csv", "png", "svg")]
    result = verify(square_folder, *(part for file in files for part in ("-o", str(file))))
    assert (result.exit_code, result.stdout) == (0, "")
    document = json.loads(files[0].read_text("utf-8"))
    assert document["analysis"] == "verify" and document["data"]["passed"]
    rows = list(csv.DictReader(io.StringIO(files[1].read_text("utf-8"))))
    assert len(rows) == len(document["checks"])
    assert files[2].read_bytes()[:4] == b"\x89PNG"


def test_the_model_is_given_once(square_folder):
    result = verify(square_folder, "-m", "mini")
    assert result.exit_code == 2
    assert "not both" in result.stderr


def test_half_precision_is_certified_in_its_own_format(square_folder):
    result = verify(square_folder, "--dtype", "bfloat16")
    assert result.exit_code == 0
    assert "bfloat16  neurons_add_up" in result.stdout


COMMANDS = {
    "norms": ["norms", "--ids", IDS],
    "memory": ["memory", "--ids", IDS],
    "attribute": ["attribute", "--ids", IDS, "--target", "id:7"],
}


def run(name, folder):
    return CliRunner().invoke(cli, [*COMMANDS[name], "-m", str(folder), "-q"])


def allow_no_rounding(monkeypatch):
    """The components of a logit then close in float64 only."""
    monkeypatch.setattr(attribution, "_FLOAT32", (1e-4, 1e-12))


def test_rounding_is_told_from_a_fault(square_folder, monkeypatch):
    allow_no_rounding(monkeypatch)
    result = run("attribute", square_folder)
    assert result.exit_code == 3
    failed, again = result.stderr.splitlines()
    assert failed == "check failed: direct_closes at the logit at position 6"
    pattern = r"in float64 the error is \S+ \(tolerance 1e-12\): rounding, not a fault"
    assert re.fullmatch(pattern, again)


def swap_writes(right):
    """What attention wrote under the MLP's name."""
    return lambda self, name: right(self, name.replace("1.mlp_out", "1.attn_out"))


@pytest.mark.parametrize(
    ("name", "attribute", "make", "where"),
    [
        ("memory", "W_out", transposed, r"neurons_add_up at \d\.mlp_out at position \d"),
        ("norms", "site", swap_writes, r"stream_adds_up at 2\.post at position \d"),
        ("attribute", "site", swap_writes, r"direct_closes at the logit at position 6"),
    ],
)
def test_a_fault_stays_a_fault(square_folder, monkeypatch, name, attribute, make, where):
    monkeypatch.setattr(Model, attribute, make(getattr(Model, attribute)))
    result = run(name, square_folder)
    assert result.exit_code == 3
    failed, again = result.stderr.splitlines()
    assert re.fullmatch("check failed: " + where, failed)
    pattern = r"in float64 the error is \S+ \(tolerance 1e-10\): it still fails, a fault"
    assert re.fullmatch(pattern, again)


def test_of_several_failures_each_is_named(square_folder, monkeypatch):
    allow_no_rounding(monkeypatch)
    right = Model.ln_final
    monkeypatch.setattr(Model, "ln_final", lambda self, x: right(self, right(self, x)))
    result = run("attribute", square_folder)
    assert result.exit_code == 3
    assert [line.partition(" at ")[0] for line in result.stderr.splitlines()[:2]] == [
        "check failed: waterfall_telescopes",
        "check failed: direct_closes",
    ]
    telescopes, closes = result.stderr.splitlines()[2:]
    assert telescopes.startswith("waterfall_telescopes in float64: the error is ")
    assert telescopes.endswith("a fault") and closes.endswith("rounding, not a fault")


def test_no_room_for_the_copy_is_told_and_the_status_stays(square_folder, monkeypatch):
    allow_no_rounding(monkeypatch)

    def full(_):
        raise RuntimeError("out of memory\nat length")

    monkeypatch.setattr(float64, "copy", SimpleNamespace(deepcopy=full))
    result = run("attribute", square_folder)
    assert result.exit_code == 3
    assert result.stderr.splitlines()[-1] == (
        f"not checked in float64: no float64 copy of '{square_folder}' can be made: out of memory"
    )


def test_without_a_failure_there_is_no_copy(square_folder, monkeypatch):
    monkeypatch.setattr(float64, "in_float64", None)
    assert [run(name, square_folder).exit_code for name in COMMANDS] == [0, 0, 0]
