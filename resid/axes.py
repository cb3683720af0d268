"""Axis names for the arrays of a record, and the check that equal names have equal sizes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np


def axes(names: str, **options: Any) -> Any:
    """A dataclass field whose value lies on the named axes, for example ``axes("point pos")``.

    Args:
        names: the axes in order, separated by spaces.
        **options: passed on to `dataclasses.field`.
    """
    return dataclasses.field(metadata={"axes": tuple(names.split())}, **options)


def check_axes(record: Any) -> dict[str, int]:
    """The size of every axis that the fields of a dataclass instance name.

    Fields made by `axes` may hold arrays or, for one axis, sequences; None means that the field is
    absent. A field that holds a record of its own takes part with that record's axes.

    Raises:
        ValueError: a field has another number of axes than it names, or two fields disagree on
            the size of an axis; the message names both.
    """
    sizes: dict[str, int] = {}
    set_by: dict[str, str] = {}
    for owner, name, names, shape in _shapes(record, type(record).__name__):
        if len(names) != len(shape):
            raise ValueError(f"{owner}.{name} is [{' '.join(names)}], but its shape is {shape}")
        for axis, size in zip(names, shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise ValueError(
                    f"{owner}.{name} has {size} along '{axis}', {set_by[axis]} has {sizes[axis]}"
                )
            set_by.setdefault(axis, f"{owner}.{name}")
    return sizes


def _shapes(record: Any, owner: str) -> list[tuple[str, str, tuple[str, ...], tuple[int, ...]]]:
    found = []
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if value is None:
            continue
        if "axes" in field.metadata:
            shape = value.shape if isinstance(value, np.ndarray) else (len(value),)
            found.append((owner, field.name, field.metadata["axes"], shape))
        elif dataclasses.is_dataclass(value):
            found += _shapes(value, f"{owner}.{field.name}")
    return found
