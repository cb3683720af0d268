"""A folder with a GPT-2 checkpoint, read without running code and without forgiving anything.

transformers fills what a checkpoint lacks with random numbers and says so in a log line; here every
missing, unexpected or mismatched weight is an error that names it.
"""

from __future__ import annotations

import pickle
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from resid.errors import ResidError, first_line
from resid.headers import read_json, refuse_pointer, weight_files
from resid.hub import TOKENIZER_FILES

Weights = dict[str, torch.Tensor]

# Causal masks that older versions of transformers saved along with the weights.
_MASK_BUFFER = re.compile(r"(^|\.)h\.\d+\.(attn|crossattention)\.(bias|masked_bias)$")
# Configuration fields that choose code or a number format; neither is for a checkpoint to decide.
_IGNORED_FIELDS = (
    "_attn_implementation",
    "attn_implementation",
    "auto_map",
    "dtype",
    "torch_dtype",
)
# What a checkpoint may have been saved from; of these, the first two have a language-model head.
_CLASSES = (
    "GPT2LMHeadModel",
    "GPT2DoubleHeadsModel",
    "GPT2Model",
    "GPT2ForSequenceClassification",
    "GPT2ForTokenClassification",
    "GPT2ForQuestionAnswering",
)


def read_config(folder: Path) -> Any:
    """The checkpoint's GPT2Config.

    Raises:
        ResidError: there is no readable config.json, it is of another architecture, or its values
            make no GPT-2.
    """
    fields = read_json(folder / "config.json", "the configuration of a model")
    kind = fields.get("model_type")
    if kind != "gpt2":
        told = f"got '{kind}'" if kind else "config.json has no model_type"
        raise ResidError(f"{folder}: resid reads gpt2 models; {told}")
    if fields.get("quantization_config"):
        raise ResidError(f"{folder}: the weights are quantized; resid reads floating-point weights")
    from transformers import GPT2Config

    try:
        config = GPT2Config.from_dict({k: v for k, v in fields.items() if k not in _IGNORED_FIELDS})
    except Exception as error:  # The validation of hostile values raises whatever it runs into.
        raise ResidError(f"{folder / 'config.json'}: {first_line(error)}") from error
    for name in ("n_layer", "n_head", "n_embd", "n_positions", "vocab_size"):
        value = getattr(config, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ResidError(f"{folder / 'config.json'}: {name} is {value!r}, not a whole number")
    return config


def read_weights(folder: Path) -> Weights:
    """Every tensor of the checkpoint by name, on the CPU, old mask buffers left out.

    Raises:
        ResidError: no weights are there, or a file is a Git LFS pointer, cut off, damaged, holds
            anything but tensors, or holds packed numbers.
    """
    weights: Weights = {}
    for file in weight_files(folder):
        weights |= _read_safetensors(file) if file.suffix == ".safetensors" else read_bin(file)
    weights = {name: w for name, w in weights.items() if not _MASK_BUFFER.search(name)}
    for name, weight in weights.items():
        if not weight.is_floating_point():
            raise ResidError(
                f"{folder}: {name} holds {str(weight.dtype).removeprefix('torch.')} numbers\n"
                "resid reads floating-point weights, not packed or quantized ones"
            )
    return weights


def build(config: Any, weights: Weights, folder: Path, dtype: torch.dtype) -> tuple[Any, list[str]]:
    """The Hugging Face model of a checkpoint in evaluation mode, and what its user should know.

    Raises:
        ResidError: a weight is missing, unexpected or of another shape than the configuration
            says; the first such key is named.
    """
    model_class, notices = _model_class(config, folder)
    head, embedding = weights.get("lm_head.weight"), _embedding(weights)
    if head is not None and config.tie_word_embeddings:
        if embedding is not None and torch.equal(head, embedding):
            del weights["lm_head.weight"]  # Saved twice, meant once.
        else:
            # Some versions of transformers would overwrite this head with the embedding.
            config.tie_word_embeddings = False
            notices.append(
                "the checkpoint has an unembedding of its own, though its configuration says tied;"
                " the checkpoint is right"
            )
    try:
        with _quiet_transformers():
            model, info = model_class.from_pretrained(
                None,
                config=config,
                state_dict=weights,
                dtype=dtype,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # Reported below by key, not forgiven.
            )
    except Exception as error:  # Whatever a hostile configuration makes the constructor raise.
        raise ResidError(f"{folder}: {first_line(error)}") from error
    _refuse_differences(info, folder)
    return model.eval(), notices


def read_tokenizer(folder: Path) -> Any | None:
    """The folder's tokenizer, or None where it holds no files of one.

    Raises:
        ResidError: the files are there but cannot be read, or give a tokenizer without tokens
            (transformers builds one from a configuration alone).
    """
    vocabularies = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
    if not any(file.is_file() for pattern in vocabularies for file in folder.glob(pattern)):
        return None
    from transformers import AutoTokenizer

    try:
        with _quiet_transformers():
            tokenizer = AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
    except Exception as error:  # JSON, tokenizers' own exceptions, missing modules ...
        raise ResidError(
            f"the tokenizer files in {folder} cannot be read: {first_line(error)}"
        ) from error
    if len(tokenizer) <= len(tokenizer.get_added_vocab()):
        found = ", ".join(f for f in TOKENIZER_FILES if (folder / f).exists())
        raise ResidError(f"the tokenizer files in {folder} hold no tokens ({found})")
    return tokenizer


def _model_class(config: Any, folder: Path) -> tuple[Any, list[str]]:
    """The class that the checkpoint was saved from; GPT2LMHeadModel where that is left open."""
    import transformers

    saved_as = (config.architectures or ["GPT2LMHeadModel"])[0]
    if saved_as == "GPT2Model" and config.tie_word_embeddings:
        # The blocks alone; but the configuration says that the embedding is the unembedding.
        return transformers.GPT2LMHeadModel, [
            f"{folder} was saved without a head; its configuration ties it to the embedding"
        ]
    known = saved_as in _CLASSES
    return getattr(transformers, saved_as if known else "GPT2LMHeadModel"), []


def _refuse_differences(info: dict[str, Any], folder: Path) -> None:
    mismatched = sorted(info["mismatched_keys"])
    if mismatched:
        key, found, wanted = mismatched[0]
        raise ResidError(
            f"{folder}: {key} is {list(found)} in the checkpoint; "
            f"its configuration makes it {list(wanted)}{_and_more(mismatched)}"
        )
    for what, keys in (
        ("lacks", sorted(info["missing_keys"])),
        ("has a weight that no GPT-2 has here:", sorted(info["unexpected_keys"])),
    ):
        if keys:
            raise ResidError(
                f"{folder}: the checkpoint {what} {keys[0]}{_and_more(keys)}\n"
                "nothing is read from a model that is not whole"
            )


def _and_more(keys: list[Any]) -> str:
    return f" (and {len(keys) - 1} more)" if len(keys) > 1 else ""


def _embedding(weights: Weights) -> torch.Tensor | None:
    return weights.get("transformer.wte.weight", weights.get("wte.weight"))


def _read_safetensors(file: Path) -> Weights:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    refuse_pointer(file)
    try:
        return dict(load_file(file))
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(file, error) from error


def read_bin(file: Path) -> Weights:
    """The tensors of a PyTorch file by name, mapped from the disk where its format allows.

    Raises:
        ResidError: it is a Git LFS pointer, damaged, or holds anything but tensors.
    """
    refuse_pointer(file)
    try:
        found = torch.load(
            file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(file) or None
        )
    except pickle.UnpicklingError as error:
        code = re.search(r"GLOBAL (\S+)", str(error))
        if code:
            raise ResidError(
                f"{file} holds more than tensors: {code.group(1)}\n"
                "reading it could run code, so it is refused; ask for a safetensors file"
            ) from error
        raise _damaged(file, error) from error
    except Exception as error:  # A cut or foreign file fails in many ways inside of torch.load.
        raise _damaged(file, error) from error
    if not isinstance(found, dict):
        raise ResidError(f"{file} holds a {type(found).__name__}, not weights by name")
    for name, weight in found.items():
        if not isinstance(weight, torch.Tensor):
            raise ResidError(f"{file}: {name!r} is a {type(weight).__name__}, not a tensor")
    return {str(name): weight for name, weight in found.items()}


def _damaged(file: Path, error: Exception) -> ResidError:
    return ResidError(f"{file} is cut off or damaged: {first_line(error)}")


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
