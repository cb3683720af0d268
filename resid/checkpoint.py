"""A folder with a GPT-2 checkpoint, read without running code and without forgiving anything.

transformers fills what a checkpoint lacks with random numbers and says so in a log line; here every
missing, unexpected or mismatched weight is an error that names it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from resid import layout
from resid.errors import ResidError, brief, brief_name, first_line
from resid.headers import damaged, read_header, refuse_pointer, weight_files
from resid.hub import TOKENIZER_FILES
from resid.layout import Sizes
from resid.torch_file import read_torch_file

Weights = dict[str, torch.Tensor]

_FORMATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
_UNKNOWN = "has a weight that config.json does not call for:"
# What a checkpoint may have been saved from; of these, the first two have a language-model head.
_WITH_HEAD = ("GPT2LMHeadModel", "GPT2DoubleHeadsModel")
_CLASSES = (
    *_WITH_HEAD,
    "GPT2Model",
    "GPT2ForSequenceClassification",
    "GPT2ForTokenClassification",
    "GPT2ForQuestionAnswering",
)


def read_weights(folder: Path) -> Weights:
    """Every tensor of the checkpoint under its plain name, on the CPU, old mask buffers left out.

    Raises:
        ResidError: no weights are there, or a file is a Git LFS pointer, cut off, damaged, holds
            anything but tensors, or holds packed numbers.
    """
    found: Weights = {}
    for file in weight_files(folder):
        more = _read_safetensors(file) if file.suffix == ".safetensors" else read_torch_file(file)
        twice = next((name for name in more if name in found), None)
        if twice is not None:
            raise ResidError(f"{folder}: the checkpoint holds {brief_name(twice)} in two files")
        found |= more
    try:
        names = layout.plain_names(found)
    except ResidError as error:
        raise ResidError(f"{folder}: {error}") from None
    weights: Weights = {}
    for name, weight in found.items():
        plain = names[name]
        if layout.part_of(plain)[0] == layout.MASK:
            continue  # Causal masks, which older versions of transformers saved too.
        if plain in weights:
            raise ResidError(f"{folder}: the checkpoint holds {brief_name(plain)} twice")
        if weight.dtype not in _FORMATS:
            raise ResidError(
                f"{folder}: {brief_name(name)} holds "
                f"{str(weight.dtype).removeprefix('torch.')} numbers\n"
                "resid reads floating-point weights, not packed or quantized ones"
            )
        weights[plain] = weight
    return weights


def build(config: Any, weights: Weights, folder: Path, dtype: torch.dtype) -> tuple[Any, list[str]]:
    """The Hugging Face model of a checkpoint in evaluation mode, and what its user should know.

    Args:
        config: as `resid.configuration.read_config` gives it.
        weights: as `read_weights` gives them.
        folder: where both are from, for the messages.
        dtype: of the model's parameters.

    Raises:
        ResidError: a weight is missing, unexpected or of another shape than the configuration
            says; the first such key is named.
    """
    _refuse_differences(weights, config, folder)
    notices: list[str] = []
    if layout.HEAD in weights and config.tie_word_embeddings:
        if _equal(weights[layout.HEAD], weights[layout.EMBEDDING], dtype):
            weights = {name: w for name, w in weights.items() if name != layout.HEAD}
        else:
            # Some versions of transformers would overwrite this head with the embedding.
            config.tie_word_embeddings = False
            notices.append(
                "the checkpoint has an unembedding of its own, though its configuration says tied;"
                " the checkpoint is right"
            )
    model_class, told = _model_class(config, layout.HEAD in weights, folder)
    prefix = model_class.base_model_prefix + "." if model_class.__name__ != "GPT2Model" else ""
    named = {
        prefix + name if name.split(".")[0] in layout.BASE else name: weight
        for name, weight in weights.items()
    }
    try:
        with _quiet_transformers():
            model, info = model_class.from_pretrained(
                None,
                config=config,
                state_dict=named,
                dtype=dtype,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # Refused below by key, not forgiven.
            )
    except Exception as error:  # Whatever an odd configuration makes the constructor raise.
        raise ResidError(f"{folder}: {first_line(error)}") from error
    _refuse_odd_heads(info, folder)
    return model.eval(), notices + told


def read_tokenizer(folder: Path, config: Any | None = None) -> Any | None:
    """The folder's tokenizer, or None where it holds no files of one.

    Args:
        folder: to look in.
        config: of the model in the same folder, as `read_config` gives it, where there is one.

    Raises:
        ResidError: the files are there but cannot be read, or give a tokenizer without tokens
            (transformers builds one from a configuration alone), or one id to two tokens; or the
            folder's name is not UTF-8.
    """
    vocabularies = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
    if not any(file.is_file() for pattern in vocabularies for file in folder.glob(pattern)):
        return None
    _refuse_name(folder)
    from transformers import AutoTokenizer

    for name in TOKENIZER_FILES:
        if (folder / name).exists():
            refuse_pointer(folder / name)
    _refuse_devices(folder / "tokenizer_config.json")
    known = {} if config is None else {"config": config}
    try:
        with _quiet_transformers():
            tokenizer = AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, **known
            )
        vocabulary = tokenizer.get_vocab()
        empty = len(tokenizer) <= len(tokenizer.get_added_vocab())
    except BaseException as error:  # JSON, tokenizers' own exceptions, missing modules ...
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        told = brief_name(first_line(error))
        raise ResidError(f"the tokenizer files in {folder} cannot be read: {told}") from error
    if empty:
        found = ", ".join(f for f in TOKENIZER_FILES if (folder / f).exists())
        raise ResidError(f"the tokenizer files in {folder} hold no tokens ({found})")
    # Which of two tokens an id stands for, the tokenizers library decides anew in every run. One
    # written in Python always takes the same; there, added tokens may take an id over.
    if tokenizer.is_fast and len(set(vocabulary.values())) < len(vocabulary):
        token_of: dict[int, str] = {}
        for token, token_id in sorted(vocabulary.items()):
            other = token_of.setdefault(token_id, token)
            if other != token:
                pair = f"{brief_name(other)!r} and {brief_name(token)!r}"
                raise ResidError(
                    f"the tokenizer files in {folder} give one id, {token_id}, to {pair}"
                )
    return tokenizer


def _refuse_devices(file: Path) -> None:
    """Refuse a configuration that names a pipe or a device as a file of the tokenizer's.

    Before version 5, transformers reads what `merges_file` and its like name: /dev/zero for ever.
    """
    try:
        fields = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return  # There is none, or transformers says what is wrong with it.
    named = fields.items() if isinstance(fields, dict) else ()
    for name, value in named:
        if not name.endswith("_file") or not isinstance(value, str):
            continue
        with contextlib.suppress(OSError, ValueError):
            if Path(value).exists() and not Path(value).is_file():
                told = f"names {brief_name(value)} as {brief_name(name)}, which is no file"
                raise ResidError(f"{file} {told}")


def _equal(head: torch.Tensor, embedding: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether both are the same bits once they are in the model; NaN is not equal to itself."""
    bits = (weight.to(dtype).contiguous().view(torch.uint8) for weight in (head, embedding))
    return torch.equal(*bits)


