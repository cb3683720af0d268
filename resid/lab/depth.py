"""Deep stacks of blocks at initialisation: what norm and shortcut do to signal and gradient.

The parts are those of `resid.lab.block`; what changes is how they are wired together, and from
what the weights are drawn. Everything is computed in float64: some of the gradients are far
smaller than what float32 can hold, and shall be shown as small, not as nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from resid.lab.block import MLP, Activation, CausalSelfAttention, LayerNorm, gelu_tanh
from resid.lab.pretrained import relu

D_MODEL, N_HEADS, D_MLP = 64, 4, 256
TOKENS, CLASSES = 32, 100
ACTIVATIONS: dict[str, Activation] = {"gelu": gelu_tanh, "relu": relu}


@dataclass(frozen=True)
class Wiring:
    """How a sublayer is joined to the stream."""

    residual: bool
    """Whether it adds to the stream, or replaces it."""
    norm: str | None
    """Whether a LayerNorm stands "before" the sublayer, "after" the sum, or nowhere."""

    def join(self, x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: LayerNorm) -> Tensor:
        """[T, d] the stream after a sublayer that read it."""
        written = sublayer(norm(x) if self.norm == "before" else x)
        summed = x + written if self.residual else written
        return norm(summed) if self.norm == "after" else summed


WIRINGS = {
    "pre-LN": Wiring(residual=True, norm="before"),
    "post-LN": Wiring(residual=True, norm="after"),
    "no norm": Wiring(residual=True, norm=None),
    "no residual": Wiring(residual=False, norm="before"),
    "neither": Wiring(residual=False, norm=None),
}

Draw = Callable[[Tensor, torch.Generator], Tensor]


def _normal(deviation: Callable[[int], float]) -> Draw:
    def draw(weight: Tensor, generator: torch.Generator) -> Tensor:
        # Always the same standard normals: initialisations and wirings differ in nothing else.
        unit = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
        return unit * deviation(weight.shape[0])

    return draw


def _uniform(weight: Tensor, generator: torch.Generator) -> Tensor:
    unit = torch.rand(weight.shape, generator=generator, dtype=torch.float64)
    return (2 * unit - 1) / math.sqrt(weight.shape[0])


INITS: dict[str, Draw] = {
    "1/sqrt(n_in)": _normal(lambda n_in: 1 / math.sqrt(n_in)),
    "1/sqrt(d)": _normal(lambda n_in: 1 / math.sqrt(D_MODEL)),
    "0.02": _normal(lambda n_in: 0.02),
    "uniform": _uniform,
}
"""By a name, how weights are drawn; biases are zero, gains one.

The standard deviation of normals: one over the root of a matrix's inputs, which keeps the size of
what goes through; one over the root of the width for all matrices; that of GPT-2. And torch's
default for linear layers, uniform with a third of the first one's variance.
"""


class Stack(nn.Module):
    """Blocks under one wiring, a head, an input and labels, all drawn from one seed."""

    def __init__(
        self, layers: int, wiring: Wiring, draw: Draw, activation: Activation, seed: int
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(TOKENS, D_MODEL, generator=generator, dtype=torch.float64)
        self.x = x / x.pow(2).mean(dim=-1, keepdim=True).sqrt()  # Every token of size 1, exactly.
        self.labels = torch.randint(CLASSES, (TOKENS,), generator=generator)
        head = torch.randn(D_MODEL, CLASSES, generator=generator, dtype=torch.float64)
        self.head = head / math.sqrt(D_MODEL)
        self.wiring = wiring
        self.attentions = nn.ModuleList(
            CausalSelfAttention(D_MODEL, N_HEADS) for _ in range(layers)
        )
        self.mlps = nn.ModuleList(MLP(D_MODEL, D_MLP, activation) for _ in range(layers))
        self.norm = LayerNorm(D_MODEL)  # At the start all norms are alike.
        self.double()
        for pair in zip(self.attentions, self.mlps, strict=True):
            for part in pair:
                for weight in (p for p in part.parameters() if p.ndim == 2):
                    weight.data = draw(weight, generator)

    def points(self, x: Tensor) -> list[Tensor]:
        """The stream [T, d] at its points: the input, then behind every block."""
        points = [x]
        for attention, mlp in zip(self.attentions, self.mlps, strict=True):
            mid = self.wiring.join(points[-1], attention, self.norm)
            points.append(self.wiring.join(mid, mlp, self.norm))
        return points

    def loss(self, last: Tensor) -> Tensor:
        """Cross-entropy of random labels behind a random head.

        Not the sum or the mean square of the last stream: behind a LayerNorm both are constants,
        and their gradients are rounding and nothing else. Where norms stand before the sublayers,
        one more stands before the head, as in GPT-2.
        """
        read = self.norm(last) if self.wiring.norm == "before" else last
        return nn.functional.cross_entropy(read @ self.head, self.labels)


@dataclass(frozen=True)
class Pass:
    """What one stack does with its input and with the gradient of its loss."""

    rms: list[float]
    """[point] root mean square of the stream."""
    cosine: list[float]
    """[point] mean cosine between the tokens of the stream, of all pairs."""
    stream_gradient: list[float]
    """[point] norm of the loss's gradient with respect to the stream."""
    weight_gradient: list[float]
    """[layer] norm of the loss's gradient with respect to the MLP's W_out."""


