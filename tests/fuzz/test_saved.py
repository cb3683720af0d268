"""What resid saves and reads back: the same numbers as before the damage, or a refusal.

There are two kinds of damage. What happens to files (bytes that flip, files that are cut short,
swapped, left out) must be noticed or make no difference. What somebody forges, seal and all, may
say what it likes, but must fit itself, and ends as everything does.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from safetensors.numpy import load, save

import resid
from resid.corpus import state
from resid.corpus.plan import Plan
from resid.corpus.running import run
from resid.errors import ResidError
from resid.lab import race as racing
from resid.lab.race_folder import Folder
from resid.lab.race_variants import line_up
from resid.recording_file import to_safetensors
from resid.seals import sealed
from tests.conftest import write_checkpoint
from tests.corpus.conftest import READINGS, make_texts
from tests.fuzz import mutations
from tests.fuzz.budget import TRIED, fuzz
from tests.fuzz.endings import ends_well, refusal_of
from tests.lab.race_plans import small_plan, small_text

KINDS = ("lens", "norms", "memory")


def forged(content):
    """The bytes of a file with a seal that fits them."""
    from resid.seals import OPEN, find

    place = find(content)
    if place is None:
        return content
    begin, end = place
    return sealed(content[:begin] + OPEN.encode() + content[end:])


# --- arrays in a safetensors file -----------------------------------------------------------------


@st.composite
def array_changes(draw, arrays):
    """Arrays by name of which one is another: in name, shape, number format or numbers."""
    found = dict(arrays)
    name = draw(st.sampled_from(sorted(found)))
    array = found[name]
    kind = draw(st.sampled_from(("drop", "add", "rename", "trade", "shape", "cut", "dtype", "one",
                                 "one", "fill")))  # fmt: skip
    if kind == "drop":
        del found[name]
    elif kind == "add":
        new = draw(st.sampled_from(("evil", "constant.evil", "99.post", "constant.says", "")))
        found[new] = np.zeros(draw(st.sampled_from(((), (1,), (3, 24)))), np.int32)
    elif kind == "rename":
        found[draw(st.sampled_from(mutations.HOSTILE[:4]))] = found.pop(name)
    elif kind == "trade":
        other = draw(st.sampled_from(sorted(found)))
        found[name], found[other] = found[other], array
    elif kind == "shape":
        found[name] = draw(
            st.sampled_from((array.T, array[None], array.ravel(), array.ravel()[:1],
                             array.ravel()[:0], np.zeros((), array.dtype)))
        )  # fmt: skip
    elif kind == "cut" and array.ndim:
        found[name] = np.concatenate([array, array])[: draw(st.integers(0, len(array) + 1))]
    elif kind == "dtype":
        with np.errstate(all="ignore"):
            found[name] = array.astype(
                draw(st.sampled_from(("f4", "f8", "f2", "i4", "i8", "u1", "?")))
            )
    elif array.size:
        if array.dtype.kind == "f":
            value = draw(st.sampled_from((np.nan, np.inf, -np.inf, 0.0, -1.0, 1e30, 0.5)))
        else:
            least, most = (0, 1) if array.dtype.kind == "b" else _range(array.dtype)
            value = draw(st.sampled_from((0, 1, most, least, most // 2)) | st.integers(0, 100))
        found[name] = array.copy()
        with np.errstate(all="ignore"):
            if kind == "fill":
                found[name][...] = value
            else:
                found[name].reshape(-1)[draw(st.integers(0, array.size - 1))] = value
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def _range(dtype):
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def rewritten(content, data, label):
    """The file with other arrays, or with another value in the JSON of one of its labels."""
    header, _ = mutations.split_safetensors(content)
    metadata = dict(header["__metadata__"])
    arrays = load(content)
    kind = data.draw(st.sampled_from(("arrays", "label", "label", "metadata")))
    if kind == "arrays":
        arrays = data.draw(array_changes(arrays))
    elif kind == "label":
        changed = data.draw(mutations.json_texts(json.loads(metadata[label])))
        metadata[label] = changed.decode("utf-8", "replace")
    else:
        metadata = data.draw(mutations.json_values(metadata, most=1))
        if not isinstance(metadata, dict):
            metadata = {}
        metadata = {str(name): value for name, value in metadata.items() if isinstance(value, str)}
    metadata = {_valid(name): _valid(value) for name, value in metadata.items()}
    arrays = {_valid(name): array for name, array in arrays.items()}
    return bytes(save(arrays, metadata))


def _valid(text):
    return text.encode("utf-8", "replace").decode()


def damage(data, content):
    """The bytes of a file after some accident."""
    return data.draw(mutations.damaged(content) | mutations.headers(content))


# --- recordings -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(tiny):
    recording = resid.record(tiny, "the the is")
    return recording, to_safetensors(recording, logits=True)


def equal(one, other):
    return (
        one.source == other.source
        and one.logits_at == other.logits_at
        and dict(one).keys() == dict(other).keys()
        and all(torch.equal(one[name], other[name]) for name in one)
        and torch.equal(one.logits, other.logits)
    )


@fuzz(120, 8000, data=st.data())
def test_a_damaged_recording_is_what_it_was_or_refused(recorded, tmp_path, data):
    recording, content = recorded
    changed = damage(data, content)
    path = tmp_path / "stream.safetensors"
    path.write_bytes(changed)
    back, refusal = refusal_of(resid.open_recording, path)
    assert refusal is not None or equal(back, recording)
    assert refusal is None or str(path) in str(refusal)


@fuzz(60, 4000, data=st.data())
def test_a_forged_recording_fits_itself_or_is_refused(tiny, recorded, tmp_path, data):
    path = tmp_path / "stream.safetensors"
    path.write_bytes(forged(rewritten(recorded[1], data, "source")))
    back, refusal = refusal_of(resid.open_recording, path)
    if refusal is not None:
        return
    source = back.source
    assert len(source.ids) == len(source.tokens) == len(next(iter(back.values())))
    assert "".join(source.tokens).isprintable()
    for read in (resid.logit_lens, resid.stream_norms, resid.mlp_memory, _attribution):
        result, _ = refusal_of(read, tiny, back)
        if result is not None:
            json.loads(result.to_json(), parse_constant=pytest.fail)


def _attribution(model, recording):
    return resid.attribution(model, recording, target="id:260")


# --- corpus runs ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A model, a text, and by kind the command, what it prints, and the bytes of its runs."""
    root = tmp_path_factory.mktemp("runs")
    model = write_checkpoint(root / "model")
    text = root / "text.txt"
    text.write_text("\n".join(text.replace("\n", "") for text in make_texts()), encoding="utf-8")
    found = {}
    for kind in KINDS:
        line = ["corpus", kind, text, "-m", model, "--split", "lines", "--batch-tokens", "24"]
        line += ["--format", "json", "-q"]
        whole = ends_well(*line, "--resume", root / f"{kind}-whole")
        parts = []
        for k in (1, 2):
            ends_well(*line, "--shard", f"{k}/2", "-o", root / f"{kind}-{k}")
            parts.append((root / f"{kind}-{k}" / state.FILE).read_bytes())
        content = (root / f"{kind}-whole" / state.FILE).read_bytes()
        unfinished = _stopped(kind, model, text, root / f"{kind}-stopped")
        found[kind] = (line, whole.stdout, content, parts, unfinished)
    return model, found


