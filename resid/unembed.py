"""ln_final and the unembedding, streamed over the vocabulary: no row of logits is ever kept whole.

Rows are vectors of the residual stream. They meet the vocabulary block by block, and of each block
only what a reading asks for survives: a running maximum and sum of exponentials, a running top-k,
counts for ranks, the sums behind entropy and KL.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from resid.errors import ResidError
from resid.model import Model

# Rows and vocabulary entries at a time: large enough for the full rate of a matrix product, small
# enough that a block of logits (8 MB) is still in the processor's cache when it is reduced.
BLOCK_ROWS = 512
BLOCK_VOCAB = 4096
# Sizes of the groups of neighbouring ids by which the top-k of a block is narrowed down.
_GROUPS = (64, 8, 1)
# Rows that are reduced at a time: few enough that 4,096 of their logits fit the caches next to the
# cores, many enough that handing the work to the cores costs nothing.
_REDUCE_ROWS = 128
_LOG2_E = math.log2(math.e)


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


def decode(
    model: Model,
    stream: torch.Tensor,
    top: int,
    tracked: Sequence[int] = (),
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
        tracked: ids whose rank and log-probability to report.
        block_rows: rows at a time.
        block_vocab: vocabulary entries at a time.

    Raises:
        ResidError: `top` is out of range, or the stream has another width than the model.
    """
    if not 1 <= top <= model.d_vocab:
        raise ResidError(f"top is {top}; the vocabulary has {model.d_vocab} tokens, so 1 to that")
    parts = [
        _decode_rows(
            model, _read(model, stream[start : start + block_rows]), top, tracked, block_vocab
        )
        for start in range(0, len(stream), block_rows)
    ]
    names = Decoded.__dataclass_fields__
    return Decoded(**{name: torch.cat([getattr(part, name) for part in parts]) for name in names})


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
        normed = _read(model, stream[start : start + block_rows]).double()
        rows = torch.arange(start, start + len(normed), device=normed.device)
        at = rows % len(final.negative_entropy)
        expected = (normed * final.mean_unembedding[at].double()).sum(1)
        if final.mean_bias is not None:
            expected += final.mean_bias[at].double()
        kl = final.negative_entropy[at] + decoded.logsumexp[rows] - expected
        parts.append(kl.clamp(min=0))  # Rounding can leave equal distributions at -1e-7.
    return torch.cat(parts)


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
    parts = []
    for start in range(0, len(stream), block_rows):
        normed = _read(model, stream[start : start + block_rows])
        own = None if reference is None else reference[start : start + block_rows]
        parts.append(_predict_rows(model, normed, own, block_vocab, start))
    worst = max(parts, key=_badness)
    return Final(
        mean_unembedding=torch.cat([part.mean_unembedding for part in parts]),
        mean_bias=(
            None
            if parts[0].mean_bias is None
            else torch.cat([part.mean_bias for part in parts if part.mean_bias is not None])
        ),
        negative_entropy=torch.cat([part.negative_entropy for part in parts]),
        error=worst.error,
        error_at=worst.error_at,
        largest_logit=max(part.largest_logit for part in parts),
    )


def top_tokens(
    model: Model, rows: torch.Tensor, top: int, *, block_vocab: int = BLOCK_VOCAB
) -> tuple[torch.Tensor, torch.Tensor]:
    """([row, k] scores, [row, k] ids) of the tokens on which rows project most, best first.

    The rows go straight through W_U: no ln_final, no bias.
    """
    best = _TopK(rows, top)
    weight = model.W_U.T
    for first in range(0, len(weight), block_vocab):
        best.add(first, rows @ weight[first : first + block_vocab].to(rows.dtype).T)
    return best.logits, best.ids


def _badness(part: Final) -> float:
    """The error for comparing; one that is not a number is worse than any that is."""
    error = part.error if part.error is not None else 0.0
    return float("inf") if error != error else error


def _read(model: Model, rows: torch.Tensor) -> torch.Tensor:
    """[row, d_model] the rows after ln_final, in float32 at least: reading never rounds to half."""
    if rows.shape[-1] != model.d_model:
        raise ResidError(
            f"the stream is {rows.shape[-1]} wide; {model.name} has d_model {model.d_model}"
        )
    return model.ln_final(rows.to(torch.promote_types(rows.dtype, torch.float32)))


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


class _Exponentials:
    """Running maximum, sum of exponentials and sum of exponentials times logits, by row.

    Kept relative to the running maximum, so that nothing overflows; when the maximum moves, the
    sums are rescaled (as in an online softmax).
    """

    def __init__(self, like: torch.Tensor) -> None:
        rows = len(like)
        self.maximum = like.new_full((rows,), -torch.inf)
        self.total = like.new_zeros(rows)
        self.weighted = like.new_zeros(rows)
        self._some_rows = _REDUCE_ROWS if like.device.type == "cpu" else rows

    def add(self, logits: torch.Tensor, block_maximum: torch.Tensor) -> torch.Tensor:
        """Take in a block; returns the factor [row] by which the sums so far were rescaled.

        Args:
            logits: [row, vocab] of the block; overwritten with exp(logit - running maximum).
            block_maximum: [row] of the block.
        """
        maximum = torch.maximum(self.maximum, block_maximum)
        shift = torch.where(self.maximum == -torch.inf, 0.0, self.maximum - maximum)
        factor = shift.exp()
        self.weighted = factor * (self.weighted + shift * self.total)
        self.total = factor * self.total
        self.maximum = maximum
        # A few rows at a time: the passes below then find their numbers in the nearest cache.
        few = torch.empty_like(logits[: self._some_rows])
        for start in range(0, len(logits), self._some_rows):
            rows = slice(start, start + self._some_rows)
            powers = logits[rows]
            relative = torch.sub(powers, maximum[rows, None], out=few[: len(powers)])
            # e^x as 2^(x log2(e)): on processors without Intel's library three times as fast.
            torch.mul(relative, _LOG2_E, out=powers).exp2_()
            self.total[rows] += powers.sum(1)
            self.weighted[rows] += relative.mul_(powers).sum(1)
        return factor

    @property
    def logsumexp(self) -> torch.Tensor:
        """[row] in float64."""
        return self.maximum.double() + self.total.double().log()

    @property
    def entropy(self) -> torch.Tensor:
        """[row] of the distribution, nats, in float64."""
        return self.total.double().log() - self.weighted.double() / self.total.double()


