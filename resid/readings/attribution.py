"""Which part of the network moved an answer: two exact replies that must not be confused.

The *waterfall* decodes every point of the stream as a lens does, and says by how much each sublayer
moved the token's log-probability. The *direct* attribution freezes the scale that ln_final divides
by at the last point; the logit is then a plain sum over everything that ever wrote to the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from resid import unembed
from resid.errors import ResidError
from resid.model import Model
from resid.points import resolve_positions, stream_points
from resid.projection import token_direction
from resid.readings.logit_lens import own_logits
from resid.recording import Recording, check_made_by, check_size
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
        ResidError: the recording is another model's, a vector was not recorded, a token is not one
            token, or the position is outside of the prompt.

    Source: nostalgebraist 2020 for the waterfall's reading; Elhage et al. 2021, "A Mathematical
    Framework for Transformer Circuits", for direct attribution.
    """
    check_made_by(model, recording)
    (at,) = resolve_positions([position], len(recording.ids))
    wanted = model.vocabulary.id_of(target, model.d_vocab)
    (found,) = attributions(
        model, recording, targets={at: wanted}, foil=foil, heads=heads, neurons=neurons
    )
    return found


def attributions(
    model: Model,
    recording: Recording,
    *,
    targets: Mapping[int, int],
    foil: str | int | None = None,
    heads: bool = False,
    neurons: int = 0,
) -> list[Attribution]:
    """One `attribution` for every position, in their order, each of a token of its own.

    The vocabulary is read once for all of them.

    Args:
        model: as for `attribution`, as are the others.
        recording: one prompt's.
        targets: the id to explain at each position; negative positions count from the end.
        foil: one token for all.
        heads: split attention.
        neurons: list so many of each MLP.

    Raises:
        ResidError: as `attribution`.
    """
    if neurons < 0:
        raise ResidError(f"neurons is {neurons}; it is at least 0")
    check_made_by(model, recording)
    at = resolve_positions([*targets], len(recording.ids))
    # [pos, tracked]: the target, and the foil where there is one.
    wanted = {position % len(recording.ids): target for position, target in targets.items()}
    pairs = [[wanted[position]] for position in at]
    if foil is not None:
        pairs = [[*pair, model.vocabulary.id_of(foil, model.d_vocab, "the foil")] for pair in pairs]
    points = stream_points(model.n_layers, mids=True)
    with torch.no_grad():
        ids = torch.tensor(pairs, device=model.device)
        stream = recording.stream("all")[:, at]  # [point, pos, d_model]
        decoded = unembed.decode(model, stream.flatten(0, 1), 1, ids.repeat(len(points), 1))
        logprobs = _minus(decoded.tracked_logprobs).view(len(points), len(at)).cpu().numpy()
        directions = torch.stack(
            [token_direction(model, pair[0], _foil(pair), "folded") for pair in pairs]
        )
        directions /= model.ln_final_scale(stream[-1].to(directions.dtype))[:, None]
        shares = dict(_shares(model, recording, at, directions, ids, heads))
        direct = torch.stack([*shares.values()], 1).cpu().numpy()  # [pos, component]
        own = own_logits(model, recording, at).to(model.reading_dtype)
        logits = _minus(own.gather(1, ids)).tolist()
        own_logprobs = _minus(own.log_softmax(1).gather(1, ids)).tolist()
        strongest = [
            _neurons(model, recording, position, direction, neurons) if neurons else None
            for position, direction in zip(at, directions, strict=True)
        ]
    found = []
    for i, position in enumerate(at):
        remainder = logits[i] - float(direct[i].sum())
        delta = np.diff(logprobs[:, i], prepend=0.0)
        size = max(abs(logits[i]), float(np.abs(direct[i]).max()))
        other = _foil(pairs[i])
        found.append(
            Attribution(
                source=recording.source,
                checks=(
                    _telescopes(model, float(delta.sum()) - own_logprobs[i], position),
                    _closes(model, remainder, size, position),
                ),
                position=position,
                target_id=pairs[i][0],
                target_token=model.vocabulary.show(pairs[i][0]),
                foil_id=other,
                foil_token=None if other is None else model.vocabulary.show(other),
                logit=logits[i],
                remainder=remainder,
                neurons=strongest[i],
                points=points,
                logprob=logprobs[:, i],
                delta=delta,
                components=tuple(shares),
                direct=direct[i],
            )
        )
    return found


def _foil(pair: Sequence[int]) -> int | None:
    return pair[1] if len(pair) > 1 else None


def _minus(values: torch.Tensor) -> torch.Tensor:
    """[...] the target's value, or the target's minus the foil's, from [..., tracked]."""
    return values[..., 0] - values[..., 1] if values.shape[-1] == 2 else values[..., 0]


def _shares(
    model: Model,
    recording: Recording,
    at: list[int],
    directions: torch.Tensor,
    ids: torch.Tensor,
    heads: bool,
) -> Iterator[tuple[str, torch.Tensor]]:
    """Every component's share [pos] of the logit, in the order of the forward pass."""

    def share(vectors: torch.Tensor) -> torch.Tensor:
        return (vectors.to(directions.dtype) * directions).sum(-1)

    yield "token", share(model.W_E[[recording.ids[position] for position in at]])
    yield "position", share(model.W_pos[at])
    for layer in range(model.n_layers):
        if heads:
            mixed = recording[f"{layer}.z"][at].to(directions.dtype)
            parts = mixed * (directions @ model.W_O(layer).to(directions.dtype).T)
            by_head = parts.view(len(at), model.n_heads, -1).sum(2)
            for head in range(model.n_heads):
                yield f"L{layer}H{head}", by_head[:, head]
            yield f"{layer}.attn_bias", share(model.b_O(layer))
        else:
            yield f"{layer}.attn", share(recording[f"{layer}.attn_out"][at])
        yield f"{layer}.mlp", share(recording[f"{layer}.mlp_out"][at])
    unembeddings = _minus(model.W_U.T[ids].transpose(1, 2).to(directions.dtype))  # [pos, d_model]
    yield "ln_final_bias", (model.ln_final_bias.to(directions.dtype) * unembeddings).sum(-1)
    if model.b_U is not None:
        yield "b_U", _minus(model.b_U[ids].to(directions.dtype))


def _neurons(
    model: Model, recording: Recording, at: int, direction: torch.Tensor, n: int
) -> NeuronScores:
    layers, indices, scores = [], [], []
    for layer in range(model.n_layers):
        coefficient = recording[f"{layer}.mlp_post"][at].to(direction.dtype)
        values = model.W_out(layer).to(direction.dtype)
        check_size(model, recording, "d_mlp", len(coefficient), len(values))
        shares = coefficient * (values @ direction)
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
