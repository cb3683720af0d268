"""The results that read MLPs as key-value memories: a prompt's neurons, a token's, and one card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from resid.axes import axes
from resid.results.corpus_source import CorpusSource
from resid.results.result import Bools, Floats, Ints, ModelResult, Strings

Projection = Literal["folded", "raw"]
PROJECTIONS: tuple[Projection, ...] = ("folded", "raw")
Order = Literal["write", "coefficient", "target"]
ORDERS: tuple[Order, ...] = ("write", "coefficient", "target")


@dataclass(frozen=True)
class Extremes:
    """The tokens at one end of what vectors say about the vocabulary, most extreme first."""

    ids: Ints = axes("neuron k")
    """-1 where the vector's scores are not all finite."""
    tokens: Strings = axes("neuron k")
    """Display strings of `ids`; empty where there is none."""
    scores: Floats = axes("neuron k")
    """Projection onto the token's unembedding, logits per unit of coefficient."""

    def of(self, i: int) -> list[dict[str, Any]]:
        """Row i as JSON holds it."""
        columns = zip(self.ids[i], self.tokens[i], self.scores[i], strict=True)
        return [
            {"id": id, "token": token, "score": score}
            if id >= 0
            else {"id": None, "token": None, "score": None}
            for id, token, score in columns
        ]

    def take(self, rows: Ints) -> Extremes:
        """Some of the rows, each as often as it is named."""
        return Extremes(self.ids[rows], self.tokens[rows], self.scores[rows])

    @property
    def known(self) -> Bools:
        """[neuron] whether a row has tokens at all."""
        return self.ids[:, 0] >= 0


@dataclass(frozen=True)
class MlpMemory(ModelResult):
    """The neurons that write most at some positions of a prompt, and what they write."""

    analysis: ClassVar[str] = "mlp_memory"
    projection: Projection
    """How values were put before the unembedding: `folded` is gain times centred value, the linear
    part of ln_final; `raw` is the value as it is."""
    order: Order
    """By what the neurons of a layer were chosen and ordered."""
    promoted: Extremes
    """What the value promotes."""
    suppressed: Extremes
    """What the value suppresses. A negative coefficient turns the two around."""
    positions: tuple[int, ...] = axes("pos")
    layers: tuple[int, ...] = axes("layer")
    active: Floats = axes("layer pos")
    """Fraction of the layer's neurons whose coefficient is above 0."""
    mlp_out_l2: Floats = axes("layer pos")
    """L2 norm of what the whole MLP wrote."""
    layer: Ints = axes("neuron")
    """The layer of each neuron listed; sorted by position, then layer, then order."""
    neuron: Ints = axes("neuron")
    """Its index within its layer."""
    pos: Ints = axes("neuron")
    """The position at which it was read."""
    pre_activation: Floats = axes("neuron")
    """The key's score: ln_2 of the stream times the key, plus its bias."""
    coefficient: Floats = axes("neuron")
    """What the model's own activation function makes of it."""
    value_norm: Floats = axes("neuron")
    """L2 norm of the value."""
    write_norm: Floats = axes("neuron")
    """L2 norm of what was written: |coefficient| x value_norm."""
    target_id: int | None = None
    target_token: str | None = None
    target_logit: Floats | None = axes("neuron", default=None)
    """Contribution to the target's logit, with the scale of ln_final frozen at its final value."""

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`pos` and `layer`."""
        return {"pos": self.positions, "layer": self.layers}

    def data(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        target = (
            None if self.target_id is None else {"id": self.target_id, "token": self.target_token}
        )
        return {
            "projection": self.projection,
            "order": self.order,
            "target": target,
            "active": self.active,
            "mlp_out_l2": self.mlp_out_l2,
            "neurons": [
                self._numbers(i)
                | {"promoted": self.promoted.of(i), "suppressed": self.suppressed.of(i)}
                for i in range(len(self.layer))
            ],
        }

    def _numbers(self, i: int) -> dict[str, Any]:
        names = ("layer", "neuron", "pos", "pre_activation", "coefficient", "value_norm")
        found = {name: getattr(self, name)[i] for name in (*names, "write_norm")}
        return found | {"target_logit": None if self.target_logit is None else self.target_logit[i]}

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every neuron listed."""
        for i in range(len(self.layer)):
            row = self._numbers(i)
            for name, extremes in (("promoted", self.promoted), ("suppressed", self.suppressed)):
                for k in range(extremes.ids.shape[1]):
                    row[f"{name}{k + 1}_id"] = extremes.ids[i, k]
                    row[f"{name}{k + 1}_token"] = extremes.tokens[i, k]
                    row[f"{name}{k + 1}_score"] = extremes.scores[i, k]
            yield row


