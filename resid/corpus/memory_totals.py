"""Key-value memories over text, as numbers that merge."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from resid.corpus.labels import Label, is_size, is_text, or_none
from resid.corpus.statistics import Array, Arrays, Counts, DocumentSums
from resid.corpus.totals import Shape, Totals
from resid.corpus.triggers import BEFORE, Triggers
from resid.corpus.windows import NONE
from resid.results import Check
from resid.results.corpus_memory import CorpusMemory, Trigger
from resid.results.corpus_source import CorpusSource


class MemoryTotals(Totals):
    """What fires every neuron most, how often it fires, and whether its value says what follows.

    Attributes:
        triggers: one for each layer.
        fires: tokens with a coefficient above 0, [layer, neuron].
        read: tokens whose coefficients are finite in the layer, [layer].
        active: share of a layer's neurons that a token fires, by document.
    """

    analysis = "memory"
    labels: ClassVar[Label] = {
        "n_layers": is_size,
        "d_mlp": is_size,
        "top": is_size,
        "projection": or_none(is_text),
    }

    def __init__(self, n_layers: int, d_mlp: int, top: int, projection: str | None) -> None:
        shape: dict[str, Any] = {"n_layers": n_layers, "d_mlp": d_mlp, "top": top}
        super().__init__(shape | {"projection": projection})
        self.n_layers, self.d_mlp, self.projection = n_layers, d_mlp, projection
        self.triggers = [Triggers(d_mlp, top) for _ in range(n_layers)]
        self.fires = Counts(n_layers, d_mlp)
        self.active = DocumentSums(n_layers)
        self.read = Counts(n_layers)
        by_layer = {f"triggers{layer}": each for layer, each in enumerate(self.triggers)}
        self.parts = {"fires": self.fires, "active": self.active, "read": self.read, **by_layer}

    @classmethod
    def could_hold(cls, shape: Shape, arrays: Arrays) -> bool:
        """See `Totals`."""
        layers, neurons, top = shape["n_layers"], shape["d_mlp"], shape["top"]
        triggers = arrays["triggers0.activation"].shape
        return arrays["fires.counts"].shape == (layers, neurons) and triggers == (neurons, top)

    def refuse_constants(self, constants: Arrays, arrays: Arrays) -> None:
        """See `Totals`."""
        texts = constants.pop("vocabulary", np.frombuffer(b"[]", np.uint8))
        tokens = json.loads(texts.tobytes())
        listed = texts.dtype == np.uint8 and isinstance(tokens, list)
        if not listed or not all(isinstance(token, str) for token in tokens):
            raise ValueError("constant.vocabulary is no list of tokens")
        # Display strings are such as a terminal and a font can show.
        if not "".join(tokens).isprintable():
            raise ValueError("constant.vocabulary holds what cannot be printed")
        says = constants.pop("says", None)
        if says is not None and (says.shape != self.fires.counts.shape or says.dtype != np.int32):
            raise ValueError(f"constant.says is {list(says.shape)} numbers of {says.dtype}")
        super().refuse_constants(constants, arrays)
        for layer in range(self.n_layers):
            inside = {name: arrays[f"triggers{layer}.{name}"] for name in self.triggers[0].arrays()}
            if not NONE <= inside["context"].min() <= inside["context"].max() < len(tokens):
                raise ValueError(f"triggers{layer}.context holds ids without a token")
            if min(array.min() for array in inside.values()) < NONE:
                raise ValueError(f"triggers{layer} holds negative numbers")

    @property
    def says(self) -> Array | None:
        """[layer, neuron] the token that the neuron's value promotes most, where it was asked."""
        return self.constants.get("says")

    def set_vocabulary(self, tokens: list[str]) -> None:
        """Keep the display string of every token, so that contexts can be read without a model."""
        # In ASCII, where no display string can be refused.
        text = json.dumps(tokens, separators=(",", ":")).encode()
        self.constants["vocabulary"] = np.frombuffer(text, dtype=np.uint8).copy()

    def vocabulary(self) -> list[str]:
        """The display string of every token."""
        found: list[str] = json.loads(self.constants["vocabulary"].tobytes())
        return found

    def share_fired(self, layer: int) -> Array:
        """[neuron] the share of tokens that fire it; NaN where there is none."""
        read = int(self.read.counts[layer])
        fires = self.fires.counts[layer]
        share: Array = fires / read if read else np.full(fires.shape, np.nan)
        return share

    def files_named(self) -> int:
        """See `Totals`."""
        return 1 + max(int(found.file.max()) for found in self.triggers)

    def triggers_of(
        self, layer: int, neuron: int, tokens: Sequence[str], files: Sequence[str]
    ) -> tuple[Trigger, ...]:
        """The strongest tokens of one neuron, strongest first.

        Args:
            layer: of the neuron.
            neuron: in its layer.
            tokens: as `vocabulary` gives them.
            files: the names of the corpus's files.
        """
        found = self.triggers[layer]
        number = int((found.document[neuron] != NONE).sum())
        return tuple(_trigger(found, neuron, k, tokens, files) for k in range(number))

    def result(self, source: CorpusSource) -> CorpusMemory:
        """Fractions, agreement, and the strongest trigger of every neuron."""
        tokens = self.vocabulary()
        files = [file["name"] for file in source.files]
        strongest = []
        for layer, found in enumerate(self.triggers):
            neuron = int(found.activation[:, 0].argmax())
            strongest.append((neuron, self.triggers_of(layer, neuron, tokens, files)))
        agreement = np.array([self._agreement(layer) for layer in range(self.n_layers)])
        return CorpusMemory(
            source=source,
            checks=self.result_checks(),
            documents=source.documents,
            tokens=source.tokens,
            not_finite=self.not_finite,
            projection=self.projection,
            top=self.shape["top"],
            layers=tuple(range(self.n_layers)),
            fires=np.stack([self.share_fired(layer) for layer in range(self.n_layers)]),
            active=self.active.mean(),
            active_se=self.active.standard_error(),
            dead=(self.fires.counts == 0).sum(1),
            agreement=agreement[:, 0],
            agreement_se=agreement[:, 1],
            agreement_chance=agreement[:, 2],
            top_activation=np.stack([found.activation[:, 0] for found in self.triggers]),
            top_document=np.stack([found.document[:, 0] for found in self.triggers]),
            top_file=np.array([*files, ""], dtype=object)[
                np.stack([found.file[:, 0] for found in self.triggers])  # NONE is the last.
            ],
            top_line=np.stack([found.line[:, 0] for found in self.triggers]),
            top_pos=np.stack([found.pos[:, 0] for found in self.triggers]),
            **_contexts(self.triggers, tokens),
            strongest_neuron=np.array([neuron for neuron, _ in strongest]),
            strongest=tuple(triggers[0] if triggers else None for _, triggers in strongest),
        )

    def result_checks(self) -> tuple[Check, ...]:
        """See `Totals`; with the values of which it is not known what they promote."""
        *others, finite = super().result_checks()
        says = self.says
        unknown = np.argwhere(says == NONE) if says is not None else np.empty((0, 2))
        if not len(unknown):
            return (*others, finite)
        layer, neuron = unknown[0]
        where = finite.where or f"the value of L{layer}N{neuron}"
        return (*others, Check("finite", finite.error + len(unknown), 0.0, False, where))

    def _agreement(self, layer: int) -> tuple[float, float, float]:
        """Geva's agreement of a layer, its standard error by document, and what chance gives."""
        found, says = self.triggers[layer], self.says
        if says is None:
            return (np.nan, np.nan, np.nan)
        follows = found.context[:, 0, BEFORE + 1]
        known = (found.document[:, 0] != NONE) & (follows != NONE) & (says[layer] != NONE)
        chosen = np.flatnonzero(known)
        if not len(chosen):
            return (np.nan, np.nan, np.nan)
        said, next_token = says[layer, chosen], follows[chosen]
        agrees = DocumentSums(1)
        agrees.add(found.document[chosen, 0], (said == next_token)[None].astype(float))
        agrees.close()
        # If what follows the triggers were dealt out to the layer's neurons at random.
        ids, said_by = np.unique(said, return_counts=True)
        others, follow = np.unique(next_token, return_counts=True)
        _, one, other = np.intersect1d(ids, others, assume_unique=True, return_indices=True)
        chance = float((said_by[one] / len(chosen)) @ (follow[other] / len(chosen)))
        return (float(agrees.mean()[0]), float(agrees.standard_error()[0]), chance)


