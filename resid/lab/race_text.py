"""What the racers read: a text as bytes, its end held out."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resid.errors import ResidError
from resid.results import Ints

SAMPLE = "sample"
"""The name of the text that is written here."""
_SAMPLE_BYTES = 400_000
_SAMPLE_SEED = 1
_HELD_OUT = 0.1
_LEAST_BYTES = 2_000


@dataclass(frozen=True)
class Text:
    """A text in ids, one a byte."""

    name: str
    """The file's name, or "sample"."""
    sha256: str
    """Of its bytes."""
    alphabet: bytes
    """The distinct bytes, in order: id i stands for byte i of these."""
    train: Ints
    """[byte] ids of the part that is learnt from."""
    held_out: Ints
    """[byte] ids of the end, which is only ever predicted."""

    @property
    def d_vocab(self) -> int:
        """How many different bytes there are."""
        return len(self.alphabet)

    def count_losses(self) -> tuple[float, float]:
        """Nats a byte on the held-out part of two predictors that only count.

        The first knows how often each byte is, the second how often it follows the one before; both
        counted on the training part, with one added to every count.
        """
        n = self.d_vocab
        single = np.bincount(self.train, minlength=n) + 1.0
        pairs = np.bincount(self.train[:-1] * n + self.train[1:], minlength=n * n) + 1.0
        following = pairs.reshape(n, n)
        following /= following.sum(1, keepdims=True)
        of = self.held_out
        unigram = -np.log(single / single.sum())[of[1:]].mean()
        return float(unigram), float(-np.log(following)[of[:-1], of[1:]].mean())


def read_text(file: Path | str | None, context: int) -> Text:
    """A text to race on.

    Args:
        file: any file, read as bytes; None: the sample.
        context: how many bytes a model sees at once.

    Raises:
        ResidError: there is no such file, or too little in it.
    """
    if file is None:
        return _split(SAMPLE, write_sample(_SAMPLE_BYTES).encode("ascii"))
    path = Path(file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ResidError(f"cannot read '{path}': {error.strerror or error}") from None
    least = max(_LEAST_BYTES, round(4 * context / _HELD_OUT))
    if len(content) < least:
        raise ResidError(
            f"'{path}' has {len(content):,} bytes; a race needs at least {least:,}, of which the "
            "last tenth is held out"
        )
    return _split(path.name, content)


def _split(name: str, content: bytes) -> Text:
    alphabet, ids = np.unique(np.frombuffer(content, dtype=np.uint8), return_inverse=True)
    ids = ids.astype(np.int64)
    end = len(ids) - round(_HELD_OUT * len(ids))
    digest = hashlib.sha256(content).hexdigest()
    return Text(name, digest, alphabet.tobytes(), ids[:end], ids[end:])


def _words(text: str) -> list[str]:
    return text.split()


_PEOPLE = _words("Ada Ben Cleo Dan Eva Finn Gwen Hugo Iris Jon Kim Leo Mia Ned Olga Paul")
_PLACES = _words("attic barn cellar garden harbour kitchen library market mill office park tower")
_THINGS = _words("apple bell book candle drum hat key lamp letter map pear ring rope shell")
_COLOURS = _words("black blue brown green grey pink red white yellow")
_NUMBERS = _words("zero one two three four five six seven eight nine ten eleven twelve")
_DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")


def write_sample(n_bytes: int) -> str:
    """A text of short scenes, made from word lists alone and the same on every machine.

    Each scene can be foretold in parts: how words are spelt, what a sentence is like, and what only
    those know who look back (who carried which thing where) or compute (small sums, the day after).

    Args:
        n_bytes: its length; the last scene is cut.
    """
    # Only random() is promised to give the same numbers in every version of Python.
    draw = random.Random(_SAMPLE_SEED).random
    scenes: list[str] = []
    length = 0
    while length < n_bytes:
        scene = "".join(_scene(draw))
        scenes.append(scene)
        length += len(scene)
    return "".join(scenes)[:n_bytes]


def _scene(draw: Callable[[], float]) -> Iterator[str]:
    def pick(words: list[str]) -> str:
        return words[int(draw() * len(words))]

    kind = int(draw() * 4)
    who, other = pick(_PEOPLE), pick(_PEOPLE)
    where, colour, thing = pick(_PLACES), pick(_COLOURS), pick(_THINGS)
    if kind == 0:
        yield f"{who} found a {colour} {thing} in the {where}. "
        yield f"{who} gave the {thing} to {other}. "
        yield f"So the {colour} {thing} from the {where} is with {other} now.\n"
    elif kind == 1:
        yield f"{who} went to the {where}, and {other} to the {pick(_PLACES)}. "
        yield f"Where is {who}? In the {where}.\n"
    elif kind == 2:
        first, second = int(draw() * 7), int(draw() * 6)
        yield f"{who} has {_NUMBERS[first]}, {other} has {_NUMBERS[second]}: "
        yield f"{_NUMBERS[first + second]} together.\n"
    else:
        day = int(draw() * 7)
        yield f"It was {_DAYS[day]}. The day after, on {_DAYS[(day + 1) % 7]}, "
        yield f"{who} sold the {colour} {thing} at the {where}.\n"