def measure(stack: Stack) -> Pass:
    """Forward once and back once."""
    with torch.enable_grad():
        points = stack.points(stack.x.requires_grad_())
        weights = [mlp.get_parameter("W_out") for mlp in stack.mlps]
        gradients = torch.autograd.grad(stack.loss(points[-1]), [*points, *weights])
    sizes = [_norm(gradient) for gradient in gradients]
    return Pass(
        rms=[_norm(point.detach()) / math.sqrt(point.numel()) for point in points],
        cosine=[_cosine(point.detach()) for point in points],
        stream_gradient=sizes[: len(points)],
        weight_gradient=sizes[len(points) :],
    )


def chain_rule_error(stack: Stack, seed: int) -> float:
    """How far forward and backward disagree, at the point of the stream where they do most.

    An input that moves in some direction moves every point of the stream, and the loss. By the
    chain rule the gradient at a point, times how that point moves, is how the loss moves: at every
    point the same number. Movements come from forward differentiation, gradients from backward.

    Returns:
        The largest difference, in units of gradient times movement.
    """
    generator = torch.Generator().manual_seed(seed)
    direction = torch.randn(stack.x.shape, generator=generator, dtype=torch.float64)
    x = stack.x.detach()
    dual: Any = forward_ad  # torch gives it no types.
    with warnings.catch_warnings(), torch.no_grad(), dual.dual_level():
        # Of torch, about how torch itself compiles the rules of forward differentiation.
        warnings.simplefilter("ignore", DeprecationWarning)
        moving = stack.points(dual.make_dual(x, direction))
        moves = [dual.unpack_dual(point).tangent for point in moving]
        loss_moves = float(dual.unpack_dual(stack.loss(moving[-1])).tangent)
    with torch.enable_grad():
        points = stack.points(x.clone().requires_grad_())
        gradients = torch.autograd.grad(stack.loss(points[-1]), points)
    off = [
        abs(float((gradient * move).sum()) - loss_moves) / (_norm(gradient) * _norm(move))
        for gradient, move in zip(gradients, moves, strict=True)
    ]
    return max(each if math.isfinite(each) else math.inf for each in off)


def depths_up_to(layers: int) -> list[int]:
    """An eighth, a quarter, a half and the whole of so many layers: 5, 10, 20, 40."""
    return sorted({max(1, layers // 8), max(1, layers // 4), max(1, layers // 2), layers})


def second_moment(activation: Activation) -> float:
    """The mean of an activation's square over standard normal inputs."""
    z = torch.linspace(-12, 12, 48_001, dtype=torch.float64)
    density = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return float(torch.trapezoid(activation(z).pow(2) * density, z))


def _norm(x: Tensor) -> float:
    """The L2 norm, also where the squares are too large or too small for a float64."""
    largest = float(x.abs().max())
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * float((x / largest).norm())


def _cosine(x: Tensor) -> float:
    """Mean over all pairs of different rows."""
    largest = x.abs().amax(dim=-1, keepdim=True)
    rows = nn.functional.normalize(x / largest.clamp(min=torch.finfo(x.dtype).tiny), dim=-1)
    n = len(rows)
    return float((rows.sum(0).pow(2).sum() - rows.pow(2).sum()) / (n * (n - 1)))
