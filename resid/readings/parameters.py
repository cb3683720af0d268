"""Where the names and shapes of a model's parameters come from, the cheapest source first.

Nothing here reads a weight, and only what lies in memory or in a .bin file needs torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resid import headers, hub, layout
from resid.errors import ResidError, brief, brief_name
from resid.headers import Tensor
from resid.layout import EMBEDDING, HEAD, Sizes

if TYPE_CHECKING:
    import torch

Same = Callable[[Tensor, Tensor], bool]


@dataclass(frozen=True)
class Parameters:
    """The parameters of one model, under plain names and without their numbers.

    A tensor that is another one once more has that one's `storage` and comes after it.
    """

    tensors: tuple[Tensor, ...]
    name: str
    """How the model was asked for."""
    words: str
    """Where they come from."""
    expected: int
    """How many distinct ones there are, found without looking at their names."""
    revision: str | None = None
    device: str = "none"
    notices: tuple[str, ...] = ()


def find(model: Any, revision: str | None = None) -> Parameters:
    """The parameters of a model that is named, in a folder, on the hub, or in memory.

    Raises:
        ResidError: it is not to be had, is no GPT-2, is not whole, or has no revisions.
    """
    if not isinstance(model, (str, os.PathLike)):
        hub.refuse_revision(revision, "this one is in memory")
        return in_memory(model)
    name = os.fspath(model)
    here = hub.on_this_machine(name)
    if here is not None:
        hub.refuse_revision(revision, f"'{name}' is a folder")
        return replace(in_folder(here.folder, name), notices=here.notices)
    sizes = layout.known(name) if revision is None else None
    return published(name, sizes) if sizes else on_hub(name, revision)


def published(name: str, sizes: Sizes) -> Parameters:
    """A model whose sizes are known, without a look at any file."""
    words = "the published configuration, by arithmetic"
    return Parameters(_by_arithmetic(sizes), name, words, sizes.total())


def in_folder(folder: Path, name: str) -> Parameters:
    """A checkpoint on this machine: its configuration and the beginnings of its weight files."""
    where = folder / "config.json"
    sizes = Sizes.from_config(headers.read_json(where, "the configuration of a model"), where)
    files = headers.weight_files(folder)
    if files[0].suffix == ".safetensors":
        tensors, same = _read_headers(files)
        words = f"config.json and {_headers_of(files)}"
    else:
        tensors, same = _read_bins(files)
        words = f"config.json and the shapes in {_named(files)}"
    found = _checked(tensors, sizes, str(folder), same)
    return Parameters(found, name, words, _distinct(found))


def on_hub(name: str, revision: str | None) -> Parameters:
    """A model on the hub: from the local cache, else the headers alone, asked for by range.

    Raises:
        ResidError: neither has it; the message says which of the two failed how.
    """
    snapshot = hub.in_cache(name, revision)
    if snapshot is not None:
        return replace(in_folder(snapshot.folder, name), revision=snapshot.revision)
    why = hub.unreachable()
    if why is not None:
        at = f" at revision '{revision}'" if revision else ""
        raise ResidError(
            f"the model '{name}'{at} is not in the local cache, and {why}\n"
            f"give a folder, or one of {', '.join(layout.KNOWN)}"
        )
    with hub.explained(name, revision):
        config, commit, shards = _ask_hub(name, revision)
    sizes = Sizes.from_config(headers.read_json(config, "the configuration of a model"), name)
    if shards is None:
        words = "config.json alone: the hub has no safetensors file of it"
        return Parameters(_by_arithmetic(sizes), name, words, sizes.total(), commit)
    # Telling by its bytes whether a head is the embedding would mean to fetch them both.
    found = _checked(shards, sizes, name, lambda head, embedding: True)
    words = "config.json and the safetensors header on the hub"
    if any(layout.part_of(tensor.name)[0] == "unembedding" for tensor in shards):
        words += ", and tied as config.json says"
    return Parameters(found, name, words, _distinct(found), commit)


def in_memory(model: Any) -> Parameters:
    """A model in memory, also one whose weights are on the meta device.

    Args:
        model: a Hugging Face model, whatever wraps it, or a `resid.Model`.

    Raises:
        ResidError: it is no GPT-2, or its parameters are packed.
    """
    hf: Any = getattr(model, "hf", model[0] if isinstance(model, tuple) else model)
    config = getattr(hf, "config", None)
    # What an adapter library or a trainer wraps around a model may have no configuration.
    kind = getattr(config, "model_type", "gpt2" if config is None else type(hf).__name__)
    if kind != "gpt2" or not hasattr(hf, "named_parameters"):
        got = type(hf).__name__ if kind == "gpt2" else kind
        raise ResidError(f"resid reads gpt2 models; got {got}")
    parameters = dict(hf.named_parameters(remove_duplicate=False))
    tensors = [_tensor(name, parameter) for name, parameter in parameters.items()]
    found = _plain(tensors)
    _refuse_packed(found, "the model")
    _refuse_reshaped(found)
    words = f"the parameters of a {type(hf).__name__} in memory"
    name = getattr(model, "name", None) or getattr(config, "_name_or_path", "") or "in memory"
    distinct = sum({tensor.storage: tensor.size for tensor in tensors}.values())
    device = str(next(iter(parameters.values())).device)
    return Parameters(found, name, words, distinct, getattr(model, "revision", None), device)


def _by_arithmetic(sizes: Sizes) -> tuple[Tensor, ...]:
    tied = EMBEDDING if sizes.tied else HEAD
    return tuple(
        Tensor(name, shape, "float32", tied if name == HEAD else name)
        for name, shape in sizes.shapes().items()
    )


def _read_headers(files: list[Path]) -> tuple[list[Tensor], Same]:
    found = [pair for file in files for pair in headers.read_header(file).items()]
    spans = {tensor.storage: span for tensor, span in found}

    def same(one: Tensor, other: Tensor) -> bool:
        return headers.same_bytes(spans[one.storage], spans[other.storage])

    return [tensor for tensor, _ in found], same


def _read_bins(files: list[Path]) -> tuple[list[Tensor], Same]:
    from resid.torch_file import read_torch_file

    found = [pair for file in files for pair in read_torch_file(file).items()]
    weights = dict(found)
    if len(weights) < len(found):
        raise ResidError(f"{files[0].parent}: the checkpoint holds a weight in two files")

    def same(one: Tensor, other: Tensor) -> bool:
        return bool((weights[str(one.storage)] == weights[str(other.storage)]).all())

    return [replace(_tensor(name, weight), storage=name) for name, weight in weights.items()], same


def _headers_of(files: list[Path]) -> str:
    return f"the header{'s' * (len(files) > 1)} of {_named(files)}"


def _named(files: list[Path]) -> str:
    return files[0].name if len(files) == 1 else f"{len(files)} shards"


def _ask_hub(name: str, revision: str | None) -> tuple[Path, str, list[Tensor] | None]:
    """The model's config.json, its commit, and its tensors, if it has a safetensors file."""
    from huggingface_hub import get_safetensors_metadata, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, NotASafetensorsRepoError

    try:
        config = Path(hf_hub_download(name, "config.json", revision=revision))
    except EntryNotFoundError:
        raise ResidError(f"the model '{name}' on the hub has no config.json") from None
    commit = config.parent.name
    try:
        metadata = get_safetensors_metadata(name, revision=commit)
    except NotASafetensorsRepoError:
        return config, commit, None
    tensors = []
    for file in metadata.files_metadata.values():
        for key, entry in file.tensors.items():
            dtype, _ = headers.FORMATS.get(entry.dtype, (str(entry.dtype).lower(), 0))
            tensors.append(Tensor(key, tuple(entry.shape), dtype, key))
    return config, commit, tensors


