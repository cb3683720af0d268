"""A folder with a GPT-2 checkpoint, read without running code and without forgiving anything.

transformers fills what a checkpoint lacks with random numbers and says so in a log line; here every
missing, unexpected or mismatched weight is an error that names it.
"""

from __future__ import annotations

import pickle
import re
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from resid import layout
from resid.errors import ResidError, first_line
from resid.headers import refuse_pointer, weight_files
from resid.hub import TOKENIZER_FILES
from resid.layout import Sizes

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
        found |= _read_safetensors(file) if file.suffix == ".safetensors" else read_bin(file)
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
            raise ResidError(f"{folder}: the checkpoint holds {plain} twice")
        if weight.dtype not in _FORMATS:
            raise ResidError(
                f"{folder}: {name} holds {str(weight.dtype).removeprefix('torch.')} numbers\n"
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
        if torch.equal(weights[layout.HEAD], weights[layout.EMBEDDING]):
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
            (transformers builds one from a configuration alone); or the folder's name is not UTF-8.
    """
    vocabularies = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
    if not any(file.is_file() for pattern in vocabularies for file in folder.glob(pattern)):
        return None
    _refuse_name(folder)
    from transformers import AutoTokenizer

    for name in TOKENIZER_FILES:
        if (folder / name).exists():
            _refuse_pointer(folder / name)
    known = {} if config is None else {"config": config}
    try:
        with _quiet_transformers():
            tokenizer = AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, **known
            )
    except Exception as error:  # JSON, tokenizers' own exceptions, missing modules ...
        raise ResidError(
            f"the tokenizer files in {folder} cannot be read: {first_line(error)}"
        ) from error
    if len(tokenizer) <= len(tokenizer.get_added_vocab()):
        found = ", ".join(f for f in TOKENIZER_FILES if (folder / f).exists())
        raise ResidError(f"the tokenizer files in {folder} hold no tokens ({found})")
    return tokenizer


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
                f"{folder}: {name} is {list(weights[name].shape)} in the checkpoint; "
                f"config.json makes it {list(shape)}"
            )
    ours = (name for name in weights if name.split(".")[0] in layout.BASE)
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
        first = next(iter(names))
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        raise ResidError(
            f"{folder}: the checkpoint {what} {first}{more}\n"
            "nothing is read from a model that is not whole: get the complete checkpoint"
        )


def _read_safetensors(file: Path) -> Weights:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    _refuse_name(file)
    _refuse_pointer(file)
    try:
        return dict(load_file(file))
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(file, error) from error


def read_bin(file: Path) -> Weights:
    """The tensors of a PyTorch file by name, mapped from the disk where its format allows.

    Raises:
        ResidError: it is a Git LFS pointer, damaged, or holds anything but tensors.
    """
    _refuse_pointer(file)
    try:
        found = torch.load(
            file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(file) or None
        )
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
        raise _damaged(file, error) from error
    if not isinstance(found, dict):
        raise ResidError(f"{file} holds a {type(found).__name__}, not weights by name")
    for name, weight in found.items():
        if not isinstance(weight, torch.Tensor):
            raise ResidError(
                f"{file}: {str(name)[:80]!r} is of type {type(weight).__name__}, not a tensor\n"
                "give a file that holds the weights alone, by name"
            )
    return {str(name): weight.detach() for name, weight in found.items()}


def _refuse_name(path: Path) -> None:
    """Refuse what safetensors and tokenizers do not open, and report as damaged."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise ResidError(f"{path}: the name is not valid UTF-8; rename it to read it") from None


def _refuse_pointer(file: Path) -> None:
    try:
        refuse_pointer(file)
    except OSError as error:
        raise ResidError(f"{file} cannot be read: {error.strerror or error}") from error


def _damaged(file: Path, error: Exception) -> ResidError:
    told = re.split(r"[.\n]\s", first_line(error))[0]
    return ResidError(f"{file} is cut off or damaged; copy or download it again\n({told})")


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
