"""Odd surroundings: homes, caches, locales, limits and networks as no one would wish for them."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner

from resid.commands import cli
from tests.conftest import IDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX homes, limits and locales")

# One process types several command lines: what they import, which takes longest, is paid once.
TYPE = """
import json, os, sys
from resid.__main__ import main
for line in json.loads(os.environ["TYPED"]):
    sys.argv = ["resid", *line]
    try:
        main()
        status = 0
    except SystemExit as exit:
        status = exit.code or 0
    for stream in (sys.stdout, sys.stderr):
        stream.write(f"\\x1e{status}\\x1e")
        stream.flush()
"""
COUNT = ["params", "gpt2-xl"]  # Quick: it imports neither torch nor transformers.


@dataclass(frozen=True)
class Ran:
    """What came of one command line."""

    status: int
    stdout: str
    stderr: str

    def is_refused(self, *told):
        """Whether it ended with status 1 and at most three lines that hold what is told."""
        lines = self.stderr.splitlines()
        assert (self.status, self.stdout) == (1, "")
        assert lines[0].startswith("Error: ")
        assert len(lines) <= 3
        assert all(text in self.stderr for text in told), self.stderr
        return True


def typed(*lines, before=(), flags=(), setup="", without=(), cwd=None, **environment):
    """What comes of each line, all typed one after the other in one process of odd surroundings.

    Args:
        lines: the words after `resid`.
        before: what starts the process.
        flags: of Python.
        setup: code that runs first.
        without: variables of the environment that are taken away.
        cwd: the working directory.
        environment: variables that are changed.
    """
    usual = {name: value for name, value in os.environ.items() if name not in without}
    done = subprocess.run(
        [*before, sys.executable, *flags, "-c", setup + TYPE],
        env=usual | {"TYPED": json.dumps(lines)} | environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    stdout, stderr = (text.decode("utf-8").split("\x1e") for text in (done.stdout, done.stderr))
    assert done.returncode == 0, stderr[-1]
    assert len(stdout) == len(stderr) == 2 * len(lines) + 1
    return [Ran(int(stdout[i + 1]), stdout[i], stderr[i]) for i in range(0, 2 * len(lines), 2)]


def limit(name, most):
    """Code that sets a limit of the process."""
    return f"import resource\nresource.setrlimit(resource.RLIMIT_{name}, ({most}, {most}))\n"


@pytest.fixture(scope="module")
def lens(tiny_folder):
    """A command line that reads a model, and what holds its output against the usual one."""
    line = ["lens", "-m", str(tiny_folder), "--ids", ",".join(map(str, IDS)), "--format", "json"]
    usual = json.loads(CliRunner().invoke(cli, line).stdout)["data"]

    def is_usual(ran):
        assert (ran.status, ran.stderr) == (0, "")
        found = json.loads(ran.stdout)["data"]
        assert found["top_ids"] == usual["top_ids"]
        # Sums may be cut in other places where there are other numbers of threads.
        np.testing.assert_allclose(found["top_probs"], usual["top_probs"], atol=1e-6)
        return True

    return line, is_usual


# --- homes and caches -----------------------------------------------------------------------------

HOMES = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HF_HOME", "TORCH_HOME", "MPLCONFIGDIR")


def may_not_write():
    """What starts a process that may write only where its user may, also where that is root."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root writes everywhere, and there is no setpriv to leave that right behind")
    return ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]


@pytest.mark.parametrize("kind", ["read-only", "file"])
def test_a_home_and_caches_that_cannot_be_written(lens, tmp_path, kind):
    home = tmp_path / "home"
    home.mkdir(mode=0o555) if kind == "read-only" else home.touch()
    odd = {name: str(home) for name in HOMES} | {"TMPDIR": str(tmp_path / "none")}
    line, is_usual = lens
    figure = tmp_path / "a.png"
    counted, read = typed([*COUNT, "-o", str(figure)], line, before=may_not_write(), **odd)
    assert (counted.status, counted.stderr) == (0, f"wrote {figure}\n")
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert is_usual(read)
    assert home.is_file() or list(home.iterdir()) == []


def test_no_folder_at_all_for_matplotlib(tmp_path):
    """As in a container whose whole file system is read only."""
    (tmp_path / "home").touch()
    setup = (
        "import tempfile\n"
        "def mkdtemp(*_, **__): raise OSError('none')\n"
        "tempfile.mkdtemp = mkdtemp\n"
    )
    odd = {"MPLCONFIGDIR": str(tmp_path / "home"), "setup": setup}
    drawn, told = typed([*COUNT, "-o", str(tmp_path / "a.png")], COUNT, **odd)
    assert drawn.is_refused("matplotlib cannot start: ", "set MPLCONFIGDIR to a folder that can be")
    assert not (tmp_path / "a.png").exists()
    assert (told.status, told.stderr) == (0, "")