def _tensor(name: str, weight: torch.Tensor) -> Tensor:
    storage: Hashable
    try:
        # Two parameters that share memory are one, also where they are different objects.
        memory = weight.untyped_storage()._cdata
        storage = (memory, weight.storage_offset(), tuple(weight.shape))
    except (RuntimeError, NotImplementedError):
        storage = id(weight)  # Some subclasses have no storage; the object stands for itself.
    return Tensor(name, tuple(weight.shape), str(weight.dtype).removeprefix("torch."), storage)


def _plain(tensors: list[Tensor]) -> tuple[Tensor, ...]:
    """The tensors under plain names, a head that is an embedding after it."""
    names = layout.plain_names(tensor.name for tensor in tensors)
    plain = [replace(tensor, name=names[tensor.name]) for tensor in tensors]
    return tuple(sorted(plain, key=lambda tensor: tensor.name == HEAD))


def _checked(tensors: list[Tensor], sizes: Sizes, where: str, same: Same) -> tuple[Tensor, ...]:
    """The parameters among a checkpoint's tensors, held against its configuration."""
    try:
        plain = _plain(tensors)
    except ResidError as error:
        raise ResidError(f"{where}: {error}") from None
    found = tuple(t for t in plain if layout.part_of(t.name)[0] != layout.MASK)
    _refuse_packed(found, where)
    by_name = {tensor.name: tensor for tensor in found}
    if len(by_name) != len(found):
        raise ResidError(f"{where}: the checkpoint holds a weight twice")
    _refuse_differences(by_name, sizes, where)
    embedding = by_name[EMBEDDING]
    head = by_name.pop(HEAD, None)
    if sizes.tied and (sizes.has_head if head is None else _equal(head, embedding, same)):
        # Saved twice or not at all, meant once.
        head = replace(embedding, name=HEAD)
    return (*by_name.values(), *([] if head is None else [head]))


