"""A checkpoint's config.json, field by field: what is not understood is left out or refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from resid.errors import ResidError, brief
from resid.headers import read_json, refuse_pointer
from resid.layout import Sizes

_MOST_LABELS = 1_000_000


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not _is_flag(value) and 0 <= value <= 1


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not _is_flag(value)


def _is_label_count(value: Any) -> bool:
    return _is_id(value) and 0 < value <= _MOST_LABELS


# Every field that has a say, beside the sizes; what else a config.json holds (code to run, number
# formats, kernels, text generation) is not read. A value of another kind is refused.
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "layer_norm_epsilon": (_is_share, "a number from 0 to 1"),
    "embd_pdrop": (_is_share, "a number from 0 to 1"),
    "attn_pdrop": (_is_share, "a number from 0 to 1"),
    "resid_pdrop": (_is_share, "a number from 0 to 1"),
    "summary_first_dropout": (_is_share, "a number from 0 to 1"),
    "scale_attn_weights": (_is_flag, "true or false"),
    "scale_attn_by_inverse_layer_idx": (_is_flag, "true or false"),
    "reorder_and_upcast_attn": (_is_flag, "true or false"),
    "add_cross_attention": (_is_flag, "true or false"),
    "tie_word_embeddings": (_is_flag, "true or false"),
    "summary_use_proj": (_is_flag, "true or false"),
    "summary_proj_to_labels": (_is_flag, "true or false"),
    "bos_token_id": (_is_id, "a token's id"),
    "num_labels": (_is_label_count, "a number of labels"),
}


def read_config(folder: Path) -> Any:
    """The checkpoint's GPT2Config.

    Raises:
        ResidError: there is no readable config.json, it is of another architecture, or its values
            make no GPT-2.
    """
    file = folder / "config.json"
    if not file.is_file():
        raise ResidError(f"{folder}: no config.json, so this is not the folder of a model")
    refuse_pointer(file)
    fields = read_json(file, "the configuration of a model")
    for name, (fits, wanted) in _FIELDS.items():
        if fields.get(name) is not None and not fits(fields[name]):
            raise ResidError(f"{file}: {name} is {brief(fields[name])}, not {wanted}")
    saved_as = fields.get("architectures") or []
    if not isinstance(saved_as, list) or not all(isinstance(name, str) for name in saved_as):
        raise ResidError(f"{file}: architectures is {brief(saved_as)}, not a list of names")
    sizes = Sizes.from_config(fields, file)
    from transformers import GPT2Config

    # Where a configuration names no special tokens, GPT2Config would supply those of GPT-2 itself.
    given = {name: fields[name] for name in _FIELDS if fields.get(name) is not None}
    # The newest transformers takes a whole number for no float.
    given |= {name: float(given[name]) for name in given if _FIELDS[name][0] is _is_share}
    if not 0 <= given.get("bos_token_id", -1) < sizes.d_vocab:
        given["bos_token_id"] = None
    return GPT2Config(
        n_layer=sizes.n_layers,
        n_head=sizes.n_heads,
        n_embd=sizes.d_model,
        n_inner=sizes.d_mlp,
        vocab_size=sizes.d_vocab,
        n_positions=sizes.n_ctx,
        activation_function=_activation(fields, file),
        architectures=saved_as,
        **_labels(fields),
        **{"eos_token_id": None, **given},
    )


def _activation(fields: Mapping[str, Any], file: Path) -> str:
    from transformers.activations import ACT2FN

    name = fields.get("activation_function") or "gelu_new"
    if not isinstance(name, str) or name not in ACT2FN:
        raise ResidError(
            f"{file}: activation_function is {brief(name)}, which transformers does not have\n"
            "GPT-2's own is gelu_new; others are gelu, relu and silu"
        )
    return name


def _labels(fields: Mapping[str, Any]) -> dict[str, int]:
    """How many labels a classifier has; older configurations only list them."""
    labels = fields.get("id2label")
    named = isinstance(labels, dict) and labels and fields.get("num_labels") is None
    return {"num_labels": len(labels)} if named and isinstance(labels, dict) else {}
