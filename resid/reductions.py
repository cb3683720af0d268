"""What is left of rows of logits when their blocks have gone by: exponential sums, a top-k."""

from __future__ import annotations

import math

import torch

# Sizes of the groups of neighbouring ids by which the top-k of a block is narrowed down.
_GROUPS = (64, 8, 1)
# Rows that are reduced at a time: few enough that 1,024 of their logits fit the caches next to the
# cores, many enough that handing the work to the cores costs nothing.
_REDUCE_ROWS = 512
_LOG2_E = math.log2(math.e)


class Exponentials:
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

    def add(
        self, logits: torch.Tensor, block_maximum: torch.Tensor, overwrite: bool = False
    ) -> torch.Tensor:
        """Take in a block; returns the factor [row] by which the sums so far were rescaled.

        Args:
            logits: [row, vocab] of the block.
            block_maximum: [row] of the block.
            overwrite: put exp(logit - running maximum) in the place of the logits.
        """
        maximum = torch.maximum(self.maximum, block_maximum)
        shift = torch.where(self.maximum == -torch.inf, 0.0, self.maximum - maximum)
        factor = shift.exp()
        self.weighted = factor * (self.weighted + shift * self.total)
        self.total = factor * self.total
        self.maximum = maximum
        # A few rows at a time: the passes below then find their numbers in the nearest cache.
        # They go into memory of their own: the logits were written by a matrix product, often by
        # another core for each row than the one that reads it here, and cores that take turns in
        # writing the same memory wait for each other, up to ten times as long as the work takes.
        few = torch.empty_like(logits[: self._some_rows])
        others = few if overwrite else torch.empty_like(few)
        for start in range(0, len(logits), self._some_rows):
            rows = slice(start, start + self._some_rows)
            some = logits[rows]
            relative = torch.sub(some, maximum[rows, None], out=few[: len(some)])
            powers = some if overwrite else others[: len(some)]
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


class TopK:
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
        maxima = logits.view(len(logits), -1, _GROUPS[0]).amax(2)
        maximum = maxima.amax(1)
        if self.logits.shape[1] < self.top:
            self.logits, self.ids = self._merged(self.logits, self.ids, first, logits, maxima)
            return maximum
        # The more blocks have gone by, the fewer rows find anything new among their best.
        rows = (maximum > self.logits[:, -1]).nonzero().squeeze(1)
        if len(rows):
            best = self._merged(self.logits[rows], self.ids[rows], first, logits, maxima, rows)
            self.logits[rows], self.ids[rows] = best
        return maximum

    def _merged(
        self,
        best: torch.Tensor,
        ids: torch.Tensor,
        first: int,
        logits: torch.Tensor,
        maxima: torch.Tensor,
        rows: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """([row, k], [row, k]) the best of some rows and of what the block adds to them."""
        if rows is None:
            rows = torch.arange(len(logits), device=logits.device)
        else:
            maxima = maxima[rows]
        # The k largest of a pool lie in the k groups with the largest maxima.
        pool = logits
        narrowings: list[tuple[int, torch.Tensor]] = []
        for size in _GROUPS:
            groups = pool.view(len(pool), -1, size)
            if narrowings:
                maxima = groups.amax(2)
            chosen = _largest(maxima, self.top)
            narrowings.append((size, chosen))
            # Whole groups are copied, which is much faster than gathering number by number.
            wanted = (rows[:, None] * groups.shape[1] + chosen).flatten()
            pool = groups.flatten(0, 1).index_select(0, wanted).view(len(rows), -1)
            rows = torch.arange(len(pool), device=pool.device)
        # What is left are the block's own top-k. The way back through the groups gives their ids.
        at = torch.arange(pool.shape[1], device=pool.device).expand(len(pool), -1)
        for size, chosen in reversed(narrowings):
            at = chosen.gather(1, at // size) * size + at % size
        pool, ids = torch.cat([best, pool], 1), torch.cat([ids, first + at], 1)
        ordered, order = pool.sort(dim=1, descending=True, stable=True)
        return ordered[:, : self.top], ids.gather(1, order[:, : self.top])


def _largest(values: torch.Tensor, k: int) -> torch.Tensor:
    """[row, k] where the k largest of each row are, from left to right; of equals the leftmost."""
    if k >= values.shape[1]:
        return torch.arange(values.shape[1], device=values.device).expand(len(values), -1)
    if k == 1:
        return values.argmax(1, keepdim=True)  # Of equals it takes the first, as documented.
    largest, at = values.topk(k + 1)
    if (largest[:, k - 1] == largest[:, k]).any():
        # Equal values at the edge, of which topk takes any: a stable sort, slower, takes the first.
        at = values.argsort(dim=1, descending=True, stable=True)
    return at[:, :k].sort(1).values
