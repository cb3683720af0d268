r"""How a token is shown, byte-exactly, everywhere; and how text becomes ids.

Three spellings of one token, all from the same escapes:

* *display*, in JSON, CSV and Python: the text itself, `` Paris``;
* *quoted*, in the terminal: ``" Paris"``, so that every space can be seen and the token copied
  into ``--target " Paris"``;
* *marked*, in figures, where quotes would crowd: ``␣Paris``.

What cannot be printed becomes an escape: ``\n``, ``\t``, ``\r``, ``\x1b`` for a control character
or a byte that is not UTF-8 by itself, ``\u200f`` for any other code point without a picture. A
backslash stays as it is, except where it would read as one of these escapes, or stands in front of
one: then it is doubled.
So different tokens never look the same. An id without a token is shown as ``<id 50258>``.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from resid.errors import ResidError, first_line

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# What Python calls printable and no font draws: joiners, fillers, variation selectors.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# A backslash in front of any of these would read as an escape of ours.
_READS_AS_ESCAPE = re.compile(
    r"\\(?=[nrt\\]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})", re.IGNORECASE
)


def escape_text(text: str) -> str:
    """The text with everything that a terminal or a font would not show replaced by escapes."""
    shown = [
        character if _has_picture(character, first=i == 0) else _escape_character(character)
        for i, character in enumerate(text)
    ]
    for i in range(len(text) - 1):
        escape_follows = shown[i + 1] != text[i + 1]
        if text[i] == "\\" and (escape_follows or _READS_AS_ESCAPE.match(text, i)):
            shown[i] = r"\\"
    return "".join(shown)


def _has_picture(character: str, first: bool) -> bool:
    # A combining sign with nothing before it would sit on whatever stands in front of the token.
    combines = unicodedata.category(character).startswith("M")
    return character.isprintable() and not _INVISIBLE.match(character) and not (first and combines)


def escape_bytes(piece: bytes) -> str:
    """The token's bytes as text; bytes that are not UTF-8 by themselves appear as escapes."""
    # surrogateescape maps an undecodable byte b to U+DC00 + b, which UTF-8 itself cannot contain.
    return escape_text(piece.decode("utf-8", errors="surrogateescape"))


def quote(display: str) -> str:
    """The display string between double quotes, as one would type it after ``--target``."""
    return f'"{display}"'


def mark_spaces(display: str) -> str:
    """The display string with a visible sign for every space, for figures."""
    # A backslash in front of the escape that a real ␣ becomes is doubled, as in `escape_text`.
    display = display.replace("\\␣", "\\\\␣").replace("␣", r"\u2423")
    return display.replace(" ", "␣")


