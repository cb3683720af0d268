"""One run of the race: a variant under a seed, from its first step to its last."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.nn import functional

from resid.lab.race_models import Parameters, generator, initial_parameters, logits
from resid.lab.race_text import Text
from resid.lab.race_variants import Sizes, Variant

_WARM_UP = 0.1
_LAST_RATE = 0.1
_BETAS = (0.9, 0.99)
_CLIP = 1.0


@dataclass(frozen=True)
class Plan:
    """How every variant is trained."""

    sizes: Sizes
    steps: int
    batch: int
    """Sequences a step, each of `sizes.context` bytes."""
    learning_rate: float
    """At its highest, after the first tenth of the steps; a tenth of that is left at the end."""
    held_out: int
    """At most how many bytes of the held-out part are predicted at each measurement."""
    measured_at: tuple[int, ...]
    """Steps after which the held-out loss is measured; the first is 0, the last `steps`."""

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        warm = max(1, round(_WARM_UP * self.steps))
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        done = (step - warm) / max(1, self.steps - warm)
        falling = _LAST_RATE + (1 - _LAST_RATE) * (1 + math.cos(math.pi * done)) / 2
        return self.learning_rate * falling


@dataclass
class State:
    """Everything that a run has got so far, and all that it needs to go on."""

    parameters: Parameters
    first_moments: Parameters
    second_moments: Parameters
    step: int = 0
    """How many steps are done."""
    losses: list[float] = field(default_factory=list)
    """The held-out loss at each of `Plan.measured_at` that has been reached, in nats a byte."""


def begin(variant: Variant, plan: Plan, seed: int) -> State:
    """A run before its first step."""
    parameters = initial_parameters(variant, plan.sizes, seed)

    def zeros() -> Parameters:
        return {name: torch.zeros_like(value) for name, value in parameters.items()}

    return State(parameters, zeros(), zeros())


def advance(
    state: State,
    variant: Variant,
    plan: Plan,
    text: Text,
    seed: int,
    *,
    after_step: Callable[[], None],
    after_measurement: Callable[[State], None],
) -> None:
    """Train from where the run stands to its end.

    What a step reads depends on the seed and the step alone: every variant of one seed reads the
    same bytes in the same order, and a run that was interrupted goes on as if it had not been.

    Args:
        state: of the run; changed in place.
        variant: which block it trains.
        plan: how.
        text: what it reads.
        seed: of the run.
        after_step: called after every step; what it raises ends the run.
        after_measurement: called with the state whenever the held-out loss was measured.
    """
    # A window and the byte that follows it.
    reach = plan.sizes.context + 1
    order = torch.randint(
        len(text.train) - reach + 1,
        (plan.steps, plan.batch),
        generator=generator(seed, "order"),
    )
    train = torch.from_numpy(text.train)
    if state.step == 0 and not state.losses:
        _measure(state, variant, plan, text)
        after_measurement(state)
    while state.step < plan.steps:
        windows = train[order[state.step][:, None] + torch.arange(reach)]
        _step(state, variant, plan, windows)
        state.step += 1
        after_step()
        if state.step in plan.measured_at:
            _measure(state, variant, plan, text)
            after_measurement(state)


def _step(state: State, variant: Variant, plan: Plan, windows: torch.Tensor) -> None:
    """One step of Adam (Kingma & Ba, 1412.6980), the gradient's norm clipped at 1."""
    names = list(state.parameters)
    weights = list(state.parameters.values())
    predicted = logits(state.parameters, variant, plan.sizes, windows[:, :-1])
    loss = functional.cross_entropy(predicted.flatten(0, 1), windows[:, 1:].flatten())
    gradients = torch.autograd.grad(loss, weights)
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    scale = min(1.0, _CLIP / norm) if norm > 0 else 1.0
    rate = plan.rate(state.step)
    done = state.step + 1
    with torch.no_grad():
        for name, weight, gradient in zip(names, weights, gradients, strict=True):
            gradient = gradient * scale
            first = state.first_moments[name].lerp_(gradient, 1 - _BETAS[0])
            second = state.second_moments[name].lerp_(gradient.square(), 1 - _BETAS[1])
            spread = (second / (1 - _BETAS[1] ** done)).sqrt_().add_(1e-8)
            weight.addcdiv_(first, spread, value=-rate / (1 - _BETAS[0] ** done))


def _measure(state: State, variant: Variant, plan: Plan, text: Text) -> None:
    """Add the mean cross-entropy over the held-out bytes, in windows that do not overlap."""
    context = plan.sizes.context
    count = min(len(text.held_out) - 1, plan.held_out) // context
    ids = torch.from_numpy(text.held_out[: count * context + 1])
    inputs, targets = ids[:-1].view(count, context), ids[1:].view(count, context)
    total = 0.0
    with torch.no_grad():
        for start in range(0, count, plan.batch):
            part = slice(start, start + plan.batch)
            predicted = logits(state.parameters, variant, plan.sizes, inputs[part])
            losses = functional.cross_entropy(
                predicted.flatten(0, 1), targets[part].flatten(), reduction="sum"
            )
            total += float(losses)
    state.losses.append(total / (count * context))
