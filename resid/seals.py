"""A seal: the SHA-256 of a file, kept in the file itself, so that damage does not go unnoticed.

Neither JSON nor safetensors notices a number that has changed on a disk or on its way. What resid
writes to read it again therefore holds, under the name `seal`, the SHA-256 of all of its bytes,
with zeros in place of those of the seal.
"""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Iterable

NAME = "seal"
OPEN = "0" * 64
"""What stands in place of the seal until `sealed` has set it."""

# In JSON, or in JSON that is a string in JSON. Quotes in anybody's text have more backslashes.
_PLACE = re.compile(rb'(?<!\\)(\\?)"seal\1": ?\1"([0-9a-f]{64})\1"')


def find(content: bytes | mmap.mmap) -> tuple[int, int] | None:
    """Where the seal is, from its first byte to behind its last; None where there is none."""
    place = _PLACE.search(content)
    return None if place is None else place.span(2)


def sealed(content: bytes, rest: Iterable[bytes | memoryview] = ()) -> bytes:
    """The content, in which the seal is open, with its seal set; `rest` is what follows it."""
    place = find(content)
    if place is None:
        raise ValueError(f"the content has no {NAME}")
    begin, end = place
    return content[:begin] + _digest(content, begin, end, rest) + content[end:]


def is_whole(content: bytes | mmap.mmap) -> bool:
    """Whether content has a seal, and is what was sealed to the last bit."""
    place = find(content)
    return place is not None and _digest(content, *place) == content[slice(*place)]


def _digest(
    content: bytes | mmap.mmap, begin: int, end: int, rest: Iterable[bytes | memoryview] = ()
) -> bytes:
    with memoryview(content) as view, view[:begin] as before, view[end:] as behind:
        digest = hashlib.sha256(before)
        digest.update(OPEN.encode())
        digest.update(behind)
    for piece in rest:
        digest.update(piece)
    return digest.hexdigest().encode()
