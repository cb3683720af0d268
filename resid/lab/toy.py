"""A net of five small layers, with and without shortcuts: how much gradient reaches each layer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from resid.lab.source import lab_source
from resid.lab.threads import one_thread
from resid.results import Check, Floats
from resid.results.lab import LabToy

SIZES = (3, 3, 3, 3, 3, 1)
INPUT = (1.0, 0.0, -1.0)
PUBLISHED_SEED = 123
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "GELU (tanh)": lambda: nn.GELU(approximate="tanh"),
    "GELU (exact)": nn.GELU,
    "ReLU": nn.ReLU,
}
# Without shortcuts, then with them; the first activation, that seed.
PUBLISHED = (
    (2.01736e-4, 1.20112e-4, 7.15204e-4, 1.398874e-3, 5.049646e-3),
    (0.2216979, 0.2069411, 0.3289700, 0.2665732, 1.3258542),
)
# torch's versions round the sixth digit differently.
PUBLISHED_TOLERANCE = 1e-4
DEPTH = 48
SLOPES = (0.9, 0.5, 0.1, -0.1)
"""Of a scalar layer f, of which 48 are stacked."""


class DeepNet(nn.Module):
    """Five linear layers, an activation function behind each."""

    def __init__(self, activation: Callable[[], nn.Module], shortcut: bool) -> None:
        """Weights as torch draws them from its global generator.

        Args:
            activation: makes the module behind the layers.
            shortcut: add to a layer's output what went in, where the two have the same shape.
        """
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(n_in, n_out) for n_in, n_out in pairwise(SIZES))
        self.activation = activation()
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        """[batch, 3] -> [batch, 1]."""
        for linear in self.linears:
            out = self.activation(linear(x))
            x = x + out if self.shortcut and x.shape == out.shape else out
        return x


def toy(seed: int = PUBLISHED_SEED, seeds: int = 100) -> LabToy:
    """The mean gradient of every layer with and without shortcuts, and what explains it.

    One input goes through the net, the loss is the squared distance of the output from zero, and
    each layer is given the mean of the absolute gradient over its weights. Beside it, on numbers:
    the slope of x + f(x) is that of f plus one; and 48 layers multiply their slopes.

    Args:
        seed: of the weights; with 123 the first net is the published one, and is checked.
        seeds: how many nets to draw, this seed's and those that follow, for the spread.

    Returns:
        LabToy, its axes activation, net (without shortcut, with it), layer, draw, x and slope.

    Source: Raschka, "Build a Large Language Model (From Scratch)" (2024), chapter 4, listing 4.5
    and its printed gradients.
    """
    gradients = np.array(
        [[mean_gradients(make, shortcut, seed) for shortcut in (False, True)] for make in _makers()]
    )
    draws = np.array(
        [
            [
                [mean_gradients(make, shortcut, seed + i)[0] for i in range(seeds)]
                for shortcut in (False, True)
            ]
            for make in _makers()
        ]
    )
    xs = torch.linspace(-4, 4, 161, dtype=torch.float64)
    slope = np.stack([_slopes(make(), xs, shortcut=False) for make in _makers()])
    slope_shortcut = np.stack([_slopes(make(), xs, shortcut=True) for make in _makers()])
    product = np.array([_through(slope, DEPTH, shortcut=False) for slope in SLOPES])
    product_shortcut = np.array([_through(slope, DEPTH, shortcut=True) for slope in SLOPES])

    one = float(np.abs(slope_shortcut - slope - 1).max())
    checks = [
        *_published(gradients[0], seed),
        Check("shortcut_adds_one", one, 1e-12, one <= 1e-12, _unless(one <= 1e-12, "x + f(x)")),
        _powers(product, product_shortcut),
    ]
    settings = {"sizes": SIZES, "input": INPUT, "target": 0, "loss": "squared", "seeds": seeds}
    return LabToy(
        source=lab_source("toy", "a net of five layers", settings, seed),
        checks=tuple(checks),
        activations=tuple(ACTIVATIONS),
        layers=tuple(range(len(SIZES) - 1)),
        gradients=gradients,
        first_gradients=draws,
        x=xs.numpy(),
        slope=slope,
        slope_shortcut=slope_shortcut,
        depth=DEPTH,
        slopes=SLOPES,
        product=product,
        product_shortcut=product_shortcut,
    )


def mean_gradients(activation: Callable[[], nn.Module], shortcut: bool, seed: int) -> list[float]:
    """[layer] the mean absolute gradient over each layer's weights.

    Args:
        activation: makes the module behind the layers.
        shortcut: whether the net has shortcuts.
        seed: of its weights; torch's global generator is left as it was.
    """
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        torch.manual_seed(seed)
        net = DeepNet(activation, shortcut)
        loss = net(torch.tensor([INPUT])).pow(2).mean()
        weights = [weight for weight in net.parameters() if weight.ndim == 2]
        gradients = torch.autograd.grad(loss, weights)
    return [float(gradient.abs().mean()) for gradient in gradients]


def _makers() -> list[Callable[[], nn.Module]]:
    return list(ACTIVATIONS.values())


def _slopes(f: nn.Module, xs: Tensor, shortcut: bool) -> Floats:
    """[x] the derivative of f, or of x + f(x), as autograd finds it."""
    x = xs.clone().requires_grad_()
    y = x + f(x) if shortcut else f(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    return slope.numpy()


def _through(slope: float, depth: int, shortcut: bool) -> float:
    """What of a gradient comes through a stack of scalar layers, as autograd finds it."""
    x = torch.ones((), dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(depth):
        y = y + slope * y if shortcut else slope * y
    (gradient,) = torch.autograd.grad(y, x)
    return float(gradient)


def _published(gradients: Floats, seed: int) -> list[Check]:
    """The published net against its published gradients; nothing for another seed."""
    if seed != PUBLISHED_SEED:
        return []
    errors = np.abs(gradients / np.array(PUBLISHED) - 1)
    net, layer = np.unravel_index(errors.argmax(), errors.shape)
    error = float(errors.max())
    passed = error <= PUBLISHED_TOLERANCE
    where = f"layer {layer} {'with' if net else 'without'} shortcuts"
    return [Check("published", error, PUBLISHED_TOLERANCE, passed, _unless(passed, where))]


def _powers(product: Floats, product_shortcut: Floats) -> Check:
    """Slopes multiply: f by f, and with a shortcut one plus f by one plus f."""
    powers = np.array([[s**DEPTH, (1 + s) ** DEPTH] for s in SLOPES])
    errors = np.abs(np.stack([product, product_shortcut], axis=1) / powers - 1)
    error = float(errors.max())
    worst = int(errors.max(1).argmax())
    passed = error <= 1e-12
    return Check("slopes_multiply", error, 1e-12, passed, _unless(passed, f"slope {SLOPES[worst]}"))


def _unless(passed: bool, where: str) -> str | None:
    return None if passed else where
