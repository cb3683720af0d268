"""Statistics that can be taken apart and put together: merging loses no bit, in any order.

What is summed are whole numbers: counts, and floats as whole multiples of powers of two. Nothing
here needs torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from resid.errors import ResidError

Array = npt.NDArray[Any]
Arrays = dict[str, Array]

# A sum's digits to base 2 ** 32, from 2 ** 128 down to 2 ** -96: every float64 between is split
# without rounding. Each digit has 31 bits to spare, for as many terms.
_DIGIT = 32
_HIGHEST, _DIGITS = 3, 7
# Of a document: its square is added up too.
_LARGEST = 2.0 ** (_DIGIT * (_HIGHEST + 1) / 2)


class ExactSums:
    """Sums of float64 numbers, exact to 2 ** -96 whatever their order and size.

    Attributes:
        digits: [*shape, digit] most significant first.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self.digits = np.zeros((*shape, _DIGITS), dtype=np.int64)

    def add(self, terms: Array) -> None:
        """Add up terms [term, *shape], none larger than 2 ** 128."""
        rest = np.array(terms, dtype=np.float64)
        for i in range(_DIGITS):
            unit = 2.0 ** (_DIGIT * (_HIGHEST - i))
            # Dividing by a power of two and taking away leading bits round nothing.
            digit = np.trunc(rest / unit)
            rest -= digit * unit
            self.digits[..., i] += digit.astype(np.int64).sum(0)

    def exact(self) -> Array:
        """[*shape] the sums as fractions."""
        found = np.empty(self.digits.shape[:-1], dtype=object)
        unit = Fraction(2) ** (_DIGIT * (_HIGHEST - _DIGITS + 1))
        for place in np.ndindex(found.shape):
            whole = 0
            for digit in self.digits[place]:
                whole = (whole << _DIGIT) + int(digit)
            found[place] = whole * unit
        return found


class Counts:
    """Whole numbers that are counted up.

    Attributes:
        counts: [*shape]
    """

    def __init__(self, *shape: int) -> None:
        self.counts = np.zeros(shape, dtype=np.int64)

    def arrays(self) -> Arrays:
        """All of it, as arrays."""
        return {"counts": self.counts}

    def add_arrays(self, arrays: Arrays) -> None:
        """Add what `arrays` of another, or of an earlier self, has returned."""
        self.counts += arrays["counts"]


