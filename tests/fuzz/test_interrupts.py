"""Ctrl-C and SIGTERM at any moment: an end in a line, and every file whole, old or new."""

import json
import signal

import pytest
from hypothesis import strategies as st

from tests.fuzz.budget import fuzz
from tests.fuzz.command_lines import LIGHT
from tests.fuzz.in_process import check_file, contents

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX signals")

CORPUS = ["text.txt", "--batch-tokens", "24", "--save-every", "0"]
COMMANDS = {
    "table": ["lens", "the is", "--top", "3", "--follow", "--baseline"],
    "json": ["lens", "the is", "-o", "old.json", "-o", "new.csv"],
    "figure": ["norms", "the is", "-o", "old.svg"],
    "memory": ["memory", "the is", "-o", "old.html"],
    "attribute": ["attribute", "the is", "--target", "id:7", "--heads", "--format", "json"],
    "find": ["find", "id:7"],
    "record": ["record", "the is", "-o", "old.safetensors"],
    "report": ["report", "the is", "-o", "old.html", "--neurons", "1"],
    "params": ["params", "./tiny", "-o", "new.json"],
    "verify": ["verify", "--no-float64", "--ids", "5,290"],
    "merge": ["corpus", "merge", "run", "-o", "new"],
    "corpus lens": ["corpus", "lens", *CORPUS, "--resume", "new", "--format", "json"],
    "corpus norms": ["corpus", "norms", *CORPUS, "-o", "new"],
    "corpus memory": ["corpus", "memory", *CORPUS, "--resume", "new", "--format", "json"],
    "race": ["lab", "race", *LIGHT["lab", "race"], "--resume", "new", "--format", "json"],
    "depth": ["lab", "depth", *LIGHT["lab", "depth"]],
    "toy": ["lab", "toy", "--seeds", "2", "-o", "old.json"],
}
RESUMED = ("corpus lens", "corpus memory", "race")
ENVIRONMENT = {"RESID_MODEL": "./tiny"}
# Of a run that is there to be gone on with.
STATES = (".safetensors", ".json")
# Before and behind these many calls the process is not yet, and no more, in charge of `main`.
_EDGE = 20
ENDED_BY = {signal.SIGINT: (130,), signal.SIGTERM: (143, -signal.SIGTERM)}


@pytest.fixture(scope="module")
def undisturbed(server, furnished):
    """What a command does when nothing happens, and how many calls it makes; asked for once."""
    known = {}

    def ask(name):
        if name not in known:
            with furnished() as folder:
                request = {"count": True, "environment": ENVIRONMENT}
                known[name] = server.run(COMMANDS[name], folder, **request)
                assert (known[name].status, "Traceback" in known[name].told) == (0, False)
        return known[name]

    return ask


def check_left(name, left, number, folder, before):
    """Nothing of a process that was ended is left but what was whole."""
    assert not left.hung
    assert left.status in (*ENDED_BY[number], 0), left
    assert "Traceback" not in left.told and "ignored" not in left.told, left
    beside = ("wrote", "the run", "what was read is saved")
    told = [line for line in left.told.splitlines() if not line.startswith(beside)]
    ended = ["interrupted"] if left.status == 130 else []
    # Between the group's options and its command it is click that says so.
    assert told in (ended, [], ["", "Aborted!"]), left
    after = contents(folder)
    assert set(before) <= set(after)
    assert "what was read is saved" not in left.told or any(
        path.startswith("new/") for path in after
    )
    for path in after:
        if after[path] == before.get(path, b"") or after[path] is None:
            continue
        in_run = path.startswith("new/")
        assert path in COMMANDS[name] or (in_run and path.endswith(STATES)), path
        if not path.endswith("race.json") and not in_run:
            check_file(folder / path)


@fuzz(
    few=22,
    many=500,
    name=st.sampled_from(sorted(COMMANDS)),
    moment=st.floats(0, 1),
    writing=st.booleans(),
    number=st.sampled_from(sorted(ENDED_BY)),
)
def test_signal_at_any_call(server, undisturbed, furnished, name, moment, writing, number):
    whole = undisturbed(name)
    first, last = _EDGE, whole.events - _EDGE
    if writing and whole.writes:
        first, last = whole.writes[round(moment * (len(whole.writes) - 1))]
        moment = moment * 7 % 1
    event = first + round(moment * (last - first))
    with furnished() as folder:
        before = contents(folder)
        request = {"signal": number, "event": event, "environment": ENVIRONMENT}
        left = server.run(COMMANDS[name], folder, **request)
        check_left(name, left, number, folder, before)
        if left.status == 0:
            assert left.out == whole.out
        elif name in RESUMED:
            again = server.run(COMMANDS[name], folder, environment=ENVIRONMENT)
            assert again.status == 0, again
            assert json.loads(again.out) == json.loads(whole.out)


@fuzz(
    few=12,
    many=250,
    name=st.sampled_from(sorted(COMMANDS)),
    after=st.floats(0, 1),
    number=st.sampled_from(sorted(ENDED_BY)),
)
def test_signal_after_any_time(server, undisturbed, furnished, name, after, number):
    """Also in the middle of what is not Python, and at the very end."""
    whole = undisturbed(name)
    with furnished() as folder:
        before = contents(folder)
        # Counting calls slows a process down; without it, it is over before this is.
        request = {"signal": number, "after": after * whole.seconds, "environment": ENVIRONMENT}
        left = server.run(COMMANDS[name], folder, **request)
        check_left(name, left, number, folder, before)


@pytest.mark.parametrize("number", sorted(ENDED_BY))
def test_signal_while_python_ends(server, furnished, number):
    with furnished() as folder:
        request = {"signal": number, "at_exit": True, "environment": ENVIRONMENT}
        left = server.run(COMMANDS["json"], folder, **request)
        assert left.status in (0, *ENDED_BY[number])
        assert left.told.splitlines()[:2] == ["wrote old.json", "wrote new.csv"]
        assert left.told.splitlines()[2:] in ([], ["interrupted"])
        check_file(folder / "old.json")
