"""Shards, processes and interrupted runs: the same to the last bit as one undisturbed run."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from functools import partial

import pytest

from resid.corpus import state, text, windows
from resid.corpus.distributed import Group
from resid.corpus.merging import merge
from resid.corpus.running import run
from resid.corpus.world import World
from resid.errors import ResidError
from tests.corpus.conftest import READINGS

KINDS = ("lens", "norms", "memory")


@pytest.fixture
def whole(read, plan, tmp_path):
    def make(kind, **changes):
        read(kind, plan(folder=tmp_path / "whole", **changes))
        return (tmp_path / "whole" / state.FILE).read_bytes()

    return make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("changes", [{}, {"max_tokens": 511}])
def test_shards_merge_to_the_same_bytes(read, plan, tmp_path, whole, kind, changes):
    expected = whole(kind, **changes)
    names = [str(tmp_path / f"part{k}") for k in (1, 2, 3)]
    for k in (1, 2, 3):
        result = read(kind, plan(folder=tmp_path / f"part{k}", shard=(k, 3), **changes))
        assert result.source.shards == ((k, 3),)
        assert result.tokens > 0
    merged = merge({name: state.open_run(name) for name in (names[2], names[0], names[1])})
    assert merged.to_bytes() == expected


def test_parts_that_were_merged_merge_on(read, plan, tmp_path, whole):
    expected = whole("lens")
    runs = {}
    for k in (1, 2, 3):
        read("lens", plan(folder=tmp_path / f"p{k}", shard=(k, 3)))
        runs[str(k)] = state.open_run(tmp_path / f"p{k}")
    some = merge({"3": runs["3"], "1": runs["1"]})
    assert some.shards == ((1, 3), (3, 3))
    assert merge({"2": runs["2"], "some": some}).to_bytes() == expected


class Killed(Exception):  # noqa: N818
    pass


def die(step):
    raise Killed


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_ends_after_any_step_goes_on_to_the_same_bytes(
    read, plan, tmp_path, whole, kind, monkeypatch
):
    expected = whole(kind)
    folder = tmp_path / "broken"
    reads = []
    whole_batch = READINGS[kind].read
    monkeypatch.setattr(
        READINGS[kind], "read", lambda *a, **k: (reads.append(1), whole_batch(*a, **k))
    )

    # It dies after every single batch, and is started again until it is through.
    for attempts in range(100):  # noqa: B007
        try:
            result = read(kind, plan(folder=folder, resume=True, save_every=0), on_step=die)
            break
        except Killed:
            continue
    assert (folder / state.FILE).read_bytes() == expected
    assert attempts > len(reads) > 10  # No batch is read twice; ends of packets are steps too.
    assert read(kind, plan(folder=folder, resume=True)).to_json() == result.to_json()
    assert [file.name for file in folder.iterdir()] == [state.FILE]


class Asked(Exception):  # noqa: N818
    pass


@pytest.mark.parametrize("changes", [{}, {"max_tokens": 511}])
@pytest.mark.parametrize("at", [0, 7, 14])
def test_a_document_that_cannot_be_cut_is_told_once_whoever_reads_it_and_when(
    read, plan, tmp_path, whole, texts, monkeypatch, changes, at
):
    monkeypatch.setattr(windows, "PIECE", 64)
    monkeypatch.setattr(windows, "_LONGEST", 200)
    monkeypatch.setattr(text, "_PIECE", 50)  # It is longer than a packet, what is held of it not.
    files = [*texts[:at], "x" * 1000, *texts[at:]]
    for i, content in enumerate(files):
        (tmp_path / f"{i:02}.txt").write_text(content, "utf-8")
    changes |= {"files": tuple(str(tmp_path / f"{i:02}.txt") for i in range(len(files)))}
    expected = whole("lens", **changes)
    held = state.open_run(tmp_path / "whole")
    if at < 14 or not changes.get("max_tokens"):
        assert [line[:2] for line in held.tally.first_bad] == [(at, 1)]
        assert held.tally.bad_lines == 1
    assert held.tally.empty_documents == 0
    for k in (1, 2, 3):
        read("lens", plan(folder=tmp_path / f"part{k}", shard=(k, 3), **changes))
    merged = merge({str(k): state.open_run(tmp_path / f"part{k}") for k in (1, 2, 3)})
    assert merged.to_bytes() == expected
    for attempts in range(100):  # noqa: B007
        where = plan(folder=tmp_path / "broken", resume=True, save_every=0, **changes)
        try:
            read("lens", where, on_step=die)
            break
        except Killed:
            pass
    assert attempts > 10
    assert (tmp_path / "broken" / state.FILE).read_bytes() == expected


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def asking(request):
    """Asks this process to end, which then raises Asked."""

    def raise_asked(number, frame):
        raise Asked

    before = signal.signal(request.param, raise_asked)
    yield lambda *_: os.kill(os.getpid(), request.param)
    signal.signal(request.param, before)


def test_a_run_that_is_asked_to_end_saves_what_it_has_read(
    tiny, plan, tmp_path, whole, asking, monkeypatch
):
    expected = whole("norms")
    reads = []
    whole_batch = READINGS["norms"].read
    monkeypatch.setattr(
        READINGS["norms"], "read", lambda *a, **k: (reads.append(1), whole_batch(*a, **k))
    )
    saving = plan(folder=tmp_path / "asked", resume=True, save_every=1e9)
    for attempts in range(100):  # noqa: B007
        told = []
        try:
            run(tiny, READINGS["norms"](tiny), saving, on_step=asking, on_stop=told.append)
            break
        except Asked:
            assert told == [False, True]
    assert (tmp_path / "asked" / state.FILE).read_bytes() == expected
    assert attempts > 5
    reads_when_asked, reads[:] = len(reads), []
    run(tiny, READINGS["norms"](tiny), plan())
    assert reads_when_asked == len(reads)  # No batch was read twice.


def test_a_run_that_is_asked_twice_ends_at_once(tiny, plan, tmp_path, asking):
    told = []

    def stop(saved):
        told.append(saved)
        asking()

    with pytest.raises(Asked):
        saving = plan(folder=tmp_path / "asked", save_every=1e9)
        run(tiny, READINGS["norms"](tiny), saving, on_step=asking, on_stop=stop)
    assert told == [False]
    assert not (tmp_path / "asked").exists()


def test_a_run_in_another_thread_decides_on_no_signals(tiny, plan, tmp_path, whole):
    expected = whole("norms")
    arguments = (tiny, READINGS["norms"](tiny), plan(folder=tmp_path / "thread"))
    thread = threading.Thread(target=run, args=arguments)
    thread.start()
    thread.join()
    assert (tmp_path / "thread" / state.FILE).read_bytes() == expected


def _start(read, plan, folder, *, rank, size=2, **rest):
    """One of several processes up to its end, or to the moment when the others are needed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Group, "connected", lambda self: nullcontext())
        patch.setattr(Group, "agree", lambda self, content: None)
        saving = plan(folder=folder, resume=True, save_every=0)
        return read("lens", saving, world=World(rank, size, rank), **rest)


