"""Where output goes: pipes, full disks, odd encodings, Ctrl-C, and processes without a home."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

import resid
from resid.commands import cli

from ..conftest import write_checkpoint

RESID = [sys.executable, "-W", "error::FutureWarning", "-m", "resid"]
# The quickest command with real output: it imports neither torch nor transformers.
QUICK = [*RESID, "params", "gpt2-xl"]


def process(command, **options):
    environment = os.environ | options.pop("env", {})
    return subprocess.run(
        command, env=environment, stderr=subprocess.PIPE, text=True, timeout=120, **options
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("format", ["table", "json"])
def test_reader_that_closes_the_pipe_is_no_error(unbuffered, format):
    read, write = os.pipe()
    os.close(read)
    environment = {"PYTHONUNBUFFERED": unbuffered}
    done = process([*QUICK, "--format", format], stdout=write, env=environment)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("format", ["table", "json", "csv"])
def test_full_disk(format):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = process([*QUICK, "--format", format], stdout=full)
    told = "Error: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
def test_closed_standard_output():
    done = process(f'"{sys.executable}" -m resid params gpt2 >&-', shell=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: standard output is closed")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("after", [0.3, 0.8, 1.6])
def test_interrupt_while_importing_and_loading(after):
    command = [*RESID, "lens", "-m", "mini", "The"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(after)
    running.send_signal(signal.SIGINT)
    output, told = running.communicate(timeout=60)
    assert running.returncode == 130
    assert output == ""
    assert told in ("", "interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_interrupt_that_a_library_swallows():
    code = (
        "import os, signal\nfrom resid.commands.interrupts import ending_at_once\n"
        "with ending_at_once():\n  try: os.kill(os.getpid(), signal.SIGINT)\n"
        "  except BaseException: pass\n  print('went on')"
    )
    done = process([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_interrupt_while_the_model_runs(tiny_folder, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("resid.model.Model.forward", interrupt)
    result = CliRunner().invoke(cli, ["lens", "-m", str(tiny_folder), "a"])
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interrupted\n")


@pytest.fixture(scope="module")
def arrow_folder(tmp_path_factory):
    """A model with a token that few encodings have."""
    folder = write_checkpoint(tmp_path_factory.mktemp("arrow"))
    tokenizer = resid.load(folder).vocabulary.tokenizer
    tokenizer.add_tokens(["→"])
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
@pytest.mark.parametrize("format", ["table", "json", "csv"])
def test_signs_outside_of_the_encoding(arrow_folder, encoding, format):
    arguments = ["lens", "-m", str(arrow_folder), "→ 🤗", "--format", format]
    result = CliRunner(charset=encoding).invoke(cli, arguments, catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (0, "")
    assert ("→" if encoding == "utf-8" else r"\u2192") in result.stdout


def test_signs_outside_of_the_encoding_become_escapes(tiny_folder):
    arguments = ["lens", "-m", str(tiny_folder), "→ é"]
    first, *_ = CliRunner(charset="latin-1").invoke(cli, arguments).stdout.splitlines()
    assert first.endswith(r'"\u2192 é"')


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_json_survives_any_encoding(tiny_folder, encoding):
    arguments = ["lens", "-m", str(tiny_folder), "→ 🤗", "--format", "json"]
    result = CliRunner(charset=encoding).invoke(cli, arguments)
    assert json.loads(result.stdout)["source"]["prompt"] == "→ 🤗"


def test_files_are_utf8_whatever_the_terminal(tiny_folder, tmp_path):
    arguments = ["lens", "-m", str(tiny_folder), "→ 🤗", "-o", str(tmp_path / "→.json")]
    result = CliRunner(charset="latin-1").invoke(cli, arguments)
    assert result.exit_code == 0
    found = json.loads((tmp_path / "→.json").read_bytes().decode("utf-8"))
    assert found["source"]["prompt"] == "→ 🤗"


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"COLUMNS": "40"}, {"COLUMNS": "x"}])
def test_no_escape_sequences_in_a_pipe(tiny_folder, environment):
    arguments = ["lens", "-m", str(tiny_folder), "the is"]
    result = CliRunner().invoke(cli, arguments, env=environment)
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout


def test_runs_without_a_home_and_without_a_warning(tmp_path):
    """Also: every stream holds what it should, whichever transformers there is."""
    environment = {"HOME": "/dev/null", "HF_HOME": "/dev/null/cache", "HF_HUB_OFFLINE": "1"}
    command = [*RESID, "lens", "The", "--format", "json"]
    done = process(command, stdout=subprocess.PIPE, env=environment, cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["source"]["model"] == "mini"
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("model: mini, bundled")


def test_argument_bytes_that_are_not_utf8(tmp_path):
    if os.name == "nt":
        pytest.skip("arguments are text there")
    done = process([*map(os.fsencode, RESID), b"lens", b"caf\xe9"], stdout=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stdout == ""
    assert r"the prompt is not valid UTF-8: it has \xe9 at character 3" in done.stderr


def test_asking_for_what_is_not_there_imports_no_torch():
    code = (
        "import sys\nfrom resid.__main__ import main\nsys.argv[1:] = sys.argv[2:]\n"
        "try: main()\nfinally: print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    for arguments in (["--help"], ["lens", "-h"], ["lens", "-m", "./nope", "a"], ["lens"]):
        done = process([sys.executable, "-c", code, "", *arguments], stdout=subprocess.PIPE)
        assert done.stdout.endswith("[]\n"), arguments


def test_windows_does_not_expand_the_prompt(monkeypatch):
    given = {}
    monkeypatch.setattr(cli, "main", lambda **options: given.update(options))
    from resid.__main__ import main

    main()
    assert given["windows_expand_args"] is False
