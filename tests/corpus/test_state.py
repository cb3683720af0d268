"""The file of a run: what is not what was written, or does not fit itself, is no run."""

import json

import numpy as np
import pytest
from safetensors.numpy import load, save

from resid import seals
from resid.corpus import state
from resid.errors import ResidError


@pytest.fixture
def saved(read, plan, tmp_path):
    def make(kind="memory"):
        read(kind, plan(folder=tmp_path / "run"))
        return tmp_path / "run" / state.FILE

    return make


def forge(path, change):
    """The file with a change to its header and its arrays, under a seal that fits."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["corpus"])
    arrays = {name: array.copy() for name, array in load(content).items()}
    change(header, arrays)
    header[seals.NAME] = seals.OPEN
    path.write_bytes(seals.sealed(bytes(save(arrays, {"corpus": json.dumps(header)}))))


@pytest.mark.parametrize("at", [-1, -3000, -20_000])
def test_one_bit_that_is_another_is_noticed(saved, at):
    path = saved()
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ResidError, match=r"is damaged|is not a corpus run"):
        state.open_run(path.parent)


def test_arrays_of_another_run_are_noticed(read, plan, tmp_path, saved):
    path = saved("norms")
    read("norms", plan(folder=tmp_path / "other", max_tokens=99))
    other = (tmp_path / "other" / state.FILE).read_bytes()
    metadata = json.loads(other[8 : 8 + int.from_bytes(other[:8], "little")])["__metadata__"]
    path.write_bytes(bytes(save(load(path.read_bytes()), metadata)))
    with pytest.raises(ResidError, match="is damaged"):
        state.open_run(path.parent)


def stretched(header, arrays):
    arrays["fires.counts"] = arrays["fires.counts"][:1]


def widened(header, arrays):
    arrays["fires.counts"] = arrays["fires.counts"].astype(np.float64)


def negative(header, arrays):
    arrays["read.counts"] = np.array(-5)


def nowhere(header, arrays):
    arrays["triggers1.context"][2, 0, 3] = 10**6


def of_no_file(header, arrays):
    arrays["triggers1.file"][2, 0] = 1  # Of one file, the second.


def commanding(header, arrays):
    arrays["constant.vocabulary"] = np.frombuffer(json.dumps(["\x1b[31m"] * 300).encode(), np.uint8)


def unnamed(header, arrays):
    arrays["constant.evil"] = np.zeros(1)


def huge(header, arrays):
    header["totals"]["shape"]["n_layers"] = 10**12


def backwards(header, arrays):
    header["batch"] = -1


def unlimited(header, arrays):
    header["totals"]["checks"] = {"neurons_add_up": [0.0, 0.0, 0]}


def elsewhere(header, arrays):
    header["tally"]["first_bad"][0][0] = 7


def deep(header, arrays):
    value = 0
    for _ in range(500):
        value = [value]
    header["about"]["versions"] = value


def half(header, arrays):
    del header["fingerprint"]["model"]["weights"]


def of_two(header, arrays):
    header["shards"] = [[3, 2]]


def not_yet(header, arrays):
    header["finished"] = "no"


@pytest.mark.parametrize(
    "change",
    [stretched, widened, negative, nowhere, of_no_file, commanding, unnamed, huge, backwards,
     unlimited, elsewhere, deep, half, of_two, not_yet],
)  # fmt: skip
def test_what_does_not_fit_itself_is_no_run(saved, change):
    path = saved()
    forge(path, lambda header, arrays: None)
    state.open_run(path.parent)
    forge(path, change)
    with pytest.raises(ResidError, match="is not a corpus run") as error:
        state.open_run(path.parent)
    assert len(str(error.value)) < 600