def test_processes_that_saved_before_others_can_all_go_on(read, plan, tmp_path):
    """The second of two is killed when the first has not saved anything yet."""
    started = partial(_start, read, plan, tmp_path / "run")
    with pytest.raises(Killed):
        started(rank=1, on_step=die)
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["part-2-of-2.safetensors"]
    with pytest.raises(Killed):
        started(rank=0, on_step=die)
    for size in (1, 3):
        with pytest.raises(ResidError, match=r"another number of processes: it has part-1-of-2"):
            started(rank=0, size=size)


def test_another_run_cannot_save_in_the_same_folder_meanwhile(read, plan, tmp_path):
    folder = tmp_path / "run"

    def start_another(step):
        with pytest.raises(ResidError, match=r"another run is saving in '.*run'"):
            read("lens", plan(folder=folder, resume=True))
        raise Killed

    with pytest.raises(Killed):
        read("lens", plan(folder=folder), on_step=start_another)
    assert not folder.exists()  # Nothing was saved in it.
    read("lens", plan(folder=folder))
    read("lens", plan(folder=folder, resume=True))


def test_a_finished_run_with_bad_lines_is_an_error_where_there_may_be_none(read, plan, tmp_path):
    read("lens", plan(folder=tmp_path / "run"))
    with pytest.raises(ResidError, match=r"text.jsonl, line 6: not JSON"):
        read("lens", plan(folder=tmp_path / "run", resume=True, strict=True))


