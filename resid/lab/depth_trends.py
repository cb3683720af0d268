"""Five wirings, several depths, several initialisations, several seeds: the experiment on depth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from resid.errors import ResidError
from resid.lab.depth import (
    ACTIVATIONS,
    CLASSES,
    D_MLP,
    D_MODEL,
    INITS,
    N_HEADS,
    TOKENS,
    WIRINGS,
    Pass,
    Stack,
    chain_rule_error,
    depths_up_to,
    measure,
    second_moment,
)
from resid.lab.source import lab_source
from resid.lab.threads import one_thread
from resid.points import stream_points
from resid.results import Check, Floats
from resid.results.lab import LabDepth

# For stacks with a norm: where none holds attention's scores back they saturate the softmax, and
# rounding has the say.
_CHAIN_RULE = 1e-9
# What the epsilon in a LayerNorm takes where the variance is 0.005 or more.
_UNIT = 1e-3


def depth(
    layers: int = 40,
    *,
    inits: Sequence[str] | None = None,
    activation: str = "gelu",
    seed: int = 0,
    seeds: int = 3,
    watch: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> LabDepth:
    """Signal and gradient in deep stacks at initialisation, under five ways of joining sublayers.

    Each stack is given 32 random vectors as tokens and scored by the cross-entropy of random labels
    behind a random head. The same seed gives the same input, labels, head and (up to their scale)
    weights to every wiring and every depth, so that stacks differ in what is compared alone.

    Args:
        layers: of the deepest stack; an eighth, a quarter and a half of it are measured too.
        inits: from what weights are drawn, names of `resid.lab.depth.INITS`; None: all.
        activation: "gelu" (tanh) or "relu".
        seed: the first one.
        seeds: how many, from `seed` on.
        watch: is given what is still to be run, and yields it, for a progress bar.

    Returns:
        LabDepth, its axes init, wiring, seed, point, layer and depth. Nothing here is trained: it
        says what a first step of training would have to work with, not what training reaches.

    Raises:
        ResidError: there are no layers or seeds, or a name is not one of those above.

    Source: Xiong et al., "On Layer Normalization in the Transformer Architecture" (2002.04745):
    under pre-LN the last layer's gradient falls with depth, under post-LN it does not. That
    gradients of post-LN decay towards the input depends on the initialisation, which is why
    several are measured. He et al. (1512.03385) for the shortcut.
    """
    inits = tuple(INITS) if inits is None else tuple(dict.fromkeys(inits))
    _refuse(layers, inits, activation, seeds)
    g = ACTIVATIONS[activation]
    depths = depths_up_to(layers)
    cells = [(i, w, s, n) for i in inits for w in WIRINGS for s in range(seeds) for n in depths]
    passes: dict[tuple[str, str, int, int], Pass] = {}
    chain: dict[str, float] = {}
    with one_thread():
        for init, wiring, nth, n in watch(cells):
            stack = Stack(n, WIRINGS[wiring], INITS[init], g, seed + nth)
            passes[init, wiring, nth, n] = measure(stack)
            if nth == 0 and n == layers and init == inits[0] and WIRINGS[wiring].norm:
                chain[f"{wiring}, {init}"] = chain_rule_error(stack, seed)

    def gather(value: Callable[[Pass], Any], n: int) -> Floats:
        return np.array(
            [[[value(passes[i, w, s, n]) for s in range(seeds)] for w in WIRINGS] for i in inits]
        )

    def over_depths(value: Callable[[Pass], float]) -> Floats:
        return np.stack([gather(value, n) for n in depths], axis=-1)

    rms = gather(lambda done: done.rms, layers)
    m, blocks = second_moment(g), np.arange(layers + 1)
    block = stack_sizes()
    settings = {
        "layers": layers,
        "d_model": D_MODEL,
        "heads": N_HEADS,
        "d_mlp": D_MLP,
        "length": TOKENS,
        "classes": CLASSES,
        "activation": activation,
        "seeds": seeds,
    }
    names = tuple(WIRINGS)
    stream_gradient = gather(lambda done: done.stream_gradient, layers)
    return LabDepth(
        source=lab_source("depth", "stacks of random blocks", settings, seed),
        checks=(
            _chain_rule(chain),
            _post_ln_is_unit(rms[:, names.index("post-LN"), :, 1:]),
            _finite(rms, stream_gradient, inits, names),
        ),
        inits=inits,
        wirings=names,
        seeds=tuple(range(seed, seed + seeds)),
        layers=layers,
        points=stream_points(layers),
        rms=rms,
        cosine=gather(lambda done: done.cosine, layers),
        stream_gradient=stream_gradient,
        weight_gradient=gather(lambda done: done.weight_gradient, layers),
        depths=tuple(depths),
        input_gradient=over_depths(lambda done: done.stream_gradient[0]),
        first_gradient=over_depths(lambda done: done.weight_gradient[0]),
        last_gradient=over_depths(lambda done: done.weight_gradient[-1]),
        band_low=1 + m * blocks,
        band_high=1 + (1 + m) * blocks,
        attention_weights=block[0],
        mlp_weights=block[1],
    )


def stack_sizes() -> tuple[int, int]:
    """The weights of one block's attention and of its MLP, counted, without biases."""
    stack = Stack(1, WIRINGS["pre-LN"], INITS["0.02"], ACTIVATIONS["gelu"], 0)
    attention, mlp = (
        sum(weight.numel() for weight in part.parameters() if weight.ndim == 2)
        for part in (stack.attentions[0], stack.mlps[0])
    )
    return attention, mlp


def _refuse(layers: int, inits: Sequence[str], activation: str, seeds: int) -> None:
    if layers < 1 or seeds < 1:
        raise ResidError(f"there are {layers} layers and {seeds} seeds; give at least one of each")
    unknown = [name for name in inits if name not in INITS]
    if unknown or not inits:
        told = f"there is no initialisation '{unknown[0]}'" if unknown else "no initialisation"
        raise ResidError(f"{told}; choose from {', '.join(INITS)}")
    if activation not in ACTIVATIONS:
        raise ResidError(f"the activation is '{activation}'; choose {' or '.join(ACTIVATIONS)}")


def _chain_rule(errors: dict[str, float]) -> Check:
    where = max(errors, key=lambda place: errors[place])
    passed = errors[where] <= _CHAIN_RULE
    return Check("chain_rule", errors[where], _CHAIN_RULE, passed, None if passed else where)


def _post_ln_is_unit(rms: Floats) -> Check:
    """[init, seed, point] behind a LayerNorm without gain the stream has size one."""
    off = np.abs(rms - 1)
    error = float(off.max())
    passed = error <= _UNIT
    point = int(np.unravel_index(off.argmax(), off.shape)[2])
    return Check("post_ln_is_unit", error, _UNIT, passed, None if passed else f"{point}.post")


def _finite(
    rms: Floats, gradients: Floats, inits: tuple[str, ...], wirings: tuple[str, ...]
) -> Check:
    def place(i: int, j: int, _: int, p: int) -> str:
        return f"{'embed' if p == 0 else f'{p - 1}.post'}, {wirings[j]}, {inits[i]}"

    return Check.of_finite(np.isfinite(rms) & np.isfinite(gradients), place)
