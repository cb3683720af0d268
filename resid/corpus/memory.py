"""Key-value memories over text: what fires every neuron, without the unembedding."""

from __future__ import annotations

import numpy as np
import torch

from resid import projection as projections
from resid import unembed
from resid.corpus.batches import Batch
from resid.corpus.memory_totals import MemoryTotals
from resid.corpus.reading import Reading, Rows, Sample
from resid.corpus.statistics import Array
from resid.corpus.totals import Worst
from resid.corpus.triggers import Candidates, surroundings
from resid.errors import ResidError
from resid.model import Model

# Times as many candidates as can be kept, from which on the strongest are looked for at once.
_FEW = 4
_TOLERANCE = {torch.bfloat16: 2.0**-5, torch.float16: 2.0**-8}


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
            ResidError: `top` is below 1, or an MLP's weights are wrapped or packed.
        """
        if top < 1:
            raise ResidError(f"top is {top}; it is at least 1")
        self.points = "mlp_post"
        self.checked = "mlp_out"
        named = projections.check_projection(projection) if model.has_head else None
        d_mlp = len(model.W_out(0))
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

    def take(self, batch: Batch, rows: Rows, sample: Sample | None) -> None:
        """Count and compare every neuron at every position that counts."""
        totals = self.totals
        around = surroundings([w.ids for w in batch.windows], [w.next for w in batch.windows])
        shift = int(batch.bos is not None)
        finite = np.ones(len(batch.pos), dtype=bool)
        active = []
        fired: torch.Tensor | None = None
        for layer in range(self.model.n_layers):
            coefficient = rows[f"{layer}.mlp_post"]
            largest = coefficient.amax(0)
            if not bool(torch.isfinite(largest).all()):
                good = torch.isfinite(coefficient).all(1)
                finite &= good.cpu().numpy()
                coefficient = torch.where(good[:, None], coefficient, 0)
                largest = coefficient.amax(0)
            # Ones and zeros, counted by products: exact in float32, and twice as fast as sums.
            fired = torch.empty_like(coefficient, dtype=torch.float32) if fired is None else fired
            torch.gt(coefficient, 0, out=fired)
            by_neuron = fired.new_ones(len(fired)) @ fired
            totals.fires.counts[layer] += by_neuron.cpu().numpy().astype(np.int64)
            by_token = fired @ fired.new_ones(totals.d_mlp)
            active.append(by_token.cpu().numpy().astype(np.int64) / totals.d_mlp)
            self._add_triggers(layer, coefficient, largest, batch, around, shift)
        totals.leave_out(batch.document[~finite], batch.pos[~finite])
        totals.active.add(batch.document[finite], np.array(active)[:, finite])
        totals.read.counts += int(finite.sum())
        if sample is not None:
            self._check(batch, rows, sample)

    def _add_triggers(
        self,
        layer: int,
        coefficient: torch.Tensor,
        largest: torch.Tensor,
        batch: Batch,
        around: Array,
        shift: int,
    ) -> None:
        triggers = self.totals.triggers[layer]
        weakest = torch.from_numpy(triggers.weakest).to(largest.device)
        # The further the reading, the fewer neurons meet anything that they do not know stronger.
        chosen = ((largest >= weakest) & (largest > 0)).nonzero()[:, 0]
        if not len(chosen):
            return
        top = triggers.activation.shape[1]
        # The smallest positive number stands for "above 0".
        kind = coefficient.dtype
        least = weakest.to(kind).clamp(min=torch.finfo(kind).tiny)
        # All neurons at once: to pick the chosen ones out would cost more than comparing the rest.
        row, neuron = (coefficient >= least).nonzero(as_tuple=True)
        if len(row) > _FEW * top * len(chosen) and len(coefficient) > top:
            # At the beginning nearly everything is stronger than what is known.
            best = coefficient[:, chosen].T.contiguous().topk(top, 1).values[:, -1]
            least[chosen] = torch.maximum(least[chosen], best)
            row, neuron = (coefficient >= least).nonzero(as_tuple=True)
        activation = coefficient[row, neuron].float().cpu().numpy()
        at = row.cpu().numpy()
        triggers.add(
            Candidates(
                neuron=neuron.cpu().numpy(),
                activation=activation,
                document=batch.document[at],
                pos=batch.pos[at],
                context=around[batch.window[at], batch.place[at] - shift],
            )
        )

    def _check(self, batch: Batch, rows: Rows, sample: Sample) -> None:
        """Coefficients times values against what the MLP wrote."""
        tolerance = _TOLERANCE.get(self.model.dtype, 1e-4)
        worst = 0.0
        for layer in range(self.model.n_layers):
            coefficient = rows.of(f"{layer}.mlp_post", sample).to(self.model.reading_dtype)
            written = rows.of(f"{layer}.mlp_out", sample).to(self.model.reading_dtype)
            total = coefficient @ self.model.W_out(layer).to(coefficient.dtype)
            total = total + self.model.b_out(layer).to(coefficient.dtype)
            errors = (total - written).norm(dim=1) / written.norm(dim=1).clamp(min=1e-12)
            errors = errors[torch.isfinite(written).all(1)]  # The others are told of apart.
            worst = max([worst, *errors.tolist()], key=_badness)
        document = batch.windows[sample.window].document
        self.totals.check("neurons_add_up", Worst(worst, tolerance, document))


def _badness(error: float) -> float:
    """For comparing: what is not a number is worse than any that is."""
    return error if error == error else float("inf")
