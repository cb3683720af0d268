import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import resid
from resid.recording_file import to_pieces, to_safetensors

from .conftest import IDS


@pytest.fixture
def saved(tiny, tmp_path):
    recording = resid.record(tiny, "the the is")
    path = tmp_path / "stream.safetensors"
    path.write_bytes(to_safetensors(recording, logits=True))
    return recording, path


def test_a_recording_comes_back_as_it_was(saved):
    recording, path = saved
    back = resid.open_recording(path)
    assert back.source == recording.source
    assert list(back) and set(back) == set(recording)
    assert all(torch.equal(back[name], recording[name]) for name in recording)
    assert torch.equal(back.logits, recording.logits)
    assert back.logits_at == recording.logits_at


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_the_library_reads_every_format_to_the_bit(tiny_folder, tmp_path, dtype):
    recording = resid.record(resid.load(tiny_folder, dtype=dtype), IDS)
    path = tmp_path / "stream.safetensors"
    path.write_bytes(to_safetensors(recording))
    read = load_file(path)
    assert read["embed"].dtype == getattr(torch, dtype)
    assert list(read) and set(read) == set(recording)
    assert all(torch.equal(read[name], recording[name]) for name in recording)
    assert resid.open_recording(path).source == recording.source


def test_what_is_written_is_the_memory_of_the_recording(tiny):
    """A recording of a thousand tokens is half a gigabyte: there is no second one."""
    recording = resid.record(tiny, IDS, logits=False)
    _, *pieces = to_pieces(recording)
    first = recording["embed"].numpy()
    assert np.shares_memory(np.frombuffer(pieces[0], np.uint8), first)
    assert [len(piece) for piece in pieces] == [tensor.nbytes for tensor in recording.values()]


def test_the_readings_say_the_same_of_it(tiny, saved):
    recording, path = saved
    back = resid.open_recording(path)
    lens = resid.logit_lens(tiny, recording).to_json()
    assert resid.logit_lens(tiny, back).to_json() == lens
    memory = resid.mlp_memory(tiny, recording).to_json()
    assert resid.mlp_memory(tiny, back).to_json() == memory


def test_without_logits_the_lens_asks_the_model_for_them(tiny, tmp_path):
    recording = resid.record(tiny, IDS)
    path = tmp_path / "stream.safetensors"
    path.write_bytes(to_safetensors(recording))
    back = resid.open_recording(path)
    assert back.logits is None
    assert resid.logit_lens(tiny, back).checks[0].passed


def test_the_file_is_readable_without_resid(saved):
    recording, path = saved
    tensors = load_file(path)
    assert torch.equal(tensors["1.mid"], recording["1.mid"])
    with path.open("rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        metadata = json.loads(opened.read(size))["__metadata__"]
    assert json.loads(metadata["source"])["prompt"] == "the the is"


def rewrite(path, change):
    tensors = load_file(path)
    with path.open("rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        metadata = json.loads(opened.read(size))["__metadata__"]
    change(tensors, metadata)
    save_file(tensors, path, metadata)


def drop_label(tensors, metadata):
    del metadata["source"]


def break_label(tensors, metadata):
    metadata["source"] = "{" * 5000


def other_format(tensors, metadata):
    metadata["resid"] = "99"


def cut_a_tensor(tensors, metadata):
    tensors["1.mid"] = tensors["1.mid"][:-1].contiguous()


def widen_a_tensor(tensors, metadata):
    tensors["0.post"] = torch.zeros(len(tensors["0.post"]), 3)


def foreign_tensor(tensors, metadata):
    tensors["7.post"] = torch.zeros(1)


def cut_logits(tensors, metadata):
    tensors["logits"] = tensors["logits"][:-1].contiguous()


def shift_logits(tensors, metadata):
    metadata["logits_at"] = json.dumps([0, 1, 99])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_label, "labels that cannot be read"),
        (break_label, "labels that cannot be read"),
        (other_format, "not a recording of resid's"),
        (cut_a_tensor, r"1\.mid is"),
        (widen_a_tensor, r"0\.post is"),
        (foreign_tensor, "'7.post', which no recording has"),
        (cut_logits, "logits do not fit"),
        (shift_logits, "logits do not fit"),
    ],
)
def test_a_file_that_does_not_fit_its_labels_is_refused(saved, change, message):
    _, path = saved
    rewrite(path, change)
    with pytest.raises(resid.ResidError, match=message):
        resid.open_recording(path)


def test_a_cut_file_is_refused(saved):
    _, path = saved
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(resid.ResidError, match="is not a recording"):
        resid.open_recording(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(resid.ResidError, match="there is no recording"):
        resid.open_recording(tmp_path / "nope.safetensors")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("~no-such-user/x", "there is no recording '~no-such-user/x'"),
        ("n" * 300, "cannot read 'n+': File name too long"),
        ("a\0b", "there is no recording"),
    ],
)
def test_a_name_that_no_file_can_have_is_refused(name, told):
    with pytest.raises(resid.ResidError, match=told):
        resid.open_recording(name)


@pytest.mark.parametrize("at", [-1, -5000, 300])
def test_one_bit_that_is_another_is_noticed(saved, at):
    """In the numbers, which no format guards, and in the labels."""
    _, path = saved
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(
        resid.ResidError, match=r"is damaged: it is not what|labels|is not a recording"
    ):
        resid.open_recording(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_layers", 10**12),
        ("n_layers", True),
        ("ids", [float("inf")] * 3),
        ("ids", [1.5, 2, 3]),
        ("ids", [-1, 2, 3]),
        ("tokens", ["\x1b[31m", "a", "b"]),
        ("tokens", [1, 2, 3]),
        ("model", {"a": 1}),
        ("d_model", "16"),
        ("versions", ["x"]),
        ("prompt", 5),
    ],
)
def test_a_source_that_no_model_has_is_refused(saved, name, value):
    def change(tensors, metadata):
        metadata["source"] = json.dumps(json.loads(metadata["source"]) | {name: value})

    _, path = saved
    rewrite(path, change)
    with pytest.raises(resid.ResidError, match="labels that cannot be read"):
        resid.open_recording(path)


@pytest.mark.parametrize("name", ["1.mid", "logits"])
def test_numbers_that_are_no_floats_are_refused(saved, name):
    def change(tensors, metadata):
        tensors[name] = tensors[name].to(torch.int32)

    _, path = saved
    rewrite(path, change)
    with pytest.raises(resid.ResidError, match=r"torch\.int32 numbers, not floats"):
        resid.open_recording(path)
