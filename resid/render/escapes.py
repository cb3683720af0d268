r"""What a medium cannot show becomes an escape, and what does not fit is cut.

Display strings are already free of control characters (see `resid.tokens`); but an output in
latin-1 has no ``→``, and a font has no ``日``. They become escapes of the same kind: ``\u2192``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# An escape is never cut in its middle: what is left of it would read as something else.
_UNIT = re.compile(r"\\(?:U[0-9a-f]{8}|u[0-9a-f]{4}|x[0-9a-f]{2}|.)|.", re.DOTALL)


def escape_unless(shown: Callable[[str], bool], text: str) -> str:
    """The text with every character that is not shown replaced by its escape."""
    return "".join(character if shown(character) else _escape(ord(character)) for character in text)


def cut(text: str, room: float, measure: Callable[[str], float], mark: str = "…") -> str:
    """The text, or as much of its beginning as leaves room for the mark that says so.

    Args:
        text: what to show.
        room: how much space there is, in the unit of `measure`.
        measure: the space that a text takes.
        mark: stands for what was cut off.
    """
    if measure(text) <= room:
        return text
    kept = ""
    for unit in _UNIT.findall(text):
        if measure(kept + unit + mark) > room:
            break
        kept += unit
    return kept + mark


def as_utf8(text: str) -> str:
    """The text as any UTF-8 file can hold it.

    A folder may have a name that is not UTF-8; it appears with escapes, which JSON reads back.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _escape(code: int) -> str:
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
