"""Neurons without a prompt: those of the whole model that speak for a token, and one card."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from resid import projection as projections
from resid.errors import ResidError
from resid.model import Model
from resid.results import Check
from resid.results.memory import Find, NeuronCard, NeuronScores
from resid.unembed import BLOCK_VOCAB


def find_neurons(
    model: Model,
    token: str | int,
    *,
    foil: str | int | None = None,
    neurons: int = 10,
    projection: str = "folded",
) -> Find:
    """The neurons of the whole model whose values most promote, and most suppress, a token.

    One matrix-vector product a layer; neurons x vocabulary is never built.

    Args:
        model: from `load`.
        token: as its text, "id:42" or an id.
        foil: another token: scores are then the token's minus the foil's.
        neurons: how many to list on either side.
        projection: "folded" or "raw", see `resid.projection`.

    Raises:
        ResidError: a token is not one token, or an argument is out of range.

    Source: Geva et al. 2022 (2203.14680); Miller & Neo 2023 for congruence with a token.
    """
    named = projections.check_projection(projection)
    token_id = model.vocabulary.id_of(token, model.d_vocab, "the token")
    foil_id = None if foil is None else model.vocabulary.id_of(foil, model.d_vocab, "the foil")
    if neurons < 1:
        raise ResidError(f"neurons is {neurons}; it is at least 1")
    with torch.no_grad():
        direction = projections.token_direction(model, token_id, foil_id, named)
        by_layer = [
            model.W_out(layer).to(direction.dtype) @ direction for layer in range(model.n_layers)
        ]
    layers = torch.cat([torch.full((len(s),), i) for i, s in enumerate(by_layer)])
    indices = torch.cat([torch.arange(len(s)) for s in by_layer])
    scores = torch.cat(by_layer).cpu()
    return Find(
        source=model.source(None, ()),
        checks=(
            Check.of_finite(
                scores.isfinite().numpy(), lambda i: f"the score of L{layers[i]}N{indices[i]}"
            ),
        ),
        projection=named,
        token_id=token_id,
        token=model.vocabulary.show(token_id),
        foil_id=foil_id,
        foil_token=None if foil_id is None else model.vocabulary.show(foil_id),
        searched=len(scores),
        promotes=_strongest(scores, layers, indices, neurons),
        suppresses=_strongest(-scores, layers, indices, neurons, sign=-1),
    )


def _strongest(
    scores: torch.Tensor, layers: torch.Tensor, indices: torch.Tensor, n: int, sign: int = 1
) -> NeuronScores:
    """The n neurons with the largest scores; those that are not finite come after all others."""
    finite = scores.isfinite()
    order = scores.where(finite, -torch.inf).sort(descending=True, stable=True).indices
    order = order[: min(n, len(order))]  # torch takes no number of more than 64 bits.
    best = sign * scores.where(finite, torch.nan)[order]
    return NeuronScores(
        layer=layers[order].numpy(), neuron=indices[order].numpy(), score=best.numpy()
    )


def neuron_card(
    model: Model, neuron: str | Sequence[int], *, top: int = 10, projection: str = "folded"
) -> NeuronCard:
    """One neuron's card: what its value promotes and suppresses, and the tokens that drive its key.

    Args:
        model: from `load`.
        neuron: "L9N652" or the pair (9, 652).
        top: how many tokens to list.
        projection: "folded" or "raw", see `resid.projection`; for the value only.

    Raises:
        ResidError: the model has no such layer or neuron (the range is named), or `top` is out of
            range.
    """
    named = projections.check_projection(projection)
    layer, index = projections.parse_neuron(neuron, model)
    if not 1 <= top <= min(model.d_vocab, model.n_embeddings):
        raise ResidError(f"top is {top}; it lies between 1 and the vocabulary's {model.d_vocab}")
    with torch.no_grad():
        key = model.W_in(layer)[:, index].to(model.reading_dtype)
        value = model.W_out(layer)[index].to(model.reading_dtype)
        bias = model.b_in(layer)[index].to(model.reading_dtype)
        promoted, suppressed = projections.extremes(model, value[None], top, named)
        drive = _drive(model, layer, key) + bias
        order = drive.sort(descending=True, stable=True).indices[None, :top]
        lost = (~drive.isfinite().all()).expand(1, top)
        read = key * model.ln2_gain(layer)
        cosine = torch.nn.functional.cosine_similarity(read, value, dim=0)
    driven_by = projections.as_extremes(model, drive[order[0]][None], order, lost)
    known = np.concatenate([promoted.known, driven_by.known])
    places = ("its value's scores", "its key's scores")
    return NeuronCard(
        source=model.source(None, ()),
        checks=(Check.of_finite(known, lambda i: f"L{layer}N{index}, {places[i]}"),),
        projection=named,
        layer=layer,
        neuron=index,
        value_norm=float(value.norm()),
        key_norm=float(key.norm()),
        bias=float(bias),
        cosine=float(cosine),
        promoted=promoted,
        suppressed=suppressed,
        driven_by=driven_by,
    )


def _drive(model: Model, layer: int, key: torch.Tensor) -> torch.Tensor:
    """[token] the key's score when a token's embedding alone is the stream."""
    scores = [
        model.ln2(layer, model.W_E[first : first + BLOCK_VOCAB].to(key.dtype)) @ key
        for first in range(0, model.n_embeddings, BLOCK_VOCAB)
    ]
    return torch.cat(scores)
