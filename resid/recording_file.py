"""Recordings on disk: a safetensors file that carries its labels and source, readable anywhere.

The tensors have the names that a `Recording` has ("embed", "3.mid", ...), each [pos, width]; the
model's own logits, where they were kept, are "logits" [pos, d_vocab]. The file's metadata holds
`resid` (the format's version), `source` (JSON, as in every result) and `logits_at` (JSON).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from resid.errors import ResidError, first_line
from resid.recording import Recording, resolve
from resid.results import Source

_VERSION = "1"


def to_safetensors(recording: Recording, logits: bool = False) -> bytes:
    """The recording as the bytes of a safetensors file.

    Args:
        recording: what to save.
        logits: save the model's own logits too, d_vocab numbers a position.
    """
    from safetensors.torch import save

    tensors = {name: tensor.contiguous().cpu() for name, tensor in recording.items()}
    at: tuple[int, ...] = ()
    if logits and recording.logits is not None:
        tensors["logits"] = recording.logits.contiguous().cpu()
        at = recording.logits_at
    metadata = {
        "resid": _VERSION,
        "source": json.dumps(dataclasses.asdict(recording.source)),
        "logits_at": json.dumps(at),
    }
    return bytes(save(tensors, metadata))


def open_recording(file: str | Path) -> Recording:
    """The recording that a safetensors file holds, checked against its own labels.

    Raises:
        ResidError: there is no such file, it is not a recording of this format, or its tensors do
            not fit its labels.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(file).expanduser()
    if not path.is_file():
        raise ResidError(f"there is no recording '{path}'")
    try:
        with safe_open(path, framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ResidError(f"'{path}' is not a recording: {first_line(error)}") from error
    if metadata.get("resid") != _VERSION:
        raise ResidError(f"'{path}' is a safetensors file, but not a recording of resid's")
    try:
        source = _read_source(json.loads(metadata["source"]))
        at = tuple(int(position) for position in json.loads(metadata["logits_at"]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ResidError(f"'{path}' has labels that cannot be read: {first_line(error)}") from error
    logits = tensors.pop("logits", None)
    recording = Recording(source, tensors, logits, at)
    _check(recording, path)
    return recording


def _read_source(fields: dict[str, Any]) -> Source:
    fields["ids"] = tuple(int(i) for i in fields["ids"])
    fields["tokens"] = tuple(str(token) for token in fields["tokens"])
    source = Source(**fields)
    if len(source.ids) != len(source.tokens) or not isinstance(source.n_layers, int):
        raise ValueError("the source does not fit itself")
    return source


def _check(recording: Recording, path: Path) -> None:
    positions = len(recording.ids)
    for name, tensor in recording.items():
        try:
            known = resolve([name], recording.source.n_layers) == (name,)
        except ResidError:
            known = False
        if not known:
            raise ResidError(f"'{path}' has a tensor '{name}', which no recording has")
        wide = tensor.ndim == 2 and tensor.shape[0] == positions
        neurons = name.endswith((".mlp_pre", ".mlp_post"))
        if not wide or not (neurons or tensor.shape[1] == recording.source.d_model):
            raise ResidError(
                f"'{path}': {name} is {list(tensor.shape)}; its labels say "
                f"[{positions}, {recording.source.d_model}]"
            )
    logits, at = recording.logits, recording.logits_at
    rows = (0, 0) if logits is None else tuple(logits.shape)
    if rows != (len(at), recording.source.d_vocab if logits is not None else 0) or not all(
        0 <= position < positions for position in at
    ):
        raise ResidError(f"'{path}': the logits do not fit their labels")
