"""The result of watching every neuron over text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from resid.axes import axes
from resid.results.corpus_source import CorpusSource
from resid.results.result import Floats, Ints, Result, Strings


@dataclass(frozen=True)
class Trigger:
    """One token of a text that fires a neuron."""

    activation: float
    """The neuron's coefficient there."""
    document: int
    """Which document of the corpus, from 0, in the order of the files (a folder's by name); empty
    ones and those that other shards read count too."""
    file: str
    """The file that the document is in."""
    line: int
    """Where in the file the document begins, from 1."""
    pos: int
    """Which token of the document, from 0."""
    before: str
    """Up to fifteen tokens before it, as display strings."""
    id: int
    token: str
    """Its display string."""
    after: str
    """Up to four tokens after it."""
    next_id: int
    """The token after it; -1 where the text ends."""

    @property
    def context(self) -> str:
        """The token with what stands around it."""
        return self.before + self.token + self.after

    def record(self) -> dict[str, Any]:
        """As JSON holds it."""
        where = ("activation", "document", "file", "line", "pos")
        names = (*where, "context", "before", "id", "token", "after")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class CorpusMemory(Result):
    """How often every neuron fires over a text, what fires it most, and whether its value agrees.

    A token fires a neuron where the neuron's coefficient is above 0. A layer counts the tokens of
    which all its coefficients are finite.
    """

    analysis: ClassVar[str] = "corpus_memory"
    source: CorpusSource
    documents: int
    tokens: int
    """Tokens of text read, each once."""
    not_finite: int
    """Those at which a coefficient of some layer was not finite; that layer does not count them."""
    projection: str | None
    """How values were put before the unembedding: folded or raw; None: the model has no head."""
    top: int
    """Triggers kept of every neuron."""
    strongest: tuple[Trigger | None, ...] = axes("layer")
    """The strongest trigger of all the layer's neurons."""
    layers: tuple[int, ...] = axes("layer")
    fires: Floats = axes("layer neuron")
    """Share of tokens that fire the neuron."""
    active: Floats = axes("layer")
    """Share of the layer's neurons that a token fires, on average over tokens that are finite in
    every layer."""
    active_se: Floats = axes("layer")
    """Its standard error, by document."""
    dead: Ints = axes("layer")
    """Neurons that no token fires."""
    agreement: Floats = axes("layer")
    """Geva's agreement: at how many of the layer's neurons the token that the value promotes most
    is the one that follows the neuron's strongest trigger. Neurons that nothing fires, whose
    strongest trigger ends its document, or whose value's projection is not finite are left out."""
    agreement_se: Floats = axes("layer")
    """Its standard error, by document of the triggers."""
    agreement_chance: Floats = axes("layer")
    """What it would be if what follows the triggers were dealt out among the layer's neurons."""
    strongest_neuron: Ints = axes("layer")
    """The neuron that `strongest` fires."""
    top_activation: Floats = axes("layer neuron")
    """Of the neuron's strongest trigger; 0 where there is none."""
    top_document: Ints = axes("layer neuron")
    top_file: Strings = axes("layer neuron")
    """The document's file; empty where there is none."""
    top_line: Ints = axes("layer neuron")
    """Where in the file the document begins, from 1."""
    top_pos: Ints = axes("layer neuron")
    top_before: Strings = axes("layer neuron")
    """The text before it; see `Trigger`."""
    top_token: Strings = axes("layer neuron")
    top_after: Strings = axes("layer neuron")

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`layer`; a neuron's index is its place."""
        return {"layer": self.layers}

    def data(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        names = ("documents", "tokens", "not_finite", "projection", "top", "fires", "active")
        more = ("active_se", "agreement", "agreement_se", "agreement_chance", "top_activation")
        strongest = [
            {"neuron": neuron} | ({} if trigger is None else trigger.record())
            for neuron, trigger in zip(self.strongest_neuron, self.strongest, strict=True)
        ]
        data = {name: getattr(self, name) for name in (*names, *more)}
        return data | {"dead": self.known_dead(), "strongest": strongest}

    def known_dead(self) -> list[int | None]:
        """`dead`; None for a layer that counts no token."""
        return [
            None if np.isnan(fires).any() else int(dead)
            for fires, dead in zip(self.fires, self.dead, strict=True)
        ]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every neuron."""
        for layer in self.layers:
            for neuron in range(self.fires.shape[1]):
                none = self.top_document[layer, neuron] < 0
                parts = (self.top_before, self.top_token, self.top_after)
                before, token, after = (part[layer, neuron] for part in parts)
                yield {
                    "layer": layer,
                    "neuron": neuron,
                    "fires": self.fires[layer, neuron],
                    "activation": None if none else self.top_activation[layer, neuron],
                    "document": None if none else self.top_document[layer, neuron],
                    "file": None if none else self.top_file[layer, neuron],
                    "line": None if none else self.top_line[layer, neuron],
                    "pos": None if none else self.top_pos[layer, neuron],
                    "context": before + token + after,
                    "before": before,
                    "token": token,
                    "after": after,
                }
