"""A command run in this process as the shell would run it, and what must hold however it ends."""

import csv
import io
import json
import os
import re
import signal
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.cells import cell_len

# What colours text; anything else that begins with an escape is somebody's prompt.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NOTICE = re.compile(r"(model: |left out|wrote |\d+ lines could not)")
SECONDS = 10
"""Of computing; what takes longer hangs."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    """Standard output, decoded."""
    told: str
    """Standard error, decoded."""


class _Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


@contextmanager
def _no_longer_than(seconds):
    """Processor time, so that a busy machine makes nothing fail."""

    def hang(*_):
        raise AssertionError(f"still computing after {seconds} s")

    before = signal.signal(signal.SIGPROF, hang)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(words, *, folder, stdin=b"", encoding="utf-8", terminal=False, environment=None):
    """The command's status and what it printed; whatever else it raises is raised.

    Args:
        words: behind `resid`.
        folder: to run in.
        stdin: bytes on standard input; None: it is closed.
        encoding: of the three streams.
        terminal: whether standard output is a terminal, of a width that COLUMNS says.
        environment: more of it.
    """
    from resid.__main__ import main

    kind = _Terminal if terminal else io.TextIOWrapper
    out = kind(io.BytesIO(), encoding)
    # Never a terminal: what a progress bar writes is not looked at here.
    told = io.TextIOWrapper(io.BytesIO(), encoding, errors="backslashreplace")
    given = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin), encoding)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, value in {"RESID_MODEL": "./tiny", **(environment or {})}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["resid", *words])
        patch.setattr(sys, "stdin", given)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", told)
        patch.setattr("click.launch", lambda *_, **__: 0)
        # Signals are the test runner's here.
        for name in ("obey_termination", "end_at_once_from_here"):
            patch.setattr(f"resid.commands.interrupts.{name}", lambda: None)
        try:
            with _no_longer_than(SECONDS):
                main()
            status = 0
        except SystemExit as ended:
            status = ended.code or 0
        out.flush()
        told.flush()
    return Ended(status, *(each.buffer.getvalue().decode(encoding) for each in (out, told)))


def check(ended, *, terminal=False):
    """What holds of every command line whatsoever."""
    assert ended.status in (0, 1, 2, 3), ended
    assert "Traceback" not in ended.told
    for stream in (ended.out, ended.told):
        seen = _COLOUR.sub("", stream) if terminal and stream is ended.out else stream
        bare = [sign for sign in seen if not sign.isprintable() and sign not in "\n\ufeff"]
        assert not bare, (bare, ended)
    lines = ended.told.removeprefix("\ufeff").splitlines()
    if ended.status == 2 and lines[0].startswith("Usage: "):
        assert lines[0].endswith("COMMAND [ARGS]...")  # Help, where words are missing.
    elif ended.status in (1, 2):
        errors = [line for line in lines if not _NOTICE.match(line)]
        assert 1 <= len(errors) <= 3, ended
        assert errors[0].startswith("Error: "), ended
        assert ended.out.strip("\ufeff") == "", ended
    else:
        assert not any(line.startswith("Error") for line in lines), ended
        assert (ended.status == 3) == any(line.startswith("check failed") for line in lines)


def check_json(text, status):
    """Strict JSON, an object a line, whose checks agree with the status."""
    for line in text.strip("\n\ufeff").split("\n"):
        document = json.loads(line, parse_constant=lambda name: pytest.fail(name))
        if status == 0:
            assert all(made["passed"] for made in document["checks"])
    assert document["resid"] == 1


def check_file(path, status=0):
    """A file is whole, and what its suffix says."""
    raw, suffix = path.read_bytes(), path.suffix.lower()
    if suffix == ".json":
        check_json(raw.decode("utf-8"), status)
    elif suffix == ".csv":
        rows = list(csv.reader(io.StringIO(raw.decode("utf-8"))))
        assert len({len(row) for row in rows}) == 1 and len(rows) > 1
    elif suffix == ".html":
        assert raw.decode("utf-8").rstrip().endswith("</html>")
    elif suffix == ".safetensors":
        from safetensors.torch import load  # NumPy has no bfloat16.

        assert load(raw)
    else:
        heads = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
        tails = {".png": b"IEND\xaeB`\x82", ".svg": b"</svg>", ".pdf": b"%%EOF"}
        assert raw.startswith(heads[suffix]) and raw.rstrip(b"\n").endswith(tails[suffix])


def contents(folder):
    """Every file beneath, with its bytes; of links, where they lead."""
    found = {}
    for top, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(top, name)
            key = os.path.relpath(path, folder)
            if path.is_symlink():
                found[key] = os.readlink(path)  # noqa: PTH115
            else:
                found[key] = path.read_bytes() if path.is_file() else None
    return found


def widest(text):
    """Cells of the widest line."""
    return max(map(cell_len, _COLOUR.sub("", text).split("\n")), default=0)
