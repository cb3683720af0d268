"""What the files of a checkpoint hold, read from their beginnings: no weights, no torch."""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resid.errors import ResidError, brief, brief_name, first_line
from resid.hub import WEIGHT_FILES

# safetensors' names of number formats: torch's name, and bytes a number.
FORMATS = {
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1),
    "I64": ("int64", 8),
    "I32": ("int32", 4),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U64": ("uint64", 8),
    "U32": ("uint32", 4),
    "U16": ("uint16", 2),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
}
# The format's own limit: what claims more is no safetensors file.
_LONGEST_HEADER = 100_000_000
# Far above any configuration or index, and still soon read.
_LONGEST_JSON = 1 << 26
_MOST_NUMBERS = 1 << 63
_CHUNK = 1 << 20
_OTHER_FORMATS = ("tf_model.h5", "flax_model.msgpack", "*.gguf", "*.onnx", "model.ckpt*", "*.pt")


@dataclass(frozen=True)
class Tensor:
    """One tensor without its numbers."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """As torch names it: "float32"."""
    storage: Hashable
    """Equal for tensors that are one and the same."""

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Span:
    """Where the numbers of a tensor lie."""

    file: Path
    begin: int
    end: int


def read_header(file: Path) -> dict[Tensor, Span]:
    """The tensors of a safetensors file and where they lie, from its header alone.

    Raises:
        ResidError: the file is a Git LFS pointer, empty, cut off, or no safetensors file.

    Source: the format's description, https://github.com/huggingface/safetensors#format: eight
    bytes of length, that much JSON, then the numbers without a gap.
    """
    try:
        refuse_pointer(file)
        size = file.stat().st_size
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            if not 2 <= length <= min(size - 8, _LONGEST_HEADER):
                told = f"a header of {length:,} bytes in a file of {size:,}"
                raise ResidError(f"{file} is cut off or damaged: {told}")
            fields = json.loads(opened.read(length), object_pairs_hook=_once)
        found = dict(_entry(file, 8 + length, name, entry) for name, entry in _entries(fields))
    except OSError as error:
        raise ResidError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        told = f"its header is not what safetensors writes ({brief_name(first_line(error))})"
        raise ResidError(f"{file} is cut off or damaged: {told}") from error
    _refuse_gaps(file, 8 + length, size, found)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, each of whose names is there once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _entries(fields: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(fields, dict):
        raise TypeError(f"a {type(fields).__name__}, not tensors by name")
    for name, entry in fields.items():
        if name != "__metadata__":
            yield name, entry


def _entry(file: Path, start: int, name: str, entry: Any) -> tuple[Tensor, Span]:
    shape = tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    dtype, width = FORMATS.get(entry["dtype"], (str(entry["dtype"]).lower(), 0))
    numbers = (*shape, begin, end)
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in numbers)
    if not whole or not all(0 <= n < _MOST_NUMBERS for n in numbers):
        raise ValueError(f"{brief_name(name)}: {brief(entry)}")
    if width and end - begin != width * math.prod(shape):
        told = f"{end - begin} bytes for {brief(list(shape))} in {dtype}"
        raise ValueError(f"{brief_name(name)}: {told}")
    return Tensor(name, shape, dtype, name), Span(file, start + begin, start + end)


def _refuse_gaps(file: Path, start: int, size: int, found: dict[Tensor, Span]) -> None:
    at = start
    for tensor, span in sorted(found.items(), key=lambda item: (item[1].begin, item[1].end)):
        if span.begin != at:
            name = brief_name(tensor.name)
            raise ResidError(f"{file} is cut off or damaged: {name} lies in a wrong place")
        at = span.end
    if at != size:
        told = f"{size:,} bytes, its header describes {at:,}"
        raise ResidError(f"{file} is cut off or damaged: it has {told}")


def same_bytes(one: Span, other: Span) -> bool:
    """Whether two tensors hold the same numbers, read a piece at a time.

    Raises:
        ResidError: a file cannot be read.
    """
    if one.end - one.begin != other.end - other.begin:
        return False
    try:
        with one.file.open("rb") as first, other.file.open("rb") as second:
            first.seek(one.begin)
            second.seek(other.begin)
            for done in range(0, one.end - one.begin, _CHUNK):
                n = min(_CHUNK, one.end - one.begin - done)
                if first.read(n) != second.read(n):
                    return False
    except OSError as error:
        raise ResidError(f"{one.file} cannot be read: {error.strerror or error}") from error
    return True


def damaged(file: Path, error: Exception) -> ResidError:
    """What to raise for a file of weights that its library cannot read."""
    told = brief_name(re.split(r"[.\n]\s", first_line(error))[0])
    return ResidError(f"{file} is cut off or damaged; copy or download it again\n({told})")


def refuse_pipe(file: Path) -> None:
    """Refuse a pipe or a device, for whose end one might wait for ever."""
    mode = file.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ResidError(f"{file} is a pipe or a device, not a file")


def refuse_pointer(file: Path) -> None:
    """Refuse a file that is a Git LFS pointer, empty, no file at all, or cannot be read."""
    try:
        refuse_pipe(file)
        with file.open("rb") as opened:
            start = opened.read(40)
    except OSError as error:
        raise ResidError(f"{file} cannot be read: {error.strerror or error}") from error
    if start.startswith(b"version https://git-lfs"):
        raise ResidError(f"{file} is a Git LFS pointer, not the file itself: run `git lfs pull`")
    if not start:
        raise ResidError(f"{file} is empty")


def read_json(file: Path, what: str) -> dict[str, Any]:
    """The fields of a JSON file.

    Args:
        file: to read.
        what: what it should be, for the message.

    Raises:
        ResidError: it is missing, unreadable, or holds no fields by name.
    """
    try:
        refuse_pipe(file)
        size = file.stat().st_size
        if size > _LONGEST_JSON:
            raise ResidError(f"{file} is not {what}: it has {size:,} bytes")
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResidError(f"{file.parent}: no {file.name}, so this is not {what}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ResidError(f"{file} cannot be read: {first_line(error)}") from error
    if not isinstance(found, dict):
        raise ResidError(f"{file} is not {what}: a {type(found).__name__}, not fields by name")
    return found


def weight_files(folder: Path) -> list[Path]:
    """The files that hold a checkpoint's weights, safetensors where there is a choice.

    Raises:
        ResidError: there are none, or a shard that the index names is missing.
    """
    name = next((name for name in WEIGHT_FILES if (folder / name).exists()), None)
    if name is None:
        others = [file.name for pattern in _OTHER_FORMATS for file in folder.glob(pattern)]
        found = f"; found {others[0]}, which is of another framework" if others else ""
        raise ResidError(f"{folder}: no model.safetensors and no pytorch_model.bin{found}")
    if not name.endswith(".index.json"):
        return [folder / name]
    index = read_json(folder / name, "the index of a sharded checkpoint")
    shards = index.get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise ResidError(f"{folder / name}: no weight_map")
    for shard in shards.values():
        if not isinstance(shard, str) or not 0 < len(shard) <= 255 or not shard.isprintable():
            raise ResidError(f"{folder / name}: a shard is named {brief(shard)}")
        if Path(shard).name != shard:
            raise ResidError(f"{folder / name}: the shard '{shard}' lies outside of the folder")
        if Path(shard).suffix != Path(name.removesuffix(".index.json")).suffix:
            raise ResidError(f"{folder / name}: the shard '{shard}' is no weight file")
    names = sorted(set(shards.values()))
    for shard in names:
        if not (folder / shard).is_file():
            raise ResidError(f"{folder}: the shard {shard} is missing")
    return [folder / shard for shard in names]
