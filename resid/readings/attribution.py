"""Which part of the network moved an answer: two exact replies that must not be confused.

The *waterfall* decodes every point of the stream as a lens does, and says by how much each sublayer
moved the token's log-probability. The *direct* attribution freezes the scale that ln_final divides
by at the last point; the logit is then a plain sum over everything that ever wrote to the stream.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from resid import unembed
from resid.errors import ResidError
from resid.model import Model
from resid.projection import token_direction
from resid.readings.logit_lens import own_logits
from resid.recording import Recording, resolve_positions, stream_points
from resid.results import Check
from resid.results.attribution import Attribution
from resid.results.memory import NeuronScores

# (waterfall, absolute in nats; direct, relative): what rounding leaves of the two identities.
_TOLERANCE = {torch.bfloat16: (0.5, 0.05), torch.float16: (0.05, 0.01)}
_FLOAT32 = (1e-4, 1e-3)


def attribution(
    model: Model,
    recording: Recording,
    *,
    target: str | int,
    foil: str | int | None = None,
    position: int = -1,
    heads: bool = False,
    neurons: int = 0,
) -> Attribution:
    """What moved the target's log-probability along the stream, and what its logit is made of.

    On the weights as they are: ln_final's gain and centring are carried to the token's direction,
    its bias is a component of its own, and nothing is folded into the model. The checks hold the
    steps against the model's own log-probability (`waterfall_telescopes`) and the components
    against its own logit (`direct_closes`).

    Args:
        model: the one that made the recording.
        recording: one prompt's, with every point and all that attention and MLP wrote; for `heads`
            also "z", for `neurons` also "mlp_post".
        target: a token, as its text, "id:42" or an id.
        foil: another: every number is then the target's minus the foil's.
        position: whose prediction to explain; negative ones count from the end.
        heads: split attention into its heads and its bias.
        neurons: list so many neurons of each MLP, by the size of their share.

    Returns:
        Attribution: log-probabilities in nats, shares in logits.

    Raises:
        ResidError: a vector was not recorded, a token is not one token, or the position is outside
            of the prompt.

    Source: nostalgebraist 2020 for the waterfall's reading; Elhage et al. 2021, "A Mathematical
    Framework for Transformer Circuits", for direct attribution.
    """
    (at,) = resolve_positions([position], len(recording.ids))
    ids = [model.vocabulary.id_of(target, model.d_vocab)]
    if foil is not None:
        ids.append(model.vocabulary.id_of(foil, model.d_vocab, "the foil"))
    if neurons < 0:
        raise ResidError(f"neurons is {neurons}; it is at least 0")
    points = stream_points(model.n_layers, mids=True)
    with torch.no_grad():
        stream = recording.stream("all")[:, at]
        decoded = unembed.decode(model, stream, 1, ids)
        logprobs = _minus(decoded.tracked_logprobs).cpu().numpy()
        direction = token_direction(model, ids[0], ids[1] if foil is not None else None, "folded")
        direction = direction / model.ln_final_scale(stream[-1].to(direction.dtype))
        shares = dict(_shares(model, recording, at, direction, ids, heads))
        own = own_logits(model, recording, [at])[0].to(model.reading_dtype)
        strongest = _neurons(model, recording, at, direction, neurons) if neurons else None
    logit = float(_minus(own[ids]))
    direct = np.array([*shares.values()])
    remainder = logit - float(direct.sum())
    delta = np.diff(logprobs, prepend=0.0)
    own_logprob = float(_minus(own.log_softmax(0)[ids]))
    return Attribution(
        source=recording.source,
        checks=(
            _telescopes(model, float(delta.sum()) - own_logprob, at),
            _closes(model, remainder, max(abs(logit), float(np.abs(direct).max())), at),
        ),
        position=at,
        target_id=ids[0],
        target_token=model.vocabulary.show(ids[0]),
        foil_id=ids[1] if foil is not None else None,
        foil_token=model.vocabulary.show(ids[1]) if foil is not None else None,
        logit=logit,
        remainder=remainder,
        neurons=strongest,
        points=points,
        logprob=logprobs,
        delta=delta,
        components=tuple(shares),
        direct=direct,
    )


def _minus(values: torch.Tensor) -> torch.Tensor:
    """[...] the target's value, or the target's minus the foil's, from [..., tracked]."""
    return values[..., 0] - values[..., 1] if values.shape[-1] == 2 else values[..., 0]


def _shares(
    model: Model,
    recording: Recording,
    at: int,
    direction: torch.Tensor,
    ids: list[int],
    heads: bool,
) -> Iterator[tuple[str, float]]:
    """Every component's share of the logit, in the order in which the forward pass adds them."""

    def share(vector: torch.Tensor) -> float:
        return float(vector.to(direction.dtype) @ direction)

    yield "token", share(model.W_E[recording.ids[at]])
    yield "position", share(model.W_pos[at])
    for layer in range(model.n_layers):
        if heads:
            mixed = recording[f"{layer}.z"][at].to(direction.dtype)
            parts = (mixed * (model.W_O(layer).to(direction.dtype) @ direction)).view(
                model.n_heads, -1
            )
            for head, part in enumerate(parts.sum(1)):
                yield f"L{layer}H{head}", float(part)
            yield f"{layer}.attn_bias", share(model.b_O(layer))
        else:
            yield f"{layer}.attn", share(recording[f"{layer}.attn_out"][at])
        yield f"{layer}.mlp", share(recording[f"{layer}.mlp_out"][at])
    unembedding = _minus(model.W_U[:, ids].to(direction.dtype))
    yield "ln_final_bias", float(model.ln_final_bias @ unembedding)
    if model.b_U is not None:
        yield "b_U", float(_minus(model.b_U[ids]))


def _neurons(
    model: Model, recording: Recording, at: int, direction: torch.Tensor, n: int
) -> NeuronScores:
    layers, indices, scores = [], [], []
    for layer in range(model.n_layers):
        coefficient = recording[f"{layer}.mlp_post"][at].to(direction.dtype)
        shares = coefficient * (model.W_out(layer).to(direction.dtype) @ direction)
        top = shares.abs().topk(min(n, len(shares))).indices
        layers += [layer] * len(top)
        indices.append(top)
        scores.append(shares[top])
    return NeuronScores(
        layer=np.array(layers),
        neuron=torch.cat(indices).cpu().numpy(),
        score=torch.cat(scores).cpu().numpy(),
    )


def _telescopes(model: Model, error: float, at: int) -> Check:
    tolerance = _TOLERANCE.get(model.dtype, _FLOAT32)[0]
    passed = abs(error) <= tolerance
    where = f"{model.n_layers - 1}.post at position {at}"
    return Check("waterfall_telescopes", abs(error), tolerance, passed, None if passed else where)


def _closes(model: Model, remainder: float, size: float, at: int) -> Check:
    tolerance = _TOLERANCE.get(model.dtype, _FLOAT32)[1]
    error = abs(remainder) / max(size, 1e-12)
    passed = error <= tolerance
    where = f"the logit at position {at}"
    return Check("direct_closes", error, tolerance, passed, None if passed else where)