def test_a_run_killed_while_it_writes_leaves_the_last_state(read, plan, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    read("lens", plan(folder=folder))
    before = (folder / state.FILE).read_bytes()

    def killed(self):
        raise Killed

    saved = state.open_run(folder)
    monkeypatch.setattr(state.Run, "to_bytes", killed)
    with pytest.raises(Killed):
        state.save(saved, folder / state.FILE)
    assert (folder / state.FILE).read_bytes() == before
    (folder / f".writing.{state.FILE}abc").write_bytes(b"half")
    read("lens", plan(folder=folder, resume=True))
    assert [file.name for file in folder.iterdir()] == [state.FILE]


def test_kill_9_in_the_middle_changes_nothing(tiny_folder, corpus_file, tmp_path, whole):
    """A real process and a real signal, at a moment that nobody chose."""
    expected = whole("norms")
    folder = tmp_path / "run"
    line = ["corpus", "norms", str(corpus_file), "-m", str(tiny_folder), "--batch-tokens", "24"]
    line += ["--resume", str(folder), "--save-every", "0", "-q", "--format", "json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "resid", *line]
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (folder / state.FILE).exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    from click.testing import CliRunner

    from resid.commands import cli

    ran = CliRunner().invoke(cli, line)
    assert ran.exit_code == 0, ran.output
    found = state.read(folder / state.FILE)
    found.about["model"] = state.from_bytes(expected, "").about["model"]
    assert found.to_bytes() == expected


def test_two_processes_find_what_one_does(tiny_folder, corpus_file, tmp_path, whole):
    expected = {kind: whole(kind) for kind in ("memory",)}["memory"]
    folder = tmp_path / "two"
    line = ["corpus", "memory", str(corpus_file), "-m", str(tiny_folder), "--batch-tokens", "24"]
    line += ["--resume", str(folder), "-q", "--format", "csv"]
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    children = []
    for rank in ("0", "1"):
        mine = {"RANK": rank, "LOCAL_RANK": rank, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        command = [sys.executable, "-m", "resid", *line]
        environment = os.environ | shared | mine
        children.append(
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    outputs = [child.communicate(timeout=120) for child in children]
    assert [child.returncode for child in children] == [0, 0], outputs
    assert outputs[0][0].startswith(b"layer,neuron")
    assert outputs[1][0] == b""
    found = state.read(folder / state.FILE)
    found.about["model"] = state.from_bytes(expected, "").about["model"]
    assert found.to_bytes() == expected
    assert [file.name for file in folder.iterdir()] == [state.FILE]


def free_port():
    import socket

    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"batch_tokens": 64}, "batch_tokens: 24, not 64"),
        ({"context": 8}, "context: 32, not 8"),
        ({"bos": True}, "bos: False, not True"),
        ({"max_tokens": 9}, "max_tokens: None, not 9"),
        ({"shard": (1, 2)}, "another shard"),
    ],
)
def test_another_setting_is_refused_by_name(read, plan, tmp_path, changes, told):
    read("lens", plan(folder=tmp_path / "run"))
    with pytest.raises(ResidError, match=told):
        read("lens", plan(folder=tmp_path / "run", resume=True, **changes))