def _stopped(kind, model, text, folder):
    """The bytes of such a run that was ended on its way."""
    steps = []

    def step(done):
        steps.append(done)
        if len(steps) == 5:
            raise KeyboardInterrupt

    plan = Plan(
        (str(text),), split="lines", batch_tokens=24, folder=folder, resume=True, save_every=0
    )
    loaded = resid.load(model)
    with pytest.raises(KeyboardInterrupt):
        run(loaded, READINGS[kind](loaded), plan, on_step=step)
    return (folder / state.FILE).read_bytes()


def spoilt(runs, data, tmp_path, change):
    """A command that reads a spoilt run, and what it would print of a sound one."""
    model, found = runs
    kind = data.draw(st.sampled_from(KINDS))
    line, printed, content, parts, unfinished = found[kind]
    how = data.draw(st.sampled_from(("merge", "parts", "resume", "unfinished", "neuron")))
    for name in ("run", "part"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        (tmp_path / name).mkdir()
    file = tmp_path / "run" / state.FILE
    if how == "parts":
        file.write_bytes(change(parts[0]))
        (tmp_path / "part" / state.FILE).write_bytes(parts[1])
        words = ["corpus", "merge", tmp_path / "run", tmp_path / "part", "--format", "json"]
    elif how == "merge":
        file.write_bytes(change(content))
        words = ["corpus", "merge", tmp_path / "run", "--format", "json"]
    elif how == "neuron":
        content = found["memory"][2]
        file.write_bytes(change(content))
        words = ["neuron", "L1N3", "-m", model, "--triggers", tmp_path / "run", "--format", "json"]
        printed = None
    else:
        file.write_bytes(change(content if how == "resume" else unfinished))
        words = [*line, "--resume", tmp_path / "run"]
    return words, printed


@fuzz(50, 3000, data=st.data())
def test_a_damaged_run_is_what_it_was_or_refused(runs, tmp_path, data):
    words, printed = spoilt(runs, data, tmp_path, lambda content: damage(data, content))
    sound = runs[1]["memory"][2]
    ran = ends_well(*words, names=[tmp_path])
    if ran.exit_code == 1:
        return
    if printed is None:
        file = tmp_path / "run" / state.FILE
        same = state.read(file).to_bytes() == sound
        assert same
    elif words[1] == "merge" or "--resume" in words:
        assert json.loads(ran.stdout) == json.loads(printed)


@fuzz(60, 4000, data=st.data())
def test_a_forged_run_fits_itself_or_is_refused(runs, tmp_path, data):
    def change(content):
        return forged(rewritten(content, data, "corpus"))

    words, _ = spoilt(runs, data, tmp_path, change)
    words = [word for word in words if word not in ("--format", "json")]
    if data.draw(st.booleans()):
        words += ["--format", "json"]
    ends_well(*words, names=[tmp_path])


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_another_run_do_not_pass_for_ones_own(runs, tmp_path, kind):
    """Both files are sound, and the numbers of one stand under the labels of the other."""
    content, (part, _) = runs[1][kind][2], runs[1][kind][3]
    header, _ = mutations.split_safetensors(part)
    path = tmp_path / state.FILE
    path.write_bytes(bytes(save(load(content), header["__metadata__"])))
    with pytest.raises(ResidError, match="is damaged"):
        state.open_run(tmp_path)


# --- races ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def race(tmp_path_factory):
    """What a race comes to, and the files of one that was stopped on its way."""
    text = small_text()
    plan, entries = (
        small_plan(text, steps=2, measured_at=(0, 1, 2)),
        line_up(["base", "relu"], 2, 0),
    )
    path = tmp_path_factory.mktemp("race")
    done = []

    def stop(more):
        done.append(more)
        if sum(done) >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        racing.race(
            entries, plan, text, folder=Folder.open(path, plan, text), jobs=1, progress=stop
        )
    files = {file.name: file.read_bytes() for file in path.iterdir()}
    assert {Path(name).suffix for name in files} == {".json", ".safetensors"}
    return plan, entries, text, files, racing.race(entries, plan, text).to_json()


def run_race(race, path, files):
    plan, entries, text = race[:3]
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, content in files.items():
        (path / name).write_bytes(content)

    def go():
        folder = Folder.open(path, plan, text)
        return racing.race(entries, plan, text, folder=folder, jobs=1).to_json()

    return refusal_of(go)


@fuzz(40, 4000, data=st.data())
def test_a_damaged_race_goes_on_as_if_it_were_whole_or_is_refused(race, tmp_path, data):
    files, expected = dict(race[3]), race[4]
    # Of a run that is on its way, most of the bytes are numbers, and every one of them counts.
    unfinished = [name for name in sorted(files) if name.endswith(".safetensors")]
    name = data.draw(st.sampled_from([*sorted(files), *unfinished * len(files)]))
    kind = data.draw(st.sampled_from(("bytes", "bytes", "header", "gone", "trade")))
    if kind == "gone":
        del files[name]
    elif kind == "trade":
        other = data.draw(st.sampled_from(sorted(files)))
        files[name], files[other] = files[other], files[name]
    elif kind == "header" and name.endswith(".safetensors"):
        files[name] = data.draw(mutations.headers(files[name]))
    else:
        files[name] = data.draw(mutations.damaged(files[name], beginnings=len(files[name])))
    result, refusal = run_race(race, tmp_path / "race", files)
    assert refusal is not None or result == expected
    assert refusal is None or str(tmp_path) in str(refusal)


def test_one_bit_anywhere_in_a_race_is_seen(race, tmp_path):
    """Most of them would change no result: of numbers that nothing hangs on, or hardly."""
    for name, content in race[3].items():
        for at in range(0, len(content), -(-len(content) // 12)):
            TRIED["test_one_bit_anywhere_in_a_race_is_seen"] += 1
            changed = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            _, refusal = run_race(race, tmp_path / "race", race[3] | {name: changed})
            assert refusal is not None, (name, at)


@fuzz(40, 4000, data=st.data())
def test_a_forged_race_fits_itself_or_is_refused(race, tmp_path, data):
    files = dict(race[3])
    name = data.draw(st.sampled_from(sorted(files)))
    if name.endswith(".json"):
        changed = data.draw(mutations.json_texts(json.loads(files[name])))
        files[name] = forged(changed)
    else:
        files[name] = forged(rewritten(files[name], data, "loss"))
    run_race(race, tmp_path / "race", files)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_run_of_another_race_does_not_pass_for_ones_own(race, tmp_path, steps):
    _, entries, text, files, _ = race
    other = small_plan(text, steps=2, measured_at=(0, 1, 2), learning_rate=0.5)
    folder = tmp_path / "other"
    racing.race(entries, other, text, folder=Folder.open(folder, other, text), jobs=1)
    mixed = dict(files)
    mixed["base.seed0.json"] = (folder / "base.seed0.json").read_bytes()
    assert run_race(race, tmp_path / "race", mixed)[1] is not None