def test_a_working_directory_that_is_gone(tmp_path, lens):
    (tmp_path / "gone").mkdir()
    setup = "import os\nos.rmdir(os.getcwd())\n"
    read, counted, helped = typed(lens[0], COUNT, ["--help"], cwd=tmp_path / "gone", setup=setup)
    for ran in (read, counted):
        assert ran.is_refused("the working directory is gone; change to one that exists")
    assert (helped.status, helped.stderr) == (0, "")


# --- Python ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [["-I", "-O"], ["-s", "-W", "error"]], ids=" ".join)
def test_flags_of_python_and_few_open_files_change_nothing(lens, flags):
    line, is_usual = lens
    odd = {"without": ["HOME"], "setup": limit("NOFILE", 24), "PYTHONSAFEPATH": "1"}
    (ran,) = typed(line, flags=flags, **odd)
    assert is_usual(ran)


def test_without_docstrings_what_can_work_works(lens):
    helped, counted, read = typed(["lens", "--help"], COUNT, lens[0], flags=["-OO"])
    assert (helped.status, helped.stderr) == (0, "")
    assert "--positions last|all|LIST" in helped.stdout
    assert (counted.status, counted.stderr) == (0, "")
    assert read.is_refused("python -OO takes away docstrings", "use -O, or PYTHONOPTIMIZE=1")


@pytest.mark.parametrize(
    ("locale", "encoding"),
    [({"LC_ALL": "C"}, "utf-8"), ({"LC_ALL": "xx_YY.UTF-8"}, "utf-8"),
     ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "ascii")],
)  # fmt: skip
def test_locales_read_a_prompt_right_or_refuse_it(locale, encoding):
    """Arguments are bytes until a process starts, so the prompt goes to one of its own."""
    code = (
        "import click, sys\nfrom resid.commands.options import _collect_prompts\n"
        "try: print(ascii(_collect_prompts(sys.argv[1:], None, None)))\n"
        "except click.UsageError as error: print(error.message)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "café →".encode()],
        env=os.environ | locale,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    refused = [
        "the prompt cannot be read in the locale's encoding, ascii: "
        r"it has \xc3 at character 3",
        "set PYTHONUTF8=1, or a locale such as LC_ALL=C.UTF-8",
    ]
    right = [ascii(["café →"])]
    assert done.stdout.splitlines() == (right if encoding == "utf-8" else refused)


# --- limits ---------------------------------------------------------------------------------------


def test_memory_too_small_for_torch(tiny_folder):
    (ran,) = typed(["lens", "-m", str(tiny_folder), "a"], setup=limit("AS", 300 << 20))
    assert ran.is_refused("a library cannot be loaded: ", "where memory is limited allow more")


@pytest.fixture
def failing(tiny_folder, monkeypatch):
    """What comes of a command in the middle of which something is raised."""

    def run(error):
        def fail(*_, **__):
            raise error

        monkeypatch.setattr("resid.recording.record", fail)
        return CliRunner().invoke(cli, ["lens", "-m", str(tiny_folder), "a"])

    return run


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 3.00 GiB for an array"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA out of memory. Tried to allocate 3.00 GiB\nGPU 0 has"),
    ],
)
def test_memory_that_runs_out_is_told(failing, error):
    result = failing(error)
    ran = Ran(result.exit_code, result.stdout, result.stderr)
    assert ran.is_refused("there is not enough memory (", "a shorter prompt")


@pytest.mark.parametrize(
    "error", [RuntimeError("a fault of ours"), ImportError("of ours", name="resid.model")]
)
def test_faults_of_ours_stay_visible(failing, error):
    assert failing(error).exception is error


def test_no_thread_may_be_started_to_ask_the_hub():
    setup = (
        "import threading\n"
        'def start(*_): raise RuntimeError("can\'t start new thread")\n'
        "threading.Thread.start = start\n"
    )
    (ran,) = typed(["lens", "-m", "someone/tiny", "a"], setup=setup, HF_HUB_OFFLINE="0")
    assert ran.is_refused("'someone/tiny' is not in the local cache, and no more threads may be")


# --- networks -------------------------------------------------------------------------------------


@contextlib.contextmanager
def proxy(kind):
    """The address of a proxy that takes a connection and says nothing, or takes none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        if kind == "silent":
            yield address
    if kind == "refusing":
        yield address


ASKED = (["lens", "-m", "someone/tiny", "a"], ["params", "someone/tiny"])
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.mark.parametrize(
    ("kind", "told"), [("silent", "the hub does not answer"), ("refusing", "cannot be reached")]
)
def test_a_proxy_that_drops_packets_or_refuses(tmp_path, kind, told):
    without = [name for each in PROXIES for name in (each, each.lower())] + ["HF_ENDPOINT"]
    with proxy(kind) as address:
        odd = {"HTTPS_PROXY": address, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path)}
        for ran in typed(*ASKED, without=without, **odd):
            assert ran.is_refused("'someone/tiny' is not in the local cache", told)


@pytest.mark.parametrize("address", ["nowhere", "http://a b", "http://127.0.0.1:port", "ftp://x"])
def test_an_address_of_the_hub_that_is_none(address, monkeypatch):
    from huggingface_hub import constants

    from resid import hub

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", address)
    assert hub.unreachable() == "the hub cannot be reached"