def _model_class(config: Any, has_head: bool, folder: Path) -> tuple[Any, list[str]]:
    """The class that the checkpoint was saved from; GPT2LMHeadModel where that is left open."""
    import transformers

    saved_as = next((name for name in config.architectures if name in _CLASSES), _WITH_HEAD[0])
    if saved_as == "GPT2Model" and config.tie_word_embeddings and not has_head:
        # The blocks alone; but the configuration says that the embedding is the unembedding.
        return transformers.GPT2LMHeadModel, [
            f"{folder} was saved without a head; its configuration ties it to the embedding"
        ]
    if has_head and saved_as not in _WITH_HEAD:
        saved_as = _WITH_HEAD[0]
    return getattr(transformers, saved_as), []


def _refuse_differences(weights: Weights, config: Any, folder: Path) -> None:
    """Hold embeddings, blocks and norms against the configuration, before anything is allocated."""
    sizes = Sizes.from_config(config.to_dict(), folder / "config.json")
    blocks = {block for _, block in map(layout.part_of, weights) if block is not None}
    n_blocks = max(blocks, default=-1) + 1
    if n_blocks != sizes.n_layers:
        what = f"lacks h.{n_blocks}" if n_blocks < sizes.n_layers else f"has h.{sizes.n_layers}"
        raise ResidError(
            f"{folder}: the checkpoint has {n_blocks} blocks, config.json says n_layer is "
            f"{sizes.n_layers}: the checkpoint {what}.ln_1.weight"
        )
    expected = sizes.shapes()
    required = expected.keys() - ({layout.HEAD} if sizes.tied else set())
    _refuse_keys(folder, "lacks", [name for name in expected if name in required - weights.keys()])
    for name, shape in expected.items():
        if name in weights and tuple(weights[name].shape) != shape:
            raise ResidError(
                f"{folder}: {name} is {brief(list(weights[name].shape))} in the checkpoint; "
                f"config.json makes it {list(shape)}"
            )
    # What still has a prefix would take the place of the tensor that is named so in the model.
    first = (*layout.BASE, "transformer")
    ours = (name for name in weights if name.split(".")[0] in first)
    _refuse_keys(folder, _UNKNOWN, [name for name in ours if name not in expected])


def _refuse_odd_heads(info: dict[str, Any], folder: Path) -> None:
    """What was put on top of the blocks; transformers alone knows the shape of each kind."""
    # The newest version tells the shapes too, older ones the name alone.
    mismatched = [key if isinstance(key, str) else key[0] for key in info["mismatched_keys"]]
    _refuse_keys(folder, "has another shape than config.json says for", mismatched)
    _refuse_keys(folder, "lacks", info["missing_keys"])
    _refuse_keys(folder, _UNKNOWN, info["unexpected_keys"])


def _refuse_keys(folder: Path, what: str, names: Collection[str]) -> None:
    if names:
        first = brief_name(next(iter(names)))
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        raise ResidError(
            f"{folder}: the checkpoint {what} {first}{more}\n"
            "nothing is read from a model that is not whole: get the complete checkpoint"
        )


def _read_safetensors(file: Path) -> Weights:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    _refuse_name(file)
    refuse_pointer(file)
    try:
        found = dict(load_file(file))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise damaged(file, error) from error
    read_header(file)  # Refuses what safetensors forgives: a name that is there twice.
    return found


def _refuse_name(path: Path) -> None:
    """Refuse what safetensors and tokenizers do not open, and report as damaged."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise ResidError(f"{path}: the name is not valid UTF-8; rename it to read it") from None


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """No bar and no log lines while transformers reads from the disk; restored afterwards."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