def _trigger(
    found: Triggers, neuron: int, k: int, tokens: Sequence[str], files: Sequence[str]
) -> Trigger:
    shown = [tokens[i] if i >= 0 else "" for i in found.context[neuron, k].tolist()]
    return Trigger(
        activation=float(found.activation[neuron, k]),
        document=int(found.document[neuron, k]),
        file=files[found.file[neuron, k]],
        line=int(found.line[neuron, k]),
        pos=int(found.pos[neuron, k]),
        before="".join(shown[:BEFORE]),
        id=int(found.context[neuron, k, BEFORE]),
        token=shown[BEFORE],
        after="".join(shown[BEFORE + 1 :]),
        next_id=int(found.context[neuron, k, BEFORE + 1]),
    )


def _contexts(triggers: list[Triggers], tokens: Sequence[str]) -> dict[str, Array]:
    """[layer, neuron] the strongest trigger and what stands around it; empty where none is."""
    parts = {
        "top_before": slice(BEFORE),
        "top_token": slice(BEFORE, BEFORE + 1),
        "top_after": slice(BEFORE + 1, None),
    }
    shown = np.array([*tokens, ""], dtype=object)  # NONE is the last.
    found: dict[str, Array] = {}
    for name, part in parts.items():
        found[name] = np.empty((len(triggers), len(triggers[0].activation)), dtype=object)
        for layer, each in enumerate(triggers):
            found[name][layer] = ["".join(row) for row in shown[each.context[:, 0, part]]]
    return found
