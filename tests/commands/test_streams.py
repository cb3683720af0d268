"""Where output goes: pipes, full disks, odd encodings, Ctrl-C, and processes without a home."""

import json
import os
import subprocess
import sys

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


# Python imports this by itself, before all else.
INTERRUPTING = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_IMPORT"]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    "module",
    ["click", "numpy.dtypes", "torch.nn", "tokenizers", "resid.render.terminal"],
)
def test_interrupt_while_importing_and_loading(module, tmp_path):
    """At a module, not after a time: machines differ in how far they have come by then.

    At numpy's, Python's own KeyboardInterrupt would be told as a broken library.
    """
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING, encoding="utf-8")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"PYTHONPATH": os.pathsep.join(paths), "INTERRUPTED_IMPORT": module}
    command = [*RESID, "lens", "-m", "mini", "The"]
    done = process(command, stdout=subprocess.PIPE, env=environment)
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr in ("", "interrupted\n")


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
    for name in ("obey_termination", "end_at_once_from_here"):
        monkeypatch.setattr(f"resid.commands.interrupts.{name}", lambda: None)
    from resid.__main__ import main

    main()
    assert given["windows_expand_args"] is False


# --- what the fuzzers found -----------------------------------------------------------------------

DEV_FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
A_SHELL = pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")


def shell(line, **options):
    return process(
        f'"{sys.executable}" -m resid {line}', shell=True, stdout=subprocess.PIPE, **options
    )


@DEV_FULL
@pytest.mark.parametrize("words", ["--help", "-V", "lens -h"])
def test_help_on_a_full_disk(words):
    done = shell(f"{words} >/dev/full")
    told = "Error: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


@A_SHELL
@pytest.mark.parametrize("words", ["--help", "lens -h"])
def test_reader_of_the_help_that_closes_the_pipe_is_no_error(words):
    read, write = os.pipe()
    os.close(read)
    done = process([*RESID, *words.split()], stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@A_SHELL
@pytest.mark.parametrize(
    "stderr", ["2>&-", "2</dev/null", pytest.param("2>/dev/full", marks=DEV_FULL)]
)
@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("params gpt2 -o no/folder.json", 1),
        ("params gpt2 --format csv", 0),
        ("lens --nope", 2),
        ("params ./none", 1),
    ],
)
def test_nobody_to_be_told_changes_no_status(stderr, words, status, tmp_path):
    done = shell(f"{words} {stderr}", cwd=tmp_path)
    assert done.returncode == status
    assert bool(done.stdout) == (status == 0)


@A_SHELL
@pytest.mark.parametrize("stderr", ["2>&-", pytest.param("2>/dev/full", marks=DEV_FULL)])
def test_a_notice_without_a_reader_is_left_out(stderr, tiny_folder, tmp_path):
    (tmp_path / "tiny").symlink_to(tiny_folder)
    done = shell(f"params tiny -o a.json --format csv {stderr}", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("model,")
    assert json.loads((tmp_path / "a.json").read_text())["resid"] == 1


@A_SHELL
def test_what_is_said_ends_in_no_file(tmp_path):
    """With standard error closed, the next file that is opened would get its number."""
    code = (
        "import os, sys, click\nfrom resid.commands import cli\n"
        "@cli.command()\ndef write():\n"
        "  with open('file', 'wb'): os.write(2, b'said')\n"
        "cli(['write'])"
    )
    done = process(
        f'"{sys.executable}" -c "$CODE" 2>&-', shell=True, cwd=tmp_path, env={"CODE": code}
    )
    assert done.returncode == 0
    assert (tmp_path / "file").read_bytes() == b""


@A_SHELL
@pytest.mark.parametrize("words", ["lens - -m mini", "lens --prompt-file - -m mini"])
def test_closed_standard_input(words):
    done = shell(f"{words} <&-")
    told = "Error: cannot read standard input: it is closed\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)


def test_closed_standard_input_as_a_text(tiny_folder, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    from resid.corpus.text import Corpus
    from resid.errors import ResidError

    with pytest.raises(ResidError, match="cannot read standard input: it is closed"):
        list(Corpus(["-"], on_bad=print).documents())


def test_errors_keep_to_the_encoding():
    """click takes ASCII for a mistake, and would write UTF-8 all the same."""
    done = process(
        [*RESID, "lens", "--größe"], stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 2
    assert r"--gr\xf6\xdfe" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_signal_when_all_is_done(name, status):
    code = (
        "import atexit, os, signal\nfrom resid.__main__ import main\n"
        f"atexit.register(lambda: os.kill(os.getpid(), signal.{name}))\n"
        "import sys; sys.argv[1:] = ['params', 'gpt2', '--format', 'csv']\nmain()"
    )
    done = process([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert done.stdout.count("\n") > 12
    assert done.returncode in (0, status)
    assert done.stderr in ("", "interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_termination_leaves_no_half_file(tmp_path):
    code = (
        "import os, pathlib, signal, sys\nfrom resid.__main__ import main\n"
        "pathlib.Path.chmod = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.argv[1:] = ['params', 'gpt2', '-o', 'a.json']\nmain()"
    )
    done = process([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (143, "")
    assert list(tmp_path.iterdir()) == []


def test_interrupt_while_click_is_at_work():
    code = (
        "import sys, click\nfrom resid.__main__ import main\nfrom resid.commands import cli\n"
        "import signal\ncli.invoke = lambda *_: signal.raise_signal(signal.SIGINT)\n"
        "sys.argv[1:] = ['params']\nmain()"
    )
    assert process([sys.executable, "-c", code], stdout=subprocess.PIPE).returncode == 130


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_interrupt_is_ignored_where_the_parent_says_so():
    """As a script's shell does for what it runs in the background, from the imports to the end."""
    code = (
        "import atexit, os, signal\nfrom resid.__main__ import main\n"
        "from resid.commands import interrupts\n"
        "interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "atexit.register(interrupt)\ninterrupt()\n"
        "with interrupts.ending_at_once(): interrupt()\n"
        "import sys; sys.argv[1:] = ['params', 'gpt2', '--format', 'csv']\nmain()"
    )
    script = f"trap '' INT; exec '{sys.executable}' -c \"$CODE\""
    done = process(script, shell=True, stdout=subprocess.PIPE, env={"CODE": code})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") > 12


INTERRUPTED_ENCODER = """
import codecs, os, signal, sys
from encodings import utf_8
from resid.__main__ import main

class Encoder(utf_8.IncrementalEncoder):
    armed = False

    def __init__(self, errors):
        super().__init__(errors)
        if Encoder.armed:
            os.kill(os.getpid(), signal.SIGINT)

found = utf_8.getregentry()
mine = codecs.CodecInfo(
    found.encode, found.decode, found.streamreader, found.streamwriter,
    Encoder, found.incrementaldecoder, name="mine",
)
codecs.register(lambda name: mine if name == "mine" else None)
getattr(sys, sys.argv[1]).reconfigure(encoding="mine")
Encoder.armed = True
sys.argv = ["resid", "params", "gpt2"]
main()
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_ctrl_c_while_a_stream_is_changed_is_told(stream):
    """In Python a stream is without an encoder then, and whatever is said next would fail."""
    command = [sys.executable, "-c", INTERRUPTED_ENCODER, stream]
    done = subprocess.run(command, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"interrupted\n")