def test_another_analysis_model_text_or_tokenizer_is_refused_by_name(
    read, plan, tmp_path, fresh, corpus_file, monkeypatch
):
    import torch

    text = tmp_path / "text.jsonl"
    text.write_bytes(corpus_file.read_bytes())
    again = {"files": (str(text),), "folder": tmp_path / "run", "resume": True}
    read("lens", plan(**again))
    with pytest.raises(ResidError, match="another analysis: lens, not norms"):
        read("norms", plan(**again))
    with pytest.raises(ResidError, match="points"):
        read("lens", plan(**again), points="all")
    with torch.no_grad():
        fresh.b_out(1)[3] += 1e-7
    with pytest.raises(ResidError, match="another model: its weights differ"):
        read("lens", plan(**again), model=fresh)
    text.write_bytes(corpus_file.read_bytes().replace(b"the", b"thf", 1))
    with pytest.raises(ResidError, match=r"another text: '.*text.jsonl', "):
        read("lens", plan(**again))
    text.write_bytes(corpus_file.read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(type(fresh), "bos_id", lambda self: 3)
        with pytest.raises(ResidError, match=r"another configuration: .*'bos_token'"):
            read("lens", plan(**again))
    encode = type(fresh.vocabulary).encode
    monkeypatch.setattr(type(fresh.vocabulary), "encode", lambda *a, **k: encode(*a, **k)[1:])
    with pytest.raises(ResidError, match="another tokenizer"):
        read("lens", plan(**again))


def test_a_folder_with_a_run_is_not_written_over(read, plan, tmp_path):
    read("lens", plan(folder=tmp_path / "run"))
    with pytest.raises(ResidError, match="holds a run already"):
        read("lens", plan(folder=tmp_path / "run"))


def test_what_does_not_belong_together_is_not_merged(read, plan, tmp_path):
    runs = {}
    for name, changes in {
        "1/2": {"shard": (1, 2)},
        "2/2": {"shard": (2, 2)},
        "1/3": {"shard": (1, 3)},
        "all": {},
        "other": {"shard": (2, 2), "context": 9},
    }.items():
        folder = tmp_path / name.replace("/", "of")
        read("lens", plan(folder=folder, **changes))
        runs[name] = state.open_run(folder)
    for names, told in (
        (("1/2", "1/2 "), "both hold shard 1/2"),
        (("1/2", "1/3"), "'1/2' is of 2 shards, '1/3' of 3 shards"),
        (("1/2", "all"), "'1/2' is of 2 shards, 'all' of all of the text"),
        (("1/2", "other"), "another context"),
        (("all", "all "), "both hold all of the text"),
    ):
        with pytest.raises(ResidError, match=told):
            merge({name: runs[name.strip()] for name in names})


def test_an_unfinished_or_damaged_run_is_refused(read, plan, tmp_path):
    folder = tmp_path / "run"

    def die(step):
        raise Killed

    with pytest.raises(Killed):
        read("lens", plan(folder=folder, save_every=0), on_step=die)
    with pytest.raises(ResidError, match="not finished"):
        state.open_run(folder)
    content = (folder / state.FILE).read_bytes()
    for damaged in (
        content[:100],
        content[:-4],
        b"",
        b"x" * 50,
        content.replace(b"tally", b"telly"),
    ):
        (folder / state.FILE).write_bytes(damaged)
        with pytest.raises(ResidError, match="not a corpus run"):
            state.open_run(folder)
    with pytest.raises(ResidError, match="there is no corpus run"):
        state.open_run(tmp_path)


def test_a_run_of_several_processes_goes_on_with_as_many(read, plan, tmp_path):
    folder = tmp_path / "run"
    read("lens", plan(folder=folder))
    (folder / state.FILE).rename(folder / "part-1-of-2.safetensors")
    with pytest.raises(ResidError, match=r"another number of processes.*part-1-of-2"):
        read("lens", plan(folder=folder, resume=True))


def test_bad_lines_are_errors_where_that_is_asked(read, plan, corpus_file):
    with pytest.raises(ResidError, match=r"text\.jsonl, line 6: not JSON"):
        read("lens", plan(strict=True))


def test_a_limit_is_kept_to_the_token(read, plan):
    assert read("lens", plan(max_tokens=100)).tokens == 100
    assert read("lens", plan(max_tokens=1)).scored == 0


def test_a_context_or_stride_out_of_range_is_refused(read, plan):
    for changes in ({"context": 33}, {"context": 32, "bos": True}):
        with pytest.raises(ResidError, match="reads 1 to 32"):
            read("lens", plan(**changes))
    with pytest.raises(ResidError, match="stride"):
        read("lens", plan(context=4, stride=5))


def test_a_text_is_cut_as_the_models_tokenizer_and_its_added_tokens_allow(
    tiny, read, plan, monkeypatch
):
    asked = []
    find_seam = windows.find_seam
    monkeypatch.setattr(
        "resid.corpus.running.find_seam",
        lambda encode, added: (asked.append(added), find_seam(encode, added))[1],
    )
    read("norms", plan())
    assert asked == [tuple(tiny.vocabulary.tokenizer.get_added_vocab())]
    assert asked[0]


def test_merging_needs_no_torch(read, plan, tmp_path):
    read("memory", plan(folder=tmp_path / "run"))
    code = (
        "import sys; from resid.corpus.state import open_run\n"
        "from resid.corpus.merging import merge\n"
        f"run = merge({{'a': open_run({str(tmp_path / 'run')!r})}})\n"
        "print(run.totals.result(run.source()).tokens, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[1] == "False"
    assert json.loads(done.stdout.split()[0]) > 100
