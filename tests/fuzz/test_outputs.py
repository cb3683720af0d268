"""Outputs and inputs that are closed, full, read-only or not there, and files of every kind."""

import os
import threading

import pytest
import torch
from hypothesis import strategies as st

from tests.conftest import tiny_hf, write_checkpoint
from tests.fuzz.budget import fuzz
from tests.fuzz.in_process import (
    check,
    check_file,
    contents,
    run,
)

pytestmark = [
    pytest.mark.usefixtures("loaded_once"),
    pytest.mark.skipif(os.name == "nt", reason="POSIX files and descriptors"),
]

# --- files ----------------------------------------------------------------------------------------

WRITE = {
    "lens": ["lens", "the is"],
    "norms": ["norms", "the is"],
    "memory": ["memory", "the is", "--neurons", "1"],
    "attribute": ["attribute", "the is", "--target", "id:7"],
    "find": ["find", "id:7"],
    "neuron": ["neuron", "L1N3"],
    "params": ["params", "./tiny"],
    "corpus lens": ["corpus", "lens", "text.txt"],
    "corpus merge": ["corpus", "merge", "run"],
    "lab toy": ["lab", "toy", "--seeds", "2"],
    "record": ["record", "the is"],
    "report": ["report", "the is", "--neurons", "1"],
}
ONLY = {"record": (".safetensors",), "report": (".html",)}
SUFFIXES = (".json", ".csv", ".JSON", ".html", ".svg", ".png", ".pdf", ".safetensors", ".txt", "")
WITHOUT_A_PAGE = ("corpus lens", "corpus merge")


def make_target(kind, folder, suffix):
    """Something to write to, and the file that it stands for where there is to be one."""
    file = folder / f"target{suffix}"
    elsewhere = folder / f"elsewhere{suffix}"
    if kind in ("old", "read only", "link", "hard link"):
        elsewhere.write_text("old")
    if kind == "old":
        elsewhere.rename(file)
    elif kind == "read only":
        elsewhere.rename(file)
        file.chmod(0o400)
    elif kind in ("link", "dangling link"):
        file.symlink_to(elsewhere.name)
        return file, elsewhere
    elif kind == "hard link":
        os.link(elsewhere, file)
    elif kind == "link into nowhere":
        file.symlink_to("nowhere/x")
    elif kind == "loop":
        file.symlink_to(file.name)
    elif kind == "folder":
        file.mkdir()
    elif kind == "full":
        file.symlink_to("/dev/full")
    elif kind == "nothing":
        file.symlink_to("/dev/null")
    elif kind == "no folder":
        return folder / "none" / file.name, None
    elif kind == "file as a folder":
        return folder / "text.txt" / file.name, None
    elif kind == "not writable":
        return f"/proc/target{suffix}", None
    elif kind == "long name":
        return folder / f"{'n' * 256}{suffix}", None
    elif kind == "longest name":
        return (longest := folder / f"{'日' * 80}{suffix}"), longest
    elif kind == "no UTF-8":
        return (odd := folder / os.fsdecode(b"caf\xe9" + suffix.encode())), odd
    elif kind == "lines":
        return (odd := folder / f"a\nb\nc\nd{suffix}"), odd
    return file, file


MADE = ("new", "old", "link", "dangling link", "hard link", "longest name", "no UTF-8", "lines",
        "nothing")  # fmt: skip
REFUSED = ("link into nowhere", "loop", "folder", "full", "no folder", "file as a folder",
           "not writable", "long name")  # fmt: skip


@fuzz(
    few=30,
    many=900,
    name=st.sampled_from(sorted(WRITE)),
    kind=st.sampled_from([*MADE, *REFUSED, "read only"]),
    suffix=st.sampled_from([*SUFFIXES, ".json", ".csv", ".json", ".csv"]),
    twice=st.booleans(),
)
def test_any_target(furnished, name, kind, suffix, twice):
    with furnished() as folder:
        path, made = make_target(kind, folder, suffix)
        before = contents(folder)
        line = [*WRITE[name], "-o", str(path)]
        if twice and name not in ONLY:
            line += ["-o", str(path)]
        ended = run(line, folder=folder)
        check(ended)
        assert ended.status in (0, 1, 2)
        if kind == "folder" and "corpus" in name and not ended.status:
            return  # It is there for the run itself.
        if suffix not in ONLY.get(name, SUFFIXES[:7]) and "corpus" not in name:
            assert ended.status == 2
        elif kind in REFUSED and suffix:
            assert ended.status == 1 or (ended.status == 2 and name in WITHOUT_A_PAGE)
        after = contents(folder)
        if ended.status:
            assert after == before
            return
        if suffix:
            assert kind not in REFUSED
            added = {key for key in after if key not in before}
            assert added <= {os.path.relpath(made or path, folder)}
            if kind != "nothing":
                check_file(made)
                assert path.is_symlink() == ("link" in kind and kind != "hard link")


