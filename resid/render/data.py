"""Results as JSON and CSV text, with every number as it is."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from resid.render.escapes import as_utf8
from resid.results import Check, Ints, LogitLens, Result, Strings

FORMAT_VERSION = 1
_BEYOND_ASCII = re.compile(r"[^\n -~]+")


def to_dict(result: Result) -> dict[str, Any]:
    """The result as plain dicts, lists, numbers and strings, in the layout of its JSON.

    What is not finite is None. A float is the shortest decimal that reads back to the same number
    in the result's own precision.
    """
    source = {
        field.name: getattr(result.source, field.name)
        for field in dataclasses.fields(result.source)
    }
    document = {
        "resid": FORMAT_VERSION,
        "analysis": result.analysis,
        "source": source,
        "axes": result.axis_labels(),
        "data": _data(result),
        "checks": [_check(check) for check in result.checks],
    }
    return {name: _plain(value) for name, value in document.items()}


def to_json(result: Result, indent: int | None = None, ensure_ascii: bool = False) -> str:
    """The result as JSON text that any UTF-8 file can hold.

    Args:
        result: what to write.
        indent: spaces per level; None puts everything on one line.
        ensure_ascii: escape every character that is not ASCII, for outputs in another encoding.
    """
    text = json.dumps(to_dict(result), indent=indent, ensure_ascii=ensure_ascii, allow_nan=False)
    return _BEYOND_ASCII.sub(_printable, text)


def _printable(found: re.Match[str]) -> str:
    """Signs that a terminal would obey, or no file can hold, as JSON's escapes of them."""
    signs = (sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in found[0])
    return "".join(signs)


def to_csv(result: Result) -> str:
    """The result's rows as CSV text with a header line; what is not finite is empty."""
    rows = list(result.rows())
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(name, value) for name, value in row.items()} for row in rows)
    return as_utf8(text.getvalue())


@functools.singledispatch
def _data(result: Result) -> dict[str, Any]:
    return result.data()


@_data.register
def _lens_data(result: LogitLens) -> dict[str, Any]:
    return result.data() | {
        "top_ids": _absent_as_none(result.top_ids, result.top_ids),
        "top_tokens": _absent_as_none(result.top_tokens, result.top_ids),
    }


def _absent_as_none(values: Ints | Strings, ids: Ints) -> Strings:
    return np.where(ids < 0, np.full((), None), values.astype(object))


def _check(check: Check) -> dict[str, Any]:
    fields = {field.name: getattr(check, field.name) for field in dataclasses.fields(check)}
    if fields["where"] is None:
        del fields["where"]
    return fields


def _plain(value: Any) -> Any:
    """The value in Python's own types."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        # str() of a numpy float is the shortest that tells it from its neighbours.
        return float(str(value)) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence | np.ndarray):
        return [_plain(item) for item in value]
    raise TypeError(f"a result cannot hold a {type(value).__name__}: {value!r}")


def _cell(name: str, value: Any) -> Any:
    value = _plain(value)
    absent = name.endswith("_id") and value == -1
    return "" if absent or value is None else value
