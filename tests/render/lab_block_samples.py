"""Results of the lab's block, toy and depth made by hand: no model, no torch."""

import numpy as np

from resid.results import Check
from resid.results.lab import LabBlock, LabDepth, LabSource, LabToy

VERSIONS = {"resid": "0.1.0", "torch": "2.13.0", "numpy": "2.4.0"}
STEPS = (
    "x", "ln1", "q", "k", "v", "scores", "weights", "z", "attn_out", "mid", "ln2", "mlp_pre",
    "mlp_post", "mlp_out", "post",
)  # fmt: skip
UNSEEN = {"x", "ln1", "q", "k", "v", "scores", "weights", "ln2"}
ALL_INITS = ("1/sqrt(n_in)", "1/sqrt(d)", "0.02", "uniform")


def make_block(tokens=("The", " capital", " of"), activation="gelu_new", error=2e-7):
    """A block of width 768 whose first position is replaced by " a"."""
    n = len(tokens)
    random = np.random.default_rng(0)
    settings = {
        "prompt": "".join(tokens),
        "layer": 3,
        "ids": tuple(range(n)),
        "tokens": tuple(tokens),
        "activation": activation,
    }
    shapes = {"q": (12, n, 64), "k": (12, n, 64), "v": (12, n, 64)}
    shapes |= {"scores": (12, n, n), "weights": (12, n, n)}
    shapes |= {"mlp_pre": (n, 3072), "mlp_post": (n, 3072)}
    alone = np.zeros(n)
    alone[0] = 0.9
    affine = random.normal(size=40)
    return LabBlock(
        source=LabSource("block", "gpt2", settings, 0, VERSIONS, "607a30d783dfa663"),
        checks=(Check("block_equals_original", error, 1e-5, error <= 1e-5, "post"),),
        layer=3,
        n_layers=12,
        steps=STEPS,
        shapes=tuple(shapes.get(step, (n, 768)) for step in STEPS),
        step_errors=np.array([np.nan if step in UNSEEN else error for step in STEPS]),
        points=("embed", *(f"{layer}.post" for layer in range(12))),
        stack_errors=np.linspace(0, 3e-7, 13),
        logit_error=4e-7,
        positions=tuple(range(n)),
        replaced=0,
        replaced_by=257,
        replaced_by_token=" a",
        change=np.linspace(1, 0.5, n),
        change_alone=alone,
        d_mlp=3072,
        affine_error=3e-7,
        bend=0.4,
        bend_linear=1e-7,
        sample_affine=affine,
        sample_linear=affine,
        sample_own=np.maximum(affine, 0),
    )


def make_toy(seeds=5, silent=False):
    """Gradients that fall by ten a layer without shortcuts and stay at a half with them."""
    gradients = np.stack([[10.0 ** np.arange(-5, 0), np.full(5, 0.5)]] * 3)
    draws = np.stack([[np.full(seeds, 1e-5), np.full(seeds, 0.5)]] * 3)
    if silent:
        gradients[2] = 0
        draws[2] = 0
    x = np.linspace(-2, 2, 9)
    slope = np.stack([x > 0] * 3).astype(float)
    slopes = (0.9, 0.1, -0.1)
    settings = {"sizes": (3, 3, 3, 3, 3, 1), "seeds": seeds}
    return LabToy(
        source=LabSource("toy", "a net of five layers", settings, 123, VERSIONS),
        checks=(Check("shortcut_adds_one", 0.0, 1e-12, True),),
        activations=("GELU (tanh)", "GELU (exact)", "ReLU"),
        layers=tuple(range(5)),
        gradients=gradients,
        first_gradients=draws,
        x=x,
        slope=slope,
        slope_shortcut=slope + 1,
        depth=48,
        slopes=slopes,
        product=np.array(slopes) ** 48,
        product_shortcut=(1 + np.array(slopes)) ** 48,
    )


def make_depth(layers=40, seeds=3, inits=ALL_INITS, last=1.0):
    """Streams that grow by a factor of their wiring a layer, gradients that shrink by it."""
    wirings = ("pre-LN", "post-LN", "no norm", "no residual", "neither")
    factors = np.array([1.04, 1.0, 1.7, 1.0, 0.01])[None, :, None, None]
    points = np.arange(layers + 1)
    spread = np.linspace(0.9, 1.1, seeds)[None, None, :, None]
    shape = (len(inits), 5, seeds, layers + 1)
    rms = np.broadcast_to(spread * factors**points, shape).copy()
    rms[..., -1] *= last
    gradient = np.broadcast_to(spread * factors ** (layers - points), shape).copy()
    depths = tuple(sorted({max(1, layers // 8), max(1, layers // 4), max(1, layers // 2), layers}))
    by_depth = np.broadcast_to(
        spread * np.array([1, 1.5, 1, 1, 1])[None, :, None, None] / np.sqrt(depths),
        (*shape[:3], len(depths)),
    ).copy()
    settings = {"layers": layers, "d_model": 64, "seeds": seeds}
    return LabDepth(
        source=LabSource("depth", "stacks of random blocks", settings, 0, VERSIONS),
        checks=(Check("chain_rule", 1e-16, 1e-9, True),),
        inits=inits,
        wirings=wirings,
        seeds=tuple(range(seeds)),
        layers=layers,
        points=("embed", *(f"{layer}.post" for layer in range(layers))),
        rms=rms,
        cosine=np.full(shape, 0.5),
        stream_gradient=gradient,
        weight_gradient=gradient[..., 1:],
        depths=depths,
        input_gradient=by_depth,
        first_gradient=by_depth,
        last_gradient=by_depth,
        band_low=1 + points / 2,
        band_high=1 + 3 * points / 2,
        attention_weights=16384,
        mlp_weights=32768,
    )