@pytest.mark.parametrize("reads", [0, 1, 1 << 20])
def test_a_pipe_as_a_file(furnished, reads):
    with furnished() as folder:
        os.mkfifo(folder / "pipe.json")
        read = []

        def reader():
            with (folder / "pipe.json").open("rb") as opened:
                read.append(opened.read(reads))

        thread = threading.Thread(target=reader, daemon=True)
        thread.start()
        ended = run(["lens", "a", "-o", "pipe.json"], folder=folder)
        thread.join()
        check(ended)
        assert ended.status in ((0,) if reads > 1 else (0, 1))
        assert len(read[0]) <= reads


# --- descriptors ----------------------------------------------------------------------------------

SAY = {
    "table": ["lens", "the is"],
    "json": ["lens", "the is", "--format", "json"],
    "csv": ["norms", "the is", "--format", "csv"],
    "file": ["lens", "the is", "-o", "new.json"],
    "quiet file": ["record", "the is", "-q", "-o", "new.safetensors"],
    "page": ["report", "the is", "--neurons", "1", "-o", "new.html"],
    "notice": ["lens", "the is", "-m", "tiny"],
    "two": ["params", "./tiny", "gpt2", "--format", "json"],
    "from input": ["lens", "-"],
    "file from input": ["norms", "--prompt-file", "-", "-o", "new.csv"],
    "text from input": ["corpus", "lens", "-"],
    "text": ["corpus", "lens", "lines.jsonl", "-o", "new"],
    "merge": ["corpus", "merge", "run"],
    "depth": ["lab", "depth", "--layers", "2", "--seeds", "1", "--init", "0.02"],
    "race": ["lab", "race", "--steps", "1", "--layers", "1", "--seeds", "1", "--variants", "base"],
    "help": ["--help"],
    "help of one": ["lens", "--help"],
    "help of a group": ["lab", "-h"],
    "no words": [],
    "version": ["-V"],
    "misuse": ["lens", "--nope"],
    "misuse of the group": ["--nope"],
    "no command": ["nope"],
    "problem": ["find", "two tokens"],
    "not finite": ["lens", "the is", "-m", "./broken"],
    "page not finite": ["report", "the is", "--neurons", "1", "-m", "./broken", "-o", "new.html"],
}
BEFORE_A_COMMAND = ("help", "no words", "version", "misuse of the group")
OUTPUTS = ("capture", "null", "closed", "full", "nobody", "wrong way")
INPUTS = ("null", "closed", "wrong way")


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A checkpoint with a number that is none."""
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.bias[2] = torch.nan
    return write_checkpoint(tmp_path_factory.mktemp("broken"), hf)


@pytest.fixture(scope="module")
def say(server, furnished, broken):
    """What a command left behind, given its streams, and the file that it made."""

    def run_it(name, *streams):
        with furnished() as folder:
            (folder / "broken").symlink_to(broken)
            before = set(contents(folder))
            request = {"streams": dict(zip("012", streams, strict=True))}
            left = server.run(SAY[name], folder, environment={"RESID_MODEL": "./tiny"}, **request)
            after = contents(folder)
            return left, {key: after[key] for key in set(after) - before}

    known = {}

    def undisturbed(name):
        if name not in known:
            known[name] = run_it(name, "null", "capture", "capture")
        return known[name]

    return run_it, undisturbed


@fuzz(
    few=30,
    many=600,
    name=st.sampled_from(sorted(SAY)),
    given=st.sampled_from(INPUTS),
    out=st.sampled_from(OUTPUTS),
    told=st.sampled_from(OUTPUTS),
)
def test_any_streams(say, name, given, out, told):
    run_it, undisturbed = say
    left, files = run_it(name, given, out, told)
    whole, whole_files = undisturbed(name)
    assert not left.hung
    assert "Traceback" not in left.told and "Exception ignored" not in left.told, left
    errors = [line for line in left.told.splitlines() if line.startswith("Error")]
    expected = whole.status
    lost = out in ("full", "wrong way") and whole.out != b""
    unread = "input" in name and given != "null"
    if (out == "closed" and name not in BEFORE_A_COMMAND) or lost or unread:
        expected = 1
    # A reader that goes away is no error, and nobody is left to be told of others.
    also = {0} if out == "nobody" and whole.status == 3 else set()
    assert left.status in {expected} | also, (left, whole)
    if left.status not in (1, 2) and not also:
        assert files == whole_files
        # What cannot be told is left out; the results are there all the same.
        assert out != "capture" or left.out == whole.out
    if told == "capture" and left.status in (1, 2) and name != "no words":
        assert len(errors) == 1
        assert len(left.told.splitlines()) <= 3
    if unread or out == "closed":
        assert files == {} or whole.status == expected
