"""Vectors of the residual stream held against the vocabulary, always under a named convention.

`folded` is gain times centred vector, the linear part of ln_final: what the vector adds to a stream
changes the logits by this, up to the scale that ln_final divides by. `raw` is the vector as it is.
The two rank tokens differently, and so does ln_final itself applied to a lone vector; results name
which was used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from resid import unembed
from resid.errors import ResidError
from resid.model import Model
from resid.results.memory import PROJECTIONS, Extremes, Projection


def check_projection(projection: str) -> Projection:
    """The projection's name, refused if it is not one."""
    for known in PROJECTIONS:
        if projection == known:
            return known
    raise ResidError(f"the projection is '{projection}'; choose one of {', '.join(PROJECTIONS)}")


def token_direction(
    model: Model, token: int, foil: int | None, projection: Projection
) -> torch.Tensor:
    """[d_model] the direction on which a vector's share is the token's score, minus the foil's."""
    direction = model.W_U[:, token].to(model.reading_dtype)
    if foil is not None:
        direction = direction - model.W_U[:, foil].to(model.reading_dtype)
    # Moving gain and centring from the many vectors to the one direction changes nothing: both are
    # symmetric matrices.
    return direction if projection == "raw" else _centred(direction * model.ln_final_gain)


def project(model: Model, vectors: torch.Tensor, projection: Projection) -> torch.Tensor:
    """[row, d_model] the vectors as they meet the unembedding."""
    vectors = vectors.to(model.reading_dtype)
    return vectors if projection == "raw" else _centred(vectors) * model.ln_final_gain


def extremes(
    model: Model, vectors: torch.Tensor, k: int, projection: Projection
) -> tuple[Extremes, Extremes]:
    """The k tokens that each vector [row, d_model] promotes most, and those it suppresses most."""
    rows = project(model, vectors, projection)
    top, top_ids = unembed.top_tokens(model, rows, k)
    bottom, bottom_ids = unembed.top_tokens(model, -rows, k)
    # One score that is not finite, at whichever end, leaves nothing to say about the others.
    lost = (top_ids < 0) | (bottom_ids < 0)
    return as_extremes(model, top, top_ids, lost), as_extremes(model, -bottom, bottom_ids, lost)


def as_extremes(
    model: Model, scores: torch.Tensor, ids: torch.Tensor, lost: torch.Tensor
) -> Extremes:
    """Scores and ids [neuron, k] with their display strings, as numpy arrays.

    Args:
        model: whose tokens they are.
        scores: best first.
        ids: of the tokens.
        lost: [neuron, k] where there is nothing to show, because a score is not finite.
    """
    numbers = ids.masked_fill(lost, -1).cpu().numpy()
    tokens = np.empty(numbers.shape, dtype=object)
    for cell in np.ndindex(numbers.shape):
        token_id = int(numbers[cell])
        tokens[cell] = "" if token_id < 0 else model.vocabulary.show(token_id)
    shown = scores.masked_fill(lost, torch.nan).cpu().numpy()
    return Extremes(ids=numbers, tokens=tokens, scores=shown)


def parse_neuron(name: str | Sequence[int], model: Model) -> tuple[int, int]:
    """Layer and index of a neuron given as "L9N652" or as a pair.

    Raises:
        ResidError: it is not such a name, or the model has no such layer or neuron.
    """
    import re

    if isinstance(name, str):
        found = re.fullmatch(r"\s*[Ll](\d{1,6})[Nn](\d{1,9})\s*", name)
        if found is None:
            raise ResidError(f"'{name}' is not a neuron; write one as L9N652: layer 9, neuron 652")
        layer, neuron = int(found[1]), int(found[2])
    else:
        layer, neuron = (int(number) for number in name)
    if not 0 <= layer < model.n_layers:
        raise ResidError(
            f"there is no layer {layer}; {model.name} has layers 0 to {model.n_layers - 1}"
        )
    d_mlp = len(model.W_out(layer))
    if not 0 <= neuron < d_mlp:
        raise ResidError(f"there is no neuron {neuron}; layer {layer} has 0 to {d_mlp - 1}")
    return layer, neuron


def _centred(vectors: torch.Tensor) -> torch.Tensor:
    return vectors - vectors.mean(-1, keepdim=True)