class DocumentSums:
    """Means over tokens of several quantities, with the standard error by document.

    Tokens of one document resemble each other, so documents are what is drawn at random: for a mean
    R = sum of s / sum of n over documents d, SE^2 = D / (D - 1) x sum (s_d - R n_d)^2 / (sum n)^2,
    the linearised variance of a ratio (Cochran, Sampling Techniques, 3rd edition, chapter 6).
    Documents that are still being read are kept apart until `close`.

    Attributes:
        documents: closed, with at least one token here.
        tokens: of them.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.documents = 0
        self.tokens = 0
        self.squares = ExactSums(())  # of the documents' lengths
        self.sums = ExactSums((3, width))  # of s, s x s, s x n
        self.open: dict[int, Array] = {}  # n, then s

    def add(self, document: Array, values: Array) -> None:
        """Take in tokens: their documents [row] and what was measured [quantity, row].

        Raises:
            ResidError: the sum over a document is so large that its square would not be exact.
        """
        if not len(document):
            return
        known, place = np.unique(document, return_inverse=True)
        sums = [np.bincount(place, minlength=len(known))]
        sums += [np.bincount(place, weights=row, minlength=len(known)) for row in values]
        for number, row in zip(known.tolist(), np.stack(sums, 1), strict=True):
            row = self.open[number] + row if number in self.open else row
            if np.abs(row).max() > _LARGEST:
                raise ResidError(
                    f"the numbers of document {number} add up to {np.abs(row).max():.1e}: beyond "
                    f"{_LARGEST:.1e} their square is not exact"
                )
            self.open[number] = row

    def close(self) -> None:
        """All documents have been read to their ends."""
        if not self.open:
            return
        rows = np.stack([self.open[number] for number in sorted(self.open)])
        n, s = rows[:, :1], rows[:, 1:]
        self.documents += len(rows)
        self.tokens += int(n.sum())
        self.squares.add((n * n)[:, 0])
        self.sums.add(np.stack([s, s * s, s * n], 1))
        self.open = {}

    def mean(self) -> Array:
        """[quantity] the mean over tokens, NaN where there is none."""
        if not self.tokens:
            return np.full(self.width, np.nan)
        return np.array([float(s / self.tokens) for s in self.sums.exact()[0]])

    def standard_error(self) -> Array:
        """[quantity] of the mean, by document; NaN for fewer than two documents."""
        if self.documents < 2:
            return np.full(self.width, np.nan)
        squares, found = self.squares.exact()[()], []
        for s, ss, sn in self.sums.exact().T:
            ratio = s / self.tokens
            spread = ss - 2 * ratio * sn + ratio * ratio * squares
            variance = spread * self.documents / (self.documents - 1) / self.tokens**2
            found.append(math.sqrt(max(float(variance), 0.0)))
        return np.array(found)

    def arrays(self) -> Arrays:
        """All of it, as arrays."""
        numbers = sorted(self.open)
        rows = [self.open[number] for number in numbers]
        return {
            "counts": np.array([self.documents, self.tokens]),
            "squares": self.squares.digits,
            "sums": self.sums.digits,
            "open": np.array(numbers, dtype=np.int64),
            "open_sums": np.array(rows, dtype=np.float64).reshape(len(rows), 1 + self.width),
        }

    def add_arrays(self, arrays: Arrays) -> None:
        """Add what `arrays` of another, or of an earlier self, has returned."""
        documents, tokens = arrays["counts"].tolist()
        if documents > tokens:
            raise ValueError("more documents than tokens")
        rows = arrays["open_sums"]
        if not (np.abs(rows) <= _LARGEST).all() or (rows[:, 0] % 1).any():
            raise ValueError("sums that no text gives")
        self.documents += documents
        self.tokens += tokens
        self.squares.digits += arrays["squares"]
        self.sums.digits += arrays["sums"]
        for number, row in zip(arrays["open"].tolist(), rows, strict=True):
            self.open[number] = row.copy()


BINS_PER_OCTAVE = 64
"""Bins of a `LogHistogram` from one power of two to the next."""
_LEAST, _MOST = -24, 24
RESOLUTION = 2 ** (1 / BINS_PER_OCTAVE) - 1
"""The width of a bin, relative to where it begins."""


class LogHistogram(Counts):
    """Counts of positive numbers in bins of equal ratio, for quantiles.

    Attributes:
        counts: [quantity, bin]; the first and the last bin hold what is below and above all others.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width, (_MOST - _LEAST) * BINS_PER_OCTAVE + 2)

    def add(self, values: Array) -> None:
        """Count numbers [quantity, row], none negative."""
        with np.errstate(divide="ignore"):
            at = np.floor((np.log2(values) - _LEAST) * BINS_PER_OCTAVE) + 1
        at = np.clip(at, 0, self.counts.shape[1] - 1).astype(np.int64)
        for counts, row in zip(self.counts, at, strict=True):
            counts += np.bincount(row, minlength=len(counts))

    def quantiles(self, shares: Sequence[float]) -> Array:
        """[quantity, share] the numbers below which these shares lie, to a bin's width.

        Within a bin, numbers are taken as evenly spread over its logarithm. NaN where there are
        none.
        """
        found = np.full((len(self.counts), len(shares)), np.nan)
        for i, counts in enumerate(self.counts):
            below = np.concatenate([[0], np.cumsum(counts)])
            for j, share in enumerate(shares if below[-1] else ()):
                wanted = share * below[-1]
                at = min(int(np.searchsorted(below, wanted, side="left")) - 1, len(counts) - 1)
                at = max(at, int(np.flatnonzero(counts)[0]))
                part = (wanted - below[at]) / counts[at] if counts[at] else 0.0
                found[i, j] = 2.0 ** ((at - 1 + part) / BINS_PER_OCTAVE + _LEAST)
        return found
