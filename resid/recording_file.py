"""Recordings on disk: a safetensors file that carries its labels and source, readable anywhere.

The tensors have the names that a `Recording` has ("embed", "3.mid", ...), each [pos, width]; the
model's own logits, where they were kept, are "logits" [pos, d_vocab]. The file's metadata holds
`resid` (the format's version), `source` (JSON, as in every result), `logits_at` (JSON) and `seal`
(see `resid.seals`).
"""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
import re
import struct
from pathlib import Path
from typing import Any

import torch

from resid import hub, seals
from resid.errors import ResidError, brief, brief_name, first_line
from resid.points import KINDS
from resid.recording import Recording
from resid.results import Source

_VERSION = "1"
# Far above any model, and still few enough to be listed.
_MOST_LAYERS = 10_000
_FORMATS = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float64: "F64",
}
_NAME = re.compile(rf"embed|(0|[1-9][0-9]{{0,4}})\.(?:{'|'.join(KINDS)})")


def to_safetensors(recording: Recording, logits: bool = False) -> bytes:
    """The recording as the bytes of a safetensors file.

    Args:
        recording: what to save.
        logits: save the model's own logits too, d_vocab numbers a position.
    """
    return b"".join(to_pieces(recording, logits))


def to_pieces(recording: Recording, logits: bool = False) -> list[bytes | memoryview]:
    """The same bytes in pieces: the header, and the memory of each tensor as it is.

    A recording of everything is larger than many a model, and `safetensors.torch.save` copies it
    twice. The format is a length of 8 bytes, that much JSON, and the tensors one after another.
    """
    tensors = {name: tensor.contiguous().cpu() for name, tensor in recording.items()}
    at: tuple[int, ...] = ()
    if logits and recording.logits is not None:
        tensors["logits"] = recording.logits.contiguous().cpu()
        at = recording.logits_at
    header: dict[str, Any] = {
        "__metadata__": {
            "resid": _VERSION,
            "source": json.dumps(dataclasses.asdict(recording.source)),
            "logits_at": json.dumps(at),
            seals.NAME: seals.OPEN,
        }
    }
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": _FORMATS[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    told = json.dumps(header).encode()
    told += b" " * (-len(told) % 8)  # So that numbers lie where a mapped file can be read.
    memory = [tensor.flatten().view(torch.uint8).numpy().data for tensor in tensors.values()]
    return [seals.sealed(struct.pack("<Q", len(told)) + told, memory), *memory]


def open_recording(file: str | Path) -> Recording:
    """The recording that a safetensors file holds, checked against its own labels.

    Raises:
        ResidError: there is no such file, it is not a recording of this format, its tensors do not
            fit its labels, or any bit of it is another than when it was written.
    """
    from safetensors import SafetensorError, safe_open

    path = hub.expanded(os.fspath(file))
    try:
        there = path.is_file()
    except OSError as error:
        raise ResidError(f"cannot read '{path}': {error.strerror or error}") from None
    if not there:
        raise ResidError(f"there is no recording '{path}'")
    try:
        with safe_open(path, framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        told = brief_name(first_line(error))
        raise ResidError(f"'{path}' is not a recording: {told}") from error
    if metadata.get("resid") != _VERSION:
        raise ResidError(f"'{path}' is a safetensors file, but not a recording of resid's")
    try:
        source = _read_source(json.loads(metadata["source"]))
        at = tuple(map(_count, json.loads(metadata["logits_at"])))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        told = brief_name(first_line(error))
        raise ResidError(f"'{path}' has labels that cannot be read: {told}") from error
    logits = tensors.pop("logits", None)
    recording = Recording(source, tensors, logits, at)
    _check(recording, path)
    with path.open("rb") as opened:
        content = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    with content:
        if not seals.is_whole(content):
            raise ResidError(
                f"'{path}' is damaged: it is not what was written, to the bit\n"
                "copy it again, or record it again"
            )
    return recording


def _count(value: Any) -> int:
    """A whole number from 0 on."""
    if type(value) is not int or value < 0:
        raise TypeError(f"{brief(value)} in place of a whole number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{brief(value)} in place of text")
    return value


def _read_source(fields: Any) -> Source:
    if not isinstance(fields, dict):
        raise TypeError(f"{brief(fields)} in place of a source")
    source = Source(**fields)
    source = dataclasses.replace(
        source, ids=tuple(map(_count, source.ids)), tokens=tuple(map(_text, source.tokens))
    )
    for name in ("model", "dtype", "device"):
        _text(getattr(source, name))
    for name in ("n_layers", "d_model", "d_vocab"):
        _count(getattr(source, name))
    for optional in (source.revision, source.prompt):
        _text(optional or "")
    for words in dict(source.versions).items():
        _text("".join(map(_text, words)))
    # Display strings are such as a terminal and a font can show.
    fits = len(source.ids) == len(source.tokens) > 0 and "".join(source.tokens).isprintable()
    if not fits or not 0 < source.n_layers <= _MOST_LAYERS:
        raise ValueError("the source does not fit itself")
    return source


def _check(recording: Recording, path: Path) -> None:
    positions = len(recording.ids)
    for name, tensor in recording.items():
        known = _NAME.fullmatch(name)
        if not known or int(known[1] or 0) >= recording.source.n_layers:
            raise ResidError(f"'{path}' has a tensor '{brief_name(name)}', which no recording has")
        if tensor.dtype not in _FORMATS:
            raise ResidError(f"'{path}': {name} holds {tensor.dtype} numbers, not floats")
        wide = tensor.ndim == 2 and tensor.shape[0] == positions
        neurons = name.endswith((".mlp_pre", ".mlp_post"))
        if not wide or not (neurons or tensor.shape[1] == recording.source.d_model):
            raise ResidError(
                f"'{path}': {name} is {list(tensor.shape)}; its labels say "
                f"[{positions}, {recording.source.d_model}]"
            )
    logits, at = recording.logits, recording.logits_at
    rows = (0, 0) if logits is None else tuple(logits.shape)
    if logits is not None and logits.dtype not in _FORMATS:
        raise ResidError(f"'{path}': the logits are {logits.dtype} numbers, not floats")
    if rows != (len(at), recording.source.d_vocab if logits is not None else 0) or not all(
        0 <= position < positions for position in at
    ):
        raise ResidError(f"'{path}': the logits do not fit their labels")
