"""The model's own prediction, and how far from it every point of the stream is, by KL.

The last point meets the vocabulary once. What KL needs of it, an average of the unembedding's
columns, is small; and with it no other point has to meet the vocabulary a second time.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from resid.model import Model
from resid.unembed import (
    BLOCK_ROWS,
    BLOCK_VOCAB,
    Decoded,
    Tracked,
    check_top,
    decode_rows,
    ids_by_row,
    joined,
    read,
)

# So few rows that a product adds them up one entry after the other.
_FEW_ROWS = 32


@dataclass(frozen=True)
class Final:
    """The model's own prediction at every position, reduced to what KL needs of it."""

    mean_unembedding: torch.Tensor
    """[pos, d_model] the unembedding's columns, averaged with the predicted probabilities."""
    mean_bias: torch.Tensor | None
    """[pos] the unembedding's bias, averaged likewise."""
    negative_entropy: torch.Tensor
    """[pos] sum of p log p, nats."""
    error: float | None
    """Largest absolute difference from the reference logits, where those were given."""
    error_at: int
    """The position of that difference."""
    largest_logit: float
    """Largest absolute logit."""


def predict(
    model: Model,
    stream: torch.Tensor,
    reference: torch.Tensor | None = None,
    *,
    block_rows: int = BLOCK_ROWS,
    block_vocab: int = BLOCK_VOCAB,
) -> Final:
    """The prediction of the last point of the stream, and how far it is from the model's own.

    Args:
        model: whose ln_final and unembedding to use.
        stream: [pos, d_model] raw output of the last block.
        reference: [pos, d_vocab] the model's own logits, to measure the error against.
        block_rows: rows at a time.
        block_vocab: vocabulary entries at a time.
    """
    _, final = decode_last(
        model, stream, 1, reference=reference, block_rows=block_rows, block_vocab=block_vocab
    )
    return final


def decode_last(
    model: Model,
    stream: torch.Tensor,
    top: int,
    tracked: Tracked = (),
    *,
    reference: torch.Tensor | None = None,
    block_rows: int = BLOCK_ROWS,
    block_vocab: int = BLOCK_VOCAB,
) -> tuple[Decoded, Final]:
    """What `decode` and `predict` say of the last point, in one pass over the vocabulary.

    The arguments are theirs.
    """
    check_top(model, top)
    ids = ids_by_row(tracked, stream)
    decoded, parts = [], []
    for start in range(0, len(stream), block_rows):
        rows = slice(start, start + block_rows)
        normed = read(model, stream[rows])
        own = None if reference is None else reference[rows]
        part = _FinalSums(model, normed, own, start)
        decoded.append(decode_rows(model, normed, top, ids[rows], block_vocab, part))
        parts.append(part.final(decoded[-1]))
    worst = max(parts, key=_badness)
    biases = [part.mean_bias for part in parts if part.mean_bias is not None]
    return joined(decoded), Final(
        mean_unembedding=torch.cat([part.mean_unembedding for part in parts]),
        mean_bias=torch.cat(biases) if biases else None,
        negative_entropy=torch.cat([part.negative_entropy for part in parts]),
        error=worst.error,
        error_at=worst.error_at,
        largest_logit=max(part.largest_logit for part in parts),
    )


def divergence(
    model: Model,
    stream: torch.Tensor,
    decoded: Decoded,
    final: Final,
    *,
    block_rows: int = BLOCK_ROWS,
) -> torch.Tensor:
    """[row] KL(final || row) in nats, without a second pass over the vocabulary; never below 0.

    With p the final distribution, KL = sum p log p - sum p (logit - logsumexp). The logits are
    linear in the normed row, so that sum p logit = row . mean_unembedding. In float64, because the
    terms are much larger than their difference.

    Args:
        model: as for `decode`.
        stream: [row, d_model] as for `decode`; row i lies at position i modulo the positions of
            `final`.
        decoded: what `decode` said of it.
        final: what `predict` said of the last point.
        block_rows: rows at a time.
    """
    parts = []
    for start in range(0, len(stream), block_rows):
        normed = read(model, stream[start : start + block_rows]).double()
        rows = torch.arange(start, start + len(normed), device=normed.device)
        at = rows % len(final.negative_entropy)
        expected = (normed * final.mean_unembedding[at].double()).sum(1)
        if final.mean_bias is not None:
            expected += final.mean_bias[at].double()
        kl = final.negative_entropy[at] + decoded.logsumexp[rows] - expected
        parts.append(kl.clamp(min=0))  # Rounding can leave equal distributions at -1e-7.
    return torch.cat(parts)


