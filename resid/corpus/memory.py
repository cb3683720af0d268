"""Key-value memories over text: what fires every neuron, without the unembedding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch.nn import functional

from resid import projection as projections
from resid import unembed
from resid.corpus.batches import Batch
from resid.corpus.memory_totals import MemoryTotals
from resid.corpus.reading import Reading, rows_of, sample_of
from resid.corpus.statistics import Array
from resid.corpus.totals import Worst
from resid.corpus.triggers import Candidates, Triggers, surroundings
from resid.errors import ResidError
from resid.forward_pass import evaluating
from resid.model import Model
from resid.recording import watching
from resid.rounding import tolerance

# Times as many candidates as can be kept, from which on the strongest are looked for at once.
_FEW = 4
# Coefficients in a block: two megabytes in float32.
_BLOCK = 2**19
# Bytes of triggers at most: a `top` with some zeros too many would take all the memory there is.
_MOST = 8e9


class MemoryReading(Reading):
    """Every neuron's coefficient at every token: counted, and the largest kept.

    Source: Geva et al. 2021 (2012.14913). A trigger is a token whose coefficient is among the
    neuron's largest. Their agreement (section 4.2) compares the token that a value promotes most
    with the one that follows the neuron's strongest trigger; they project values straight through
    the output embedding, which here is the projection `raw`.
    """

    totals: MemoryTotals

    def __init__(self, model: Model, top: int = 10, projection: str = "folded") -> None:
        """Begin with nothing read.

        Args:
            model: to read; without a language-model head there is no agreement.
            top: triggers to keep of every neuron.
            projection: "folded" or "raw", see `resid.projection`.

        Raises:
            ResidError: `top` is below 1, or so large that the triggers would take more than 8 GB,
                or an MLP's weights are wrapped or packed.
        """
        d_mlp = len(model.W_out(0))
        most = int(_MOST // (model.n_layers * d_mlp * Triggers.BYTES))
        if not 1 <= top <= most:
            raise ResidError(f"top is {top}; for {model.name} it lies between 1 and {most:,}")
        named = projections.check_projection(projection) if model.has_head else None
        super().__init__(model, MemoryTotals(model.n_layers, d_mlp, top, named))
        self.totals.set_vocabulary([model.vocabulary.show(i) for i in range(model.n_embeddings)])

    def find_sayings(self) -> None:
        """Ask of every value which token it promotes most: the only pass over the vocabulary."""
        named = self.totals.projection
        if named is None or self.totals.says is not None:
            return
        model = self.model
        with torch.no_grad():
            says = []
            for layer in range(model.n_layers):
                rows = projections.project(
                    model, model.W_out(layer), projections.check_projection(named)
                )
                _, promoted = unembed.top_tokens(model, rows, 1)
                says.append(promoted[:, 0].cpu().numpy().astype(np.int32))
        self.totals.constants["says"] = np.stack(says)

    def read(self, batch: Batch, first: bool) -> None:
        """Count and compare every neuron at every position that counts, as the model passes it.

        All layers of a batch together are hundreds of megabytes: to store them costs time.
        """
        sample = sample_of(batch) if first else None
        kept: dict[str, torch.Tensor] = {}
        counting = _Counting(self.totals, batch)

        def see(name: str, passing: torch.Tensor) -> None:
            if sample is not None:
                kept[name] = sample.part(passing).clone()
            if name.endswith(".mlp_post"):
                counting.count(int(name.split(".")[0]), rows_of(batch, passing))

        points = "mlp_post" if sample is None else "mlp_post,mlp_out"
        with (
            evaluating(self.model.hf),
            torch.no_grad(),
            watching(self.model, points, see),
        ):
            self.model.run_blocks(batch.ids)
        counting.close()
        if sample is not None:
            document = batch.windows[sample.window].origin.document
            self.totals.check("neurons_add_up", self._check(kept, document))

    def _check(self, kept: dict[str, torch.Tensor], document: int) -> Worst:
        """Coefficients times values against what the MLP wrote, at [place, width] of a sample."""
        errors = []
        for layer in range(self.model.n_layers):
            coefficient = kept[f"{layer}.mlp_post"].to(self.model.reading_dtype)
            written = kept[f"{layer}.mlp_out"].to(self.model.reading_dtype)
            total = coefficient @ self.model.W_out(layer).to(coefficient.dtype)
            total = total + self.model.b_out(layer).to(coefficient.dtype)
            error = (total - written).norm(dim=1) / written.norm(dim=1).clamp(min=1e-12)
            told = torch.isfinite(written).all(1)  # The others are told of apart.
            errors.append(error[told].cpu())
        every = torch.cat(errors)
        # Where one is not a number, the largest is none either, and that counts as worst.
        worst = float(every.max()) if len(every) else 0.0
        return Worst(worst, tolerance(self.model.dtype), document)


class _Counting:
    """One batch, taken in layer by layer."""

    def __init__(self, totals: MemoryTotals, batch: Batch) -> None:
        self.totals, self.batch = totals, batch
        around = surroundings([w.ids for w in batch.windows], [w.next for w in batch.windows])
        self.around = around[batch.window, batch.place - int(batch.bos is not None)]
        self.finite = np.ones(len(batch.pos), dtype=bool)
        self.active = np.empty((len(totals.triggers), len(batch.pos)))

    def count(self, layer: int, coefficient: torch.Tensor) -> None:
        """Take in the coefficients [row, neuron] of a layer."""
        stronger = _Stronger(self.totals.triggers[layer], self.batch, self.around)
        for at, block in _blocks(coefficient):
            largest = block.amax(0)
            read = len(block)
            if not bool(torch.isfinite(largest).all()):
                good = torch.isfinite(block).all(1)
                self.finite[at] &= good.cpu().numpy()
                read = int(good.sum())
                block = torch.where(good[:, None], block, 0)
                largest = block.amax(0)
            by_row, by_neuron = _count_true(block > 0)
            self.totals.read.counts[layer] += read
            self.totals.fires.counts[layer] += by_neuron.cpu().numpy()
            self.active[layer, at] = by_row.cpu().numpy()
            stronger.look(at.start, block, largest)
        stronger.tell()

    def close(self) -> None:
        """All layers have gone by."""
        totals, batch, finite = self.totals, self.batch, self.finite
        totals.leave_out(batch.document[~finite], batch.pos[~finite])
        totals.active.add(batch.document[finite], self.active[:, finite] / totals.d_mlp)


class _Stronger:
    """Tokens of a batch that fire neurons of one layer as strongly as any that are known."""

    def __init__(self, triggers: Triggers, batch: Batch, around: Array) -> None:
        """Begin with none.

        Args:
            triggers: what is known, and is told.
            batch: the tokens.
            around: [row, around] what stands around each.
        """
        self.triggers, self.batch, self.around = triggers, batch, around
        self._begin()

    def _begin(self) -> None:
        self.found: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self.count = 0
        self.weakest = torch.from_numpy(self.triggers.weakest.copy())

    def look(self, start: int, block: torch.Tensor, largest: torch.Tensor) -> None:
        """Look through coefficients [row, neuron] from a row on; `largest` of them by neuron."""
        kind, top = block.dtype, self.triggers.top
        least = self.weakest.to(block.device, kind)
        # The further the reading, the fewer neurons meet anything that they do not know stronger.
        chosen = _reach(largest, least).nonzero()[:, 0]
        if not len(chosen):
            return
        some, least = block.index_select(1, chosen), least[chosen]
        row, which = _reach(some, least).nonzero(as_tuple=True)
        if len(row) > _FEW * top * len(chosen):
            # At the beginning nearly everything is stronger than what is known.
            best = some.T.contiguous().topk(top, 1).values[:, -1]
            row, which = _reach(some, torch.maximum(least, best)).nonzero(as_tuple=True)
        self.found.append((start + row, chosen[which], some[row, which].float()))
        self.count += len(row)
        if self.count > len(largest):
            self.tell()

    def tell(self) -> None:
        """Let them in, which raises what the next ones must reach."""
        if self.found:
            row, neuron, activation = (
                torch.cat(part).cpu().numpy() for part in zip(*self.found, strict=True)
            )
            batch = self.batch
            found = (batch.document, batch.file, batch.line, batch.pos, self.around)
            where = (each[row] for each in found)
            self.triggers.add(Candidates(neuron, activation, *where))
            self._begin()


def _reach(coefficient: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
    """Where they reach the least, and are above 0 however little: such fire the neuron too."""
    return (coefficient >= least) & (coefficient > 0)


def _count_true(fired: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How many of the Booleans [row, column] are true in every row, and in every column.

    Eight are added at a time, as the bytes of one integer: of up to 255 no byte runs over.
    """
    columns = fired.shape[1]
    eights = functional.pad(fired, (0, -columns % 8)) if columns % 8 else fired
    eights = eights.view(torch.int64)
    by_row = [part.sum(1, keepdim=True).view(torch.uint8) for part in torch.split(eights, 255, 1)]
    by_column = [part.sum(0).view(torch.uint8) for part in torch.split(eights, 255)]
    return torch.cat(by_row, 1).sum(1), torch.stack(by_column).sum(0)[:columns]


def _blocks(coefficient: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
    """Rows that a processor's cache holds while they are counted and compared; elsewhere all."""
    rows = len(coefficient)
    if coefficient.device.type == "cpu":
        rows = max(1, _BLOCK // coefficient.shape[1])
    for start in range(0, len(coefficient), rows):
        block = coefficient[start : start + rows]
        yield slice(start, start + len(block)), block