def _decode_rows(
    model: Model, normed: torch.Tensor, top: int, tracked: Sequence[int], block_vocab: int
) -> Decoded:
    sums, best = _Exponentials(normed), _TopK(normed, top)
    ids = torch.tensor(list(tracked), dtype=torch.long, device=normed.device)
    wanted = _logits_of(model, normed, ids)
    greater = torch.zeros_like(wanted, dtype=torch.long)
    for first, _, logits in _blocks(model, normed, block_vocab):
        for j, token_id in enumerate(tracked):
            above = logits > wanted[:, j : j + 1]
            if first <= token_id < first + logits.shape[1]:
                # Its own logit, rounded differently in this product, is not above itself.
                above[:, token_id - first] = False
            greater[:, j] += above.sum(1)
        sums.add(logits, best.add(first, logits))
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


class _TopK:
    """Running top-k by row; of equal logits the lower id wins, whatever the blocks."""

    def __init__(self, like: torch.Tensor, top: int) -> None:
        self.top = top
        self.logits = like.new_empty(len(like), 0)
        self.ids = torch.empty(len(like), 0, dtype=torch.long, device=like.device)

    def add(self, first: int, logits: torch.Tensor) -> torch.Tensor:
        """Take in a block that begins with id `first`; returns its maximum by row."""
        ragged = -logits.shape[1] % _GROUPS[0]
        if ragged:
            logits = torch.nn.functional.pad(logits, (0, ragged), value=-torch.inf)
        # The k largest of a pool lie in the k groups with the largest maxima.
        pool, narrowings, maximum = logits, [], None
        for size in _GROUPS:
            groups = pool.view(len(pool), -1, size)
            maxima = groups.amax(2)
            maximum = maxima.amax(1) if maximum is None else maximum
            chosen = _largest(maxima, self.top)
            narrowings.append((size, chosen))
            before = torch.arange(len(pool), device=pool.device)[:, None] * groups.shape[1]
            # Whole groups are copied, which is much faster than gathering number by number.
            pool = groups.flatten(0, 1).index_select(0, (before + chosen).flatten())
            pool = pool.view(len(logits), -1)
        # What is left are the block's own top-k. The way back through the groups gives their ids.
        at = torch.arange(pool.shape[1], device=pool.device).expand(len(pool), -1)
        for size, chosen in reversed(narrowings):
            at = chosen.gather(1, at // size) * size + at % size
        pool, ids = torch.cat([self.logits, pool], 1), torch.cat([self.ids, first + at], 1)
        ordered, order = pool.sort(dim=1, descending=True, stable=True)
        self.logits, self.ids = ordered[:, : self.top], ids.gather(1, order[:, : self.top])
        assert maximum is not None  # _GROUPS is not empty.
        return maximum


def _largest(values: torch.Tensor, k: int) -> torch.Tensor:
    """[row, k] where the k largest of each row are, from left to right; of equals the leftmost."""
    if k >= values.shape[1]:
        return torch.arange(values.shape[1], device=values.device).expand(len(values), -1)
    largest, at = values.topk(k + 1)
    if (largest[:, k - 1] == largest[:, k]).any():
        # Equal values at the edge, of which topk takes any: a stable sort, slower, takes the first.
        at = values.argsort(dim=1, descending=True, stable=True)
    return at[:, :k].sort(1).values


def _logits_of(model: Model, normed: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """[row, tracked] the logits of a few tokens."""
    logits = normed @ model.W_U.T[ids].to(normed.dtype).T
    return logits if model.b_U is None else logits + model.b_U[ids].to(normed.dtype)


def _predict_rows(
    model: Model,
    normed: torch.Tensor,
    reference: torch.Tensor | None,
    block_vocab: int,
    first_position: int,
) -> Final:
    sums = _Exponentials(normed)
    mean = torch.zeros_like(normed)
    bias, mean_bias = model.b_U, normed.new_zeros(len(normed))
    error = torch.zeros(len(normed), dtype=normed.dtype, device=normed.device)
    largest = 0.0
    for first, block, logits in _blocks(model, normed, block_vocab):
        width = logits.shape[1]
        smallest, maximum = torch.aminmax(logits, dim=1)
        largest = max(largest, float(torch.maximum(maximum, -smallest).max()))
        if reference is not None:
            own = reference[:, first : first + width].to(normed.dtype)
            difference = torch.linalg.vector_norm(logits - own, torch.inf, dim=1)
            error = torch.maximum(error, difference)
        factor = sums.add(logits, maximum)
        mean.mul_(factor[:, None]).addmm_(logits, block)  # By now their exponentials.
        if bias is not None:
            part = bias[first : first + width].to(normed.dtype)
            mean_bias = mean_bias * factor + logits @ part
    worst = int(error.argmax())
    return Final(
        mean_unembedding=mean / sums.total[:, None],
        mean_bias=None if bias is None else mean_bias / sums.total,
        negative_entropy=-sums.entropy,
        error=None if reference is None else float(error[worst]),
        error_at=first_position + worst,
        largest_logit=largest,
    )