def _escape_character(character: str) -> str:
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's spelling of bytes as printable characters, read backwards.

    Source: `bytes_to_unicode` of OpenAI's GPT-2 encoder: printable Latin-1 stands for itself, the
    other bytes for the code points from 256 on, in order.
    """
    itself = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(itself)]
    return {chr(b): b for b in itself} | {chr(256 + i): b for i, b in enumerate(others)}


_BYTE_OF = _byte_alphabet()


class Vocabulary:
    """The tokens of one model: display strings of ids, and ids of text.

    Built without a tokenizer it still works for ids: every token is then shown as ``<id 42>``.
    """

    def __init__(self, tokenizer: Any | None, absent: str = "the model has no tokenizer") -> None:
        """Wrap a Hugging Face tokenizer.

        Args:
            tokenizer: the tokenizer, never changed; or None.
            absent: why there is none, for the error of whoever asks for text.
        """
        self.tokenizer = tokenizer
        self._absent = absent
        self._shown: dict[int, str] = {}
        backend = getattr(tokenizer, "backend_tokenizer", None)
        self._byte_level = "ByteLevel" in repr(getattr(backend, "decoder", None)) or hasattr(
            tokenizer, "byte_decoder"
        )
        self._added = set(tokenizer.get_added_vocab().values()) if tokenizer is not None else set()

    def show(self, token_id: int) -> str:
        """The display string of one id."""
        if token_id not in self._shown:
            self._shown[token_id] = self._show(token_id)
        return self._shown[token_id]

    def show_all(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The display strings of several ids."""
        return tuple(self.show(int(i)) for i in ids)

    def _show(self, token_id: int) -> str:
        token = None
        if self.tokenizer is not None and (
            0 <= token_id < len(self.tokenizer) or token_id in self._ids_beyond
        ):
            token = self.tokenizer.convert_ids_to_tokens(token_id)
        if token is None:
            return f"<id {token_id}>"
        spelled_in_bytes = self._byte_level and token_id not in self._added
        if spelled_in_bytes and all(character in _BYTE_OF for character in token):
            return escape_bytes(bytes(_BYTE_OF[character] for character in token))
        return escape_text(token)

    def added(self) -> tuple[str, ...]:
        """The texts of the tokens that the tokenizer looks for before all else, as special ones."""
        return () if self.tokenizer is None else tuple(self.tokenizer.get_added_vocab())

    @cached_property
    def _ids_beyond(self) -> set[int]:
        """Ids that are as large as the number of tokens or larger: others have been left out."""
        tokenizer: Any = self.tokenizer
        return {i for i in tokenizer.get_vocab().values() if i >= len(tokenizer)}

    def encode(self, text: str, bos: bool = False) -> list[int]:
        """The ids of a prompt, unchanged and unstripped, without special tokens of any kind.

        Args:
            text: the prompt.
            bos: put exactly one beginning-of-sequence token in front.

        Raises:
            ResidError: there is no tokenizer or it fails, the text is not valid Unicode, or `bos`
                is asked for and the tokenizer has no such token.
        """
        tokenizer = self._need_tokenizer()
        check_unicode(text, "the prompt")
        ids = _encode(tokenizer, text)
        if bos:
            if tokenizer.bos_token_id is None:
                raise ResidError("the tokenizer has no beginning-of-sequence token for --bos")
            ids = [int(tokenizer.bos_token_id), *ids]
        return ids

    def id_of(self, token: str | int, d_vocab: int, what: str = "the target") -> int:
        """The id of one token given as its text, as ``id:42``, or as an id.

        Raises:
            ResidError: the text is not one token (its pieces are listed), or the id is not in the
                vocabulary.
        """
        if not isinstance(token, str):
            token_id = int(token)
        elif re.fullmatch("id:[0-9]+", token):
            digits = token.removeprefix("id:").lstrip("0") or "0"
            if len(digits) > 18:  # Python makes no number of thousands of them.
                raise ResidError(
                    f"{what} is an id of {len(digits)} digits; the vocabulary has ids 0 to "
                    f"{d_vocab - 1}"
                )
            token_id = int(digits)
        else:
            # A tokenizer may hold tokens that were added to it and not to the model.
            token_id = self._id_of_text(token, what)
        if not 0 <= token_id < d_vocab:
            raise ResidError(f"{what} is id {token_id}; the vocabulary has ids 0 to {d_vocab - 1}")
        return token_id

    def _id_of_text(self, text: str, what: str) -> int:
        tokenizer = self._need_tokenizer(f"; give {what} by its id, for example id:42")
        check_unicode(text, what)
        ids = _encode(tokenizer, text)
        if len(ids) == 1:
            return ids[0]
        if not ids:
            raise ResidError(f"{what} is empty; give the text of one token")
        pieces = ", ".join(f"{quote(self.show(i))} (id:{i})" for i in ids[:8])
        more = f" and {len(ids) - 8} more" if len(ids) > 8 else ""
        hint = ""
        if not text.startswith(" "):
            spaced = _encode(tokenizer, " " + text)
            if len(spaced) == 1:
                hint = f"\nwith a leading space it is one: {quote(' ' + text)}"
        raise ResidError(
            f"{what} {quote(escape_text(text))} is {len(ids)} tokens, not one: {pieces}{more}{hint}"
        )

    def _need_tokenizer(self, instead: str = "; give ids in place of text") -> Any:
        if self.tokenizer is None:
            raise ResidError(self._absent + instead)
        return self.tokenizer


def _encode(tokenizer: Any, text: str) -> list[int]:
    """The ids of a text, without special tokens.

    Raises:
        ResidError: the tokenizer fails on it.
    """
    try:
        # Its own warning about length is about its notion of a limit, not the model's.
        ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return [int(i) for i in ids]
    except BaseException as error:
        # What is wrong with a tokenizer's files may show only now. Its library is written in Rust,
        # and what ends that in a panic is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ResidError(
            f"the tokenizer fails on {quote(escape_text(text[:40]))}: {first_line(error)}\n"
            "something is wrong with its files; give token ids in place of text"
        ) from None


def check_unicode(text: str, what: str) -> None:
    """Refuse text that holds bytes which were not UTF-8 (Python reads those as lone surrogates)."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        place = f"it has {escape_text(text[error.start])} at character {error.start}"
        encoding = sys.getfilesystemencoding()
        if encoding != "utf-8":
            # The bytes may well be UTF-8, but Python was told to read them as something else.
            raise ResidError(
                f"{what} cannot be read in the locale's encoding, {encoding}: {place}\n"
                "set PYTHONUTF8=1, or a locale such as LC_ALL=C.UTF-8"
            ) from None
        raise ResidError(f"{what} is not valid UTF-8: {place}") from None


def check_ids(ids: Sequence[int], n_embeddings: int, what: str = "the prompt") -> None:
    """Refuse ids for which the model has no embedding, naming the first."""
    for position, token_id in enumerate(ids):
        if not 0 <= token_id < n_embeddings:
            raise ResidError(
                f"{what} has id {token_id} at position {position}; "
                f"the model embeds ids 0 to {n_embeddings - 1}"
            )