def divergence_table(
    model: Model, stream: torch.Tensor, decoded: Decoded, final: Final
) -> torch.Tensor:
    """[row, pos] KL(final || row) in nats, of every row at every position of `final`.

    As `divergence`, for rows that belong to no position.

    Args:
        model: as for `decode`.
        stream: [row, d_model] as for `decode`.
        decoded: what `decode` said of it.
        final: what `predict` said of the last point.
    """
    expected = read(model, stream).double() @ final.mean_unembedding.double().T
    if final.mean_bias is not None:
        expected += final.mean_bias.double()
    kl = final.negative_entropy + decoded.logsumexp[:, None] - expected
    return kl.clamp(min=0)


def _badness(part: Final) -> float:
    """The error for comparing; one that is not a number is worse than any that is."""
    error = part.error if part.error is not None else 0.0
    return float("inf") if error != error else error


class _FinalSums:
    """Beside what `decode_rows` keeps: the unembedding's average, and the error of the logits."""

    def __init__(
        self, model: Model, normed: torch.Tensor, reference: torch.Tensor | None, first: int
    ) -> None:
        self.bias, self.reference, self.first_position = model.b_U, reference, first
        # A long row of the stream will meet the rounding of this average. What all columns have in
        # common, in GPT-2 most of a logit, is therefore left out of the sums and put back exactly;
        # and where there are so few rows that products are not summed in pieces, float64 it is.
        self.common = model.W_U.T[:BLOCK_VOCAB].mean(0, dtype=normed.dtype)
        self.dtype = torch.float64 if len(normed) <= _FEW_ROWS else normed.dtype
        self.mean = torch.zeros_like(normed, dtype=self.dtype)
        self.mean_bias = normed.new_zeros(len(normed), dtype=torch.float64)
        self.error, self.largest = normed.new_zeros(len(normed)), 0.0

    def compare(self, first: int, logits: torch.Tensor, maximum: torch.Tensor) -> None:
        """Look at a block of logits [row, vocab] whose largest are `maximum` [row]."""
        size = torch.maximum(maximum, -logits.amin(1)).max()
        self.largest = max(self.largest, float(size))
        if self.reference is not None:
            own = self.reference[:, first : first + logits.shape[1]].to(logits.dtype)
            difference = torch.linalg.vector_norm(logits - own, torch.inf, dim=1)
            self.error = torch.maximum(self.error, difference)

    def add(
        self, first: int, block: torch.Tensor, powers: torch.Tensor, factor: torch.Tensor
    ) -> None:
        """Take in a block's exponentials [row, vocab]; `factor` [row] rescales the sums so far."""
        factor, powers = factor.to(self.dtype), powers.to(self.dtype)
        self.mean.mul_(factor[:, None]).addmm_(powers, (block - self.common).to(self.dtype))
        if self.bias is not None:
            part = self.bias[first : first + powers.shape[1]].double()
            self.mean_bias = self.mean_bias * factor + powers.double() @ part

    def divide(self, total: torch.Tensor) -> None:
        """Turn sums into averages."""
        self.mean = self.common.double() + self.mean.double() / total[:, None].double()
        self.mean_bias /= total

    def final(self, decoded: Decoded) -> Final:
        """The record, once `decoded` is known."""
        worst = int(self.error.argmax())
        return Final(
            mean_unembedding=self.mean,
            mean_bias=None if self.bias is None else self.mean_bias,
            negative_entropy=-decoded.entropy,
            error=None if self.reference is None else float(self.error[worst]),
            error_at=self.first_position + worst,
            largest_logit=self.largest,
        )