def _equal(head: Tensor, embedding: Tensor, same: Same) -> bool:
    alike = (head.shape, head.dtype) == (embedding.shape, embedding.dtype)
    return alike and same(head, embedding)


def _distinct(tensors: tuple[Tensor, ...]) -> int:
    return sum({tensor.storage: tensor.size for tensor in tensors}.values())


def _refuse_packed(tensors: tuple[Tensor, ...], where: str) -> None:
    for tensor in tensors:
        if not tensor.dtype.startswith(("float", "bfloat")):
            raise ResidError(
                f"{where}: {brief_name(tensor.name)} holds {brief_name(tensor.dtype)} numbers\n"
                "packed or quantized weights say nothing about how many parameters there are"
            )


def _refuse_reshaped(tensors: tuple[Tensor, ...]) -> None:
    """Refuse matrices that are packed into floats, or scattered over processes."""
    width = next(tensor.shape[-1:] for tensor in tensors if tensor.name == EMBEDDING)
    for tensor in tensors:
        part, _ = layout.part_of(tensor.name)
        if part.endswith("weights") and not set(width) & set(tensor.shape):
            raise ResidError(
                f"the model: {tensor.name} is {list(tensor.shape)}, and the model {width} wide\n"
                "its weights are packed or lie elsewhere; count them before that"
            )


def _refuse_differences(by_name: dict[str, Tensor], sizes: Sizes, where: str) -> None:
    expected = sizes.shapes()
    if sizes.tied:
        expected.pop(HEAD, None)
    _refuse_keys(where, "lacks", [name for name in expected if name not in by_name])
    blocks = [name for name in by_name if layout.part_of(name)[1] is not None]
    unknown = [name for name in blocks if name not in expected]
    _refuse_keys(where, "has a weight that its configuration does not have:", unknown)
    for name, shape in (expected | {HEAD: expected[EMBEDDING]}).items():
        if name in by_name and by_name[name].shape != shape:
            raise ResidError(
                f"{where}: {name} is {brief(list(by_name[name].shape))} in the checkpoint; "
                f"its configuration makes it {list(shape)}"
            )


def _refuse_keys(where: str, what: str, names: list[str]) -> None:
    if names:
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        raise ResidError(f"{where}: the checkpoint {what} {brief_name(names[0])}{more}")
