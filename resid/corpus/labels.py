"""What the file of a run may say of itself; whatever else is found there is no run.

Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from resid.errors import brief

Fits = Callable[[Any], bool]


@dataclass(frozen=True)
class Each:
    """A JSON object with any names, of whose values each fits."""

    fits: Fits


# A test of a value; a dict of such, for an object with these names and no others; a list of one,
# for a list of any length; or `Each`.
Label = Fits | Mapping[str, Any] | list[Any] | Each


def is_count(value: Any) -> bool:
    """Whether it is a whole number from 0 on that fits into 64 bits."""
    return type(value) is int and 0 <= value < 1 << 63


def is_size(value: Any) -> bool:
    """Whether it is a whole number above 0."""
    return is_count(value) and value > 0


def is_text(value: Any) -> bool:
    """Whether it is text."""
    return isinstance(value, str)


def is_flag(value: Any) -> bool:
    """Whether it is true or false."""
    return isinstance(value, bool)


def or_none(fits: Fits) -> Fits:
    """The same test, which also lets null pass."""
    return lambda value: value is None or fits(value)


def is_points(value: Any) -> bool:
    """Whether it is a list of different names of points."""
    named = isinstance(value, list) and all(isinstance(point, str) for point in value)
    return named and 0 < len(set(value)) == len(value) and "".join(value).isprintable()


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or _is_number(value)


def _is_place(value: Any) -> bool:
    """A document and a position in it."""
    return isinstance(value, list) and len(value) == 2 and all(map(is_count, value))


def _is_shard(value: Any) -> bool:
    return _is_place(value) and 1 <= value[0] <= value[1]


def _is_check(value: Any) -> bool:
    """An error, its tolerance and the document that has it."""
    if not isinstance(value, list) or len(value) != 3:
        return False
    error, tolerance, document = value
    return _is_number(error) and _is_number(tolerance) and tolerance > 0 and is_count(document)


def _is_bad_line(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 3:
        return False
    return is_count(value[0]) and is_count(value[1]) and is_text(value[2])


_FILE = {"bytes": is_count, "sha256": is_text}
_SETTINGS = {
    "context": is_size,
    "stride": is_size,
    "bos": is_flag,
    "split": is_text,
    "field": is_text,
    "max_tokens": or_none(is_count),
    "batch_tokens": is_size,
}
RUN: dict[str, Any] = {
    "version": is_text,
    "seal": is_text,
    "analysis": is_text,
    "fingerprint": {
        "analysis": is_text,
        "model": {
            "weights": is_text,
            "tokenizer": or_none(is_text),
            "configuration": Each(_is_scalar),
            "dtype": is_text,
        },
        "text": [_FILE],
        "settings": lambda value: isinstance(value, dict),  # With those of `totals.shape`, below.
    },
    "about": {
        "model": is_text,
        "revision": or_none(is_text),
        "n_layers": is_size,
        "d_model": is_size,
        "d_vocab": is_size,
        "device": is_text,
        "versions": Each(is_text),
        "files": [{"name": is_text, **_FILE}],
    },
    "totals": {
        "shape": lambda value: isinstance(value, dict),  # Each analysis has its own.
        "checks": Each(_is_check),
        "not_finite": is_count,
        "not_finite_at": or_none(_is_place),
    },
    "tally": {
        "documents": is_count,
        "empty_documents": is_count,
        "tokens": is_count,
        "bad_lines": is_count,
        "first_bad": [_is_bad_line],
    },
    "shards": [_is_shard],
    "packet": is_count,
    "batch": is_count,
    "finished": is_flag,
}


def check_run(header: Any) -> None:
    """Refuse what cannot be the header of a run.

    Raises:
        ValueError: naming what is wrong.
    """
    check(header, RUN, "the run")
    asked = {name: header["totals"]["shape"].get(name) for name in ("points", "top", "projection")}
    settings = dict(header["fingerprint"]["settings"])
    for name, value in asked.items():
        if name in header["totals"]["shape"] and settings.pop(name, ...) != value:
            raise ValueError(f"settings.{name} is not {brief(value)}")
    check(settings, _SETTINGS, "settings")
    files, bad = header["about"]["files"], header["tally"]["first_bad"]
    if header["fingerprint"]["analysis"] != header["analysis"]:
        raise ValueError(f"analysis is {brief(header['analysis'])}")
    if [{name: file[name] for name in _FILE} for file in files] != header["fingerprint"]["text"]:
        raise ValueError("about.files are not the text")
    if any(file >= len(files) for file, _, _ in bad) or len(bad) > header["tally"]["bad_lines"]:
        raise ValueError("tally.first_bad names no file of the text")


def check(value: Any, label: Label, name: str) -> None:
    """Refuse a value that is not as its label has it.

    Raises:
        ValueError: naming what is wrong.
    """
    if isinstance(label, Each) and isinstance(value, dict):
        for key, item in value.items():
            check(item, label.fits, f"{name}.{key}")
    elif isinstance(label, list) and isinstance(value, list):
        for item in value:
            check(item, label[0], name)
    elif isinstance(label, dict) and isinstance(value, dict):
        odd = next((key for key in (*label, *value) if not (key in label and key in value)), None)
        if odd is not None:
            raise ValueError(f"{name}: {brief(odd)} is {'missing' if odd in label else 'unknown'}")
        for key, part in label.items():
            check(value[key], part, f"{name}.{key}")
    elif not callable(label) or not label(value):
        raise ValueError(f"{name} is {brief(value)}")
