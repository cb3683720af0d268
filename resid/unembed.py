"""ln_final and the unembedding, streamed over the vocabulary: no row of logits is ever kept whole.

Rows are vectors of the residual stream. They meet the vocabulary block by block, and of each block
only what a reading asks for survives: a running maximum and sum of exponentials, a running top-k,
counts for ranks, the sums behind entropy; and, to `resid.prediction`, those behind KL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from resid.errors import ResidError
from resid.model import Model
from resid.reductions import Exponentials, TopK

# Rows and vocabulary entries at a time: large enough for the full rate of a matrix product, small
# enough that a block of logits (8 MB) is still in the processor's cache when it is reduced.
BLOCK_ROWS = 2048
BLOCK_VOCAB = 1024

# The same ids for every row, or [row, tracked] others for each.
Tracked = Sequence[int] | torch.Tensor


@dataclass(frozen=True)
class Decoded:
    """What the vocabulary says of every row.

    Axes: row, k, and tracked (the tokens that were asked for).
    """

    top_ids: torch.Tensor
    """[row, k] the most probable tokens, best first; of equal logits the lower id first."""
    top_logprobs: torch.Tensor
    """[row, k] their log-probabilities, nats."""
    logsumexp: torch.Tensor
    """[row] of the logits."""
    entropy: torch.Tensor
    """[row] of the distribution, nats; never below 0."""
    tracked_logprobs: torch.Tensor
    """[row, tracked] log-probability, nats."""
    tracked_ranks: torch.Tensor
    """[row, tracked] 1 + the number of tokens with a strictly greater logit."""
    finite: torch.Tensor
    """[row] whether every logit of the row is finite; where not, nothing else means anything."""


class Witness(Protocol):
    """Who sees the blocks of logits go by, beside what is kept of every row."""

    def compare(self, first: int, logits: torch.Tensor, maximum: torch.Tensor) -> None:
        """Look at a block of logits [row, vocab] whose largest are `maximum` [row]."""

    def add(
        self, first: int, block: torch.Tensor, powers: torch.Tensor, factor: torch.Tensor
    ) -> None:
        """Take in a block's exponentials [row, vocab]; `factor` [row] rescales the sums so far.

        Args:
            first: id of the first token in the block.
            block: [vocab, d_model] its unembedding.
            powers: the exponentials, relative to the running maximum.
            factor: by which what came before has shrunk.
        """

    def divide(self, total: torch.Tensor) -> None:
        """Turn sums into averages: `total` [row] is the sum of all exponentials."""


def decode(
    model: Model,
    stream: torch.Tensor,
    top: int,
    tracked: Tracked = (),
    *,
    block_rows: int = BLOCK_ROWS,
    block_vocab: int = BLOCK_VOCAB,
) -> Decoded:
    """The vocabulary's view of every row of a stream.

    Exact to float32: the blocks change the order of sums, not what is summed.

    Args:
        model: whose ln_final and unembedding to use.
        stream: [row, d_model] raw vectors of the residual stream, ln_final not applied.
        top: how many tokens to keep a row, 1 to d_vocab.
        tracked: ids whose rank and log-probability to report: the same for all rows, or as a
            tensor [row, tracked] others for each.
        block_rows: rows at a time.
        block_vocab: vocabulary entries at a time.

    Raises:
        ResidError: `top` is out of range, or the stream has another width than the model.
    """
    check_top(model, top)
    ids = ids_by_row(tracked, stream)
    parts = []
    for start in range(0, len(stream), block_rows):
        rows = slice(start, start + block_rows)
        parts.append(decode_rows(model, read(model, stream[rows]), top, ids[rows], block_vocab))
    return joined(parts)


def check_top(model: Model, top: int) -> None:
    """Refuse a number of tokens that the vocabulary does not have."""
    if not 1 <= top <= model.d_vocab:
        raise ResidError(f"top is {top}; the vocabulary has {model.d_vocab} tokens, so 1 to that")


def ids_by_row(tracked: Tracked, stream: torch.Tensor) -> torch.Tensor:
    """[row, tracked] the ids to report on."""
    ids = torch.as_tensor(tracked, dtype=torch.long, device=stream.device)
    return ids if ids.dim() == 2 else ids.expand(len(stream), -1)


def read(model: Model, rows: torch.Tensor) -> torch.Tensor:
    """[row, d_model] the rows after ln_final, in float32 at least: reading never rounds to half."""
    if rows.shape[-1] != model.d_model:
        raise ResidError(
            f"the stream is {rows.shape[-1]} wide; {model.name} has d_model {model.d_model}"
        )
    return model.ln_final(rows.to(torch.promote_types(rows.dtype, torch.float32)))


def decode_rows(
    model: Model,
    normed: torch.Tensor,
    top: int,
    tracked: torch.Tensor,
    block_vocab: int,
    witness: Witness | None = None,
) -> Decoded:
    """The vocabulary's view of a block of rows.

    Args:
        model: whose unembedding to use.
        normed: [row, d_model] the rows as `read` gives them.
        top: how many tokens to keep a row.
        tracked: [row, tracked] ids, as `ids_by_row` gives them.
        block_vocab: vocabulary entries at a time.
        witness: sees every block of logits too.
    """
    sums, best = Exponentials(normed), TopK(normed, top)
    wanted = _logits_of(model, normed, tracked)
    greater = torch.zeros_like(wanted, dtype=torch.long)
    for first, block, logits in _blocks(model, normed, block_vocab):
        for j in range(tracked.shape[1]):
            above = logits > wanted[:, j : j + 1]
            # Its own logit, rounded differently in this product, is not above itself.
            own = tracked[:, j] - first
            rows = ((own >= 0) & (own < logits.shape[1])).nonzero().squeeze(1)
            above[rows, own[rows]] = False
            greater[:, j] += above.sum(1)
        maximum = best.add(first, logits)
        if witness is not None:
            witness.compare(first, logits, maximum)
        factor = sums.add(logits, maximum, overwrite=witness is not None)
        if witness is not None:
            witness.add(first, block, logits, factor)  # By now their exponentials.
    if witness is not None:
        witness.divide(sums.total)
    logsumexp = sums.logsumexp
    return Decoded(
        top_ids=best.ids,
        top_logprobs=best.logits.double() - logsumexp[:, None],
        logsumexp=logsumexp,
        entropy=sums.entropy.clamp(min=0),  # Rounding can leave a certain row at -1e-7.
        tracked_logprobs=wanted.double() - logsumexp[:, None],
        tracked_ranks=1 + greater,
        finite=torch.isfinite(logsumexp) & torch.isfinite(sums.weighted),
    )


def _blocks(
    model: Model, normed: torch.Tensor, block_vocab: int
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """(first id, [vocab, d_model] weights, [row, vocab] logits) for block after block.

    The logits share one buffer: a block is gone when the next one comes.
    """
    weight, bias = model.W_U.T, model.b_U
    buffer = torch.empty(
        len(normed) * min(block_vocab, len(weight)), dtype=normed.dtype, device=normed.device
    )
    for first in range(0, len(weight), block_vocab):
        block = weight[first : first + block_vocab].to(normed.dtype)
        logits = buffer[: len(normed) * len(block)].view(len(normed), len(block))
        torch.mm(normed, block.T, out=logits)
        if bias is not None:
            logits += bias[first : first + len(block)].to(normed.dtype)
        yield first, block, logits


def _logits_of(model: Model, normed: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """[row, tracked] the logits of a few tokens of each row."""
    columns = [(normed * model.W_U.T[column].to(normed.dtype)).sum(1) for column in ids.T]
    logits = torch.stack(columns, 1) if columns else normed.new_empty(len(normed), 0)
    return logits if model.b_U is None else logits + model.b_U[ids].to(normed.dtype)


def joined(parts: Sequence[Decoded]) -> Decoded:
    """The rows of several, one after the other."""
    names = Decoded.__dataclass_fields__
    return Decoded(**{name: torch.cat([getattr(part, name) for part in parts]) for name in names})


def logprobs_of(
    model: Model,
    stream: torch.Tensor,
    decoded: Decoded,
    ids: torch.Tensor,
    *,
    block_positions: int = BLOCK_ROWS,
) -> torch.Tensor:
    """[row, few] log-probabilities in nats of a few tokens, other ones at every position.

    Only the columns of these tokens are read: what the rest of the vocabulary adds to a
    probability is in the logsumexp that `decode` has returned.

    Args:
        model: as for `decode`.
        stream: [row, d_model] as for `decode`; row i lies at position i modulo the positions of
            `ids`.
        decoded: what `decode` said of it.
        ids: [pos, few] the tokens.
        block_positions: positions whose columns are held at a time.
    """
    n_pos, few = ids.shape
    normed = read(model, stream).view(-1, n_pos, model.d_model).transpose(0, 1)
    parts = []
    for start in range(0, n_pos, block_positions):
        at = slice(start, start + block_positions)
        columns = model.W_U.T[ids[at]].to(normed.dtype)  # [pos, few, d_model]
        logits = torch.bmm(normed[at], columns.transpose(1, 2))  # [pos, point, few]
        parts.append(logits if model.b_U is None else logits + model.b_U[ids[at]][:, None])
    logits = torch.cat(parts).transpose(0, 1).reshape(-1, few)
    logprobs = logits.double() - decoded.logsumexp[:, None]
    return logprobs.clamp(max=0)  # Rounding can leave a certain token at 1e-7.


def top_tokens(
    model: Model,
    rows: torch.Tensor,
    top: int,
    *,
    block_rows: int = BLOCK_ROWS,
    block_vocab: int = BLOCK_VOCAB,
) -> tuple[torch.Tensor, torch.Tensor]:
    """([row, k] scores, [row, k] ids) of the tokens on which rows project most, best first.

    The rows go straight through W_U: no ln_final, no bias. A row whose largest score is not finite
    has scores of NaN and ids of -1: nothing is known to be best.
    """
    parts = [
        _top_tokens(model, rows[start : start + block_rows], top, block_vocab)
        for start in range(0, len(rows), block_rows)
    ]
    scores, ids = zip(*parts, strict=True)
    return torch.cat(scores), torch.cat(ids)


def _top_tokens(
    model: Model, rows: torch.Tensor, top: int, block_vocab: int
) -> tuple[torch.Tensor, torch.Tensor]:
    best = TopK(rows, top)
    weight = model.W_U.T
    finite = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
    for first in range(0, len(weight), block_vocab):
        scores = rows @ weight[first : first + block_vocab].to(rows.dtype).T
        finite &= best.add(first, scores).isfinite()
    lost = ~finite[:, None]
    return best.logits.masked_fill(lost, torch.nan), best.ids.masked_fill(lost, -1)
