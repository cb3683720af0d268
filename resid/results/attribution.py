"""The result of attribution: two readings of one prediction that must not be confused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from resid.axes import axes
from resid.results.memory import NeuronScores
from resid.results.result import Floats, ModelResult


@dataclass(frozen=True)
class Attribution(ModelResult):
    """What moved a token's probability along the stream, and what its final logit is made of.

    With a foil, every number is the target's minus the foil's.
    """

    analysis: ClassVar[str] = "attribution"
    position: int
    """Where the prediction is read: position p predicts token p + 1."""
    target_id: int
    target_token: str
    foil_id: int | None
    foil_token: str | None
    logit: float
    """The model's own logit."""
    remainder: float
    """What the components leave of it: logit minus the sum of `direct`."""
    neurons: NeuronScores | None
    """The largest shares among each MLP's neurons, layer by layer; None where not asked for."""
    points: tuple[str, ...] = axes("point")
    """embed, 0.mid, 0.post, ...: every point of the stream in order."""
    logprob: Floats = axes("point")
    """Log-probability when the stream is decoded at that point with its own statistics, nats."""
    delta: Floats = axes("point")
    """Change from the point before, nats; at embed the log-probability itself. They sum to the
    final log-probability."""
    components: tuple[str, ...] = axes("component")
    """token, position, L.attn (or LxHy and L.attn_bias), L.mlp, ln_final_bias, and b_U if any."""
    direct: Floats = axes("component")
    """Each component's share of the logit, with ln_final's scale frozen at its final value."""

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`point` and `component`."""
        return {"point": self.points, "component": self.components}

    def data(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        foil = None if self.foil_id is None else {"id": self.foil_id, "token": self.foil_token}
        steps = zip(self.points, self.logprob, self.delta, strict=True)
        shares = zip(self.components, self.direct, strict=True)
        return {
            "position": self.position,
            "target": {"id": self.target_id, "token": self.target_token},
            "foil": foil,
            "waterfall": [{"point": p, "logprob": value, "delta": d} for p, value, d in steps],
            "direct": [{"component": component, "logit": value} for component, value in shares],
            "neurons": None if self.neurons is None else self.neurons.records(),
            "logit": self.logit,
            "remainder": self.remainder,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every step of the waterfall, then one for every component."""
        for point, logprob, delta in zip(self.points, self.logprob, self.delta, strict=True):
            yield {"reading": "waterfall", "part": point, "value": delta, "logprob": logprob}
        for component, logit in zip(self.components, self.direct, strict=True):
            yield {"reading": "direct", "part": component, "value": logit, "logprob": None}
