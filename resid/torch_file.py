"""A PyTorch file of weights, read without running code and without believing what it says.

Since torch 1.6 it is a zip archive with a pickle, which describes tensors, and a member of bare
numbers for each storage; before that it was pickles, with the numbers behind them.
"""

from __future__ import annotations

import pickle
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import torch

from resid.errors import ResidError, brief, brief_name
from resid.headers import damaged, refuse_pointer


def read_torch_file(file: Path) -> dict[str, torch.Tensor]:
    """The tensors of a PyTorch file by name, mapped from the disk where its format allows.

    Raises:
        ResidError: it is a Git LFS pointer, damaged, or holds anything but plain tensors.
    """
    refuse_pointer(file)
    archive = zipfile.is_zipfile(file)
    members = _members(file) if archive else []
    found = _tensors(file, mapped=archive)
    if archive and not _lie_in(members, list(found.values())):
        # Mapped, a storage reaches as far as the pickle says; read, it has to fit its member.
        found = _tensors(file, mapped=False)
    return found


def _tensors(file: Path, mapped: bool) -> dict[str, torch.Tensor]:
    try:
        found = torch.load(file, map_location="cpu", weights_only=True, mmap=mapped or None)
    except Exception as error:  # A cut or foreign file fails in many ways inside of torch.load.
        code = re.search(r"(?:GLOBAL|global) ([\w.]+)", str(error))
        if isinstance(error, pickle.UnpicklingError) and (
            code or re.search("Unsupported|protocol", str(error))
        ):
            told = code[1] if code else "instructions for Python"
            raise ResidError(
                f"{file} holds more than tensors: {told}\n"
                "reading it could run code, so it is refused; ask for a safetensors file"
            ) from error
        raise damaged(file, error) from error
    if not isinstance(found, dict):
        raise ResidError(f"{file} holds a {type(found).__name__}, not weights by name")
    for name, weight in found.items():
        _refuse_odd(file, name, weight)
    return {name: weight.detach() for name, weight in found.items()}


def _refuse_odd(file: Path, name: Any, weight: Any) -> None:
    if not isinstance(name, str):
        raise ResidError(f"{file}: a tensor is named {brief(name)}, which is no text")
    if not isinstance(weight, torch.Tensor):
        raise ResidError(
            f"{file}: {brief(name)} is of type {type(weight).__name__}, not a tensor\n"
            "give a file that holds the weights alone, by name"
        )
    if weight.layout is not torch.strided or weight.is_meta or weight.is_quantized:
        kind = "on the meta device" if weight.is_meta else "sparse or packed"
        raise ResidError(f"{file}: {brief(name)} is {kind}, not a plain tensor")


def _members(file: Path) -> list[tuple[int, int]]:
    """Where every member with numbers begins in the archive, and how many bytes it has.

    Raises:
        ResidError: it is damaged, or was compressed, which torch would map as if it were not.
    """
    try:
        with zipfile.ZipFile(file) as archive, file.open("rb") as opened:
            members = archive.infolist()
            packed = [member for member in members if member.compress_type != zipfile.ZIP_STORED]
            found = []
            for member in members:
                # Before its bytes a member has a header, its name, and a filling of some length.
                opened.seek(member.header_offset + 26)
                lengths = struct.unpack("<HH", opened.read(4))
                found.append((member.header_offset + 30 + sum(lengths), member.file_size))
            numbers = [re.search(r"(^|/)data/[^/]+$", member.filename) for member in members]
    except Exception as error:  # As many ways as in torch.load.
        raise damaged(file, error) from error
    if packed:
        raise ResidError(
            f"{file} was packed once more after it was saved: {brief_name(packed[0].filename)}\n"
            "unpack it, and zip it again without compression (zip -0)"
        )
    return [span for span, holds in zip(found, numbers, strict=True) if holds and span[1]]


def _lie_in(members: list[tuple[int, int]], tensors: list[torch.Tensor]) -> bool:
    """Whether the tensors' storages, as they lie in memory, are the members, as they lie there."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    spans = sorted({(each.data_ptr(), each.nbytes()) for each in storages if each.nbytes()})
    members = sorted(members)
    if len(spans) != len(members):
        return False
    return all(
        (begin - spans[0][0], size) == (start - members[0][0], length)
        for (begin, size), (start, length) in zip(spans, members, strict=True)
    )