@dataclass(frozen=True)
class NeuronScores:
    """Neurons of the whole model with a score, the strongest first."""

    layer: Ints = axes("n")
    neuron: Ints = axes("n")
    score: Floats = axes("n")

    def records(self) -> list[dict[str, Any]]:
        """As JSON holds them."""
        columns = zip(self.layer, self.neuron, self.score, strict=True)
        return [{"layer": layer, "neuron": n, "score": score} for layer, n, score in columns]


@dataclass(frozen=True)
class Find(ModelResult):
    """The neurons of the whole model whose values most promote or suppress a token."""

    analysis: ClassVar[str] = "find"
    projection: Projection
    token_id: int
    token: str
    foil_id: int | None
    foil_token: str | None
    searched: int
    """How many neurons there are."""
    promotes: NeuronScores
    """Largest scores first; with a foil, the score is the token's minus the foil's."""
    suppresses: NeuronScores
    """Smallest scores first."""

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """None: the two lists have ranks for axes."""
        return {}

    def data(self) -> dict[str, Any]:
        """The lists under the names that JSON's `data` has for them."""
        foil = None if self.foil_id is None else {"id": self.foil_id, "token": self.foil_token}
        return {
            "projection": self.projection,
            "token": {"id": self.token_id, "token": self.token},
            "foil": foil,
            "searched": self.searched,
            "promotes": self.promotes.records(),
            "suppresses": self.suppresses.records(),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every neuron listed, the promoting ones first."""
        for direction, found in (("promotes", self.promotes), ("suppresses", self.suppresses)):
            for record in found.records():
                yield {"direction": direction, **record}


@dataclass(frozen=True)
class NeuronCard(ModelResult):
    """One neuron of an MLP: what drives it and what it writes."""

    analysis: ClassVar[str] = "neuron"
    projection: Projection
    layer: int
    neuron: int
    value_norm: float
    """L2 norm of its value, row `neuron` of W_out."""
    key_norm: float
    """L2 norm of its key, column `neuron` of W_in."""
    bias: float
    """Its element of b_in."""
    cosine: float
    """Cosine between key (times ln_2's gain) and value: does it write what it reads?"""
    promoted: Extremes
    suppressed: Extremes
    driven_by: Extremes
    """Tokens whose embedding, if it alone were the stream, would give the largest pre-activation;
    the scores are those pre-activations."""
    triggers: tuple[dict[str, Any], ...] = ()
    """Text that fires it, where a corpus run has collected some, strongest first: `activation`;
    `document`, its `file` and the `line` where it begins there, `pos`; `context`, and its parts
    `before`, `token`, `after` with the token's `id`."""
    fires: float | None = None
    """Share of that run's tokens at which its coefficient is above 0."""
    agreement: float | None = None
    """At what share of its triggers the token that its value promotes most comes next."""
    corpus: CorpusSource | None = None
    """The text of that run, and how it was read."""

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """None: the lists have ranks for axes."""
        return {}

    def data(self) -> dict[str, Any]:
        """The card under the names that JSON's `data` has for its parts."""
        names = ("layer", "neuron", "projection", "value_norm", "key_norm", "bias", "cosine")
        lists = ("promoted", "suppressed", "driven_by")
        return (
            {name: getattr(self, name) for name in names}
            | {name: getattr(self, name).of(0) for name in lists}
            | {"triggers": list(self.triggers), "fires": self.fires, "agreement": self.agreement}
            | {"corpus": None if self.corpus is None else self.corpus.text()}
        )

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every token listed, those of triggers last."""
        more = dict.fromkeys(
            ("document", "file", "line", "pos", "context") if self.triggers else ()
        )
        for name in ("promoted", "suppressed", "driven_by"):
            for rank, record in enumerate(getattr(self, name).of(0), start=1):
                yield {"list": name, "rank": rank, **record, **more}
        for rank, trigger in enumerate(self.triggers, start=1):
            token = {"id": trigger["id"], "token": trigger["token"], "score": trigger["activation"]}
            where = {name: trigger[name] for name in more}
            yield {"list": "triggers", "rank": rank, **token, **where}
