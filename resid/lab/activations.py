"""Five activation functions, their slopes, and what they do to what passes.

ReLU; GELU, x times the chance that a standard normal variable is below x (Hendrycks & Gimpel,
1606.08415), exact and as its tanh form, which GPT-2 has; SiLU; and GELU as x sigmoid(1.702 x). All
are x/2 plus something even, so that f(x) - f(-x) = x. No torch, no model: formulas in numpy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from resid.results import Bools, Check, Floats
from resid.results.lab import LabActivations, LabSource
from resid.results.lab.activations import FLAT, ActivationsInModel

Cdf = Callable[[Floats], Floats]

_QUICK = 1.702
_CUBIC = 0.044715


def normal_cdf(x: Floats) -> Floats:
    """The chance that a standard normal variable is below x."""
    half: Any = np.vectorize(lambda each: math.erfc(-each / math.sqrt(2)) / 2, otypes=[float])
    return np.asarray(half(x), dtype=np.float64)


def _density(x: Floats) -> Floats:
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _sigmoid(x: Floats) -> Floats:
    return (1 + np.tanh(x / 2)) / 2


def relu(x: Floats, cdf: Cdf) -> tuple[Floats, Floats]:
    """max(0, x); its slope at 0 itself is taken as 0, as torch does."""
    return np.maximum(x, 0), (x > 0).astype(np.float64)


def gelu(x: Floats, cdf: Cdf) -> tuple[Floats, Floats]:
    """GELU: x cdf(x)."""
    below = cdf(x)
    return x * below, below + x * _density(x)


def gelu_tanh(x: Floats, cdf: Cdf) -> tuple[Floats, Floats]:
    """Its tanh form: x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2."""
    scale = math.sqrt(2 / math.pi)
    bent = np.tanh(scale * (x + _CUBIC * x**3))
    inner = scale * (1 + 3 * _CUBIC * x * x)
    return x * (1 + bent) / 2, (1 + bent) / 2 + x * (1 - bent * bent) * inner / 2


def silu(x: Floats, cdf: Cdf) -> tuple[Floats, Floats]:
    """SiLU: x sigmoid(x)."""
    gate = _sigmoid(x)
    return x * gate, gate * (1 + x * (1 - gate))


def quick_gelu(x: Floats, cdf: Cdf) -> tuple[Floats, Floats]:
    """GELU by a sigmoid: x sigmoid(1.702 x)."""
    gate = _sigmoid(_QUICK * x)
    return x * gate, gate * (1 + _QUICK * x * (1 - gate))


Function = Callable[[Floats, Cdf], tuple[Floats, Floats]]

FUNCTIONS: dict[str, tuple[str, Function]] = {
    "ReLU": ("relu", relu),
    "GELU": ("gelu", gelu),
    "tanh GELU": ("gelu_new", gelu_tanh),
    "SiLU": ("silu", silu),
    "quick GELU": ("quick_gelu", quick_gelu),
}
"""By name: Hugging Face's name, and the value and the slope at x, given the normal distribution."""

_COMPARED = (
    ("tanh GELU", "GELU"),
    ("quick GELU", "GELU"),
    ("quick GELU", "tanh GELU"),
    ("SiLU", "GELU"),
    ("GELU", "ReLU"),
    ("tanh GELU", "ReLU"),
    ("SiLU", "ReLU"),
)
# Beyond it every pair is closer than anywhere that counts.
_FAR = 12.0
_SHOWN = np.linspace(-4, 4, 161)
# Centres of narrow strips of the normal distribution: none lies on ReLU's corner.
_STRIP = 1e-3
# So far off is no more than one seed in ten million.
_STANDARD_ERRORS = 6.0
_DRAWS = 50_000
_NORMAL = (np.arange(-_FAR, _FAR, _STRIP) + _STRIP / 2).round(6)


def activations(
    inside: ActivationsInModel | None = None,
    source: LabSource | None = None,
    seed: int = 0,
    finite: Check | None = None,
) -> LabActivations:
    """The functions measured: curves, minima, slopes, differences, and what normal inputs meet.

    Args:
        inside: the same for the pre-activations of a model, from
            `resid.lab.activations_in_model.measure`.
        source: where those come from.
        seed: of the normal inputs that integrals are held against.
        finite: whether the model's numbers are.
    """
    pairs = [function(_SHOWN, normal_cdf) for _, function in FUNCTIONS.values()]
    minima = [_minimum(function) for _, function in FUNCTIONS.values()]
    steepest = [_steepest(function) for _, function in FUNCTIONS.values()]
    names = list(FUNCTIONS)
    apart = [(a, b, *extreme) for a, b in _COMPARED for extreme in _extremes(a, b)]
    normal = _over_normal()
    return LabActivations(
        source=source or _source(seed),
        checks=(
            *_checks(normal[:, 0]),
            _check_drawn(normal, seed),
            *([] if finite is None else [finite]),
            *_check_inside(inside),
        ),
        functions=tuple(names),
        hugging_face=tuple(known for known, _ in FUNCTIONS.values()),
        x=_SHOWN,
        value=np.array([value for value, _ in pairs]),
        slope=np.array([slope for _, slope in pairs]),
        minimum_at=np.array([at for at, _ in minima]),
        minimum=np.array([value for _, value in minima]),
        steepest_at=np.array([at for at, _ in steepest]),
        steepest=np.array([slope for _, slope in steepest]),
        normal_mean=normal[:, 0],
        normal_square=normal[:, 1],
        normal_zero=normal[:, 2],
        normal_no_slope=normal[:, 3],
        normal_flat=normal[:, 4],
        first=tuple(names.index(a) for a, _, _, _ in apart),
        second=tuple(names.index(b) for _, b, _, _ in apart),
        apart_at=np.array([at for _, _, at, _ in apart]),
        apart=np.array([difference for _, _, _, difference in apart]),
        inside=inside,
    )


def shares(function: Function, x: Floats, cdf: Cdf = normal_cdf) -> tuple[Bools, Bools, Bools]:
    """Of each input, whether its value is exactly 0, its slope exactly 0, its slope nearly 0."""
    value, slope = function(x, cdf)
    flat: Bools = np.abs(slope) < FLAT
    return value == 0, slope == 0, flat


def _minimum(function: Function) -> tuple[float, float]:
    """Where the function is lowest, and what it is there; nowhere in particular for ReLU."""
    x = np.linspace(-4, 0, 4001)
    value = function(x, normal_cdf)[0]
    lowest = int(value.argmin())
    if (value == value[lowest]).sum() > 1:
        return math.nan, float(value[lowest])

    def rises(at: float) -> bool:
        return bool(function(np.array([at]), normal_cdf)[1][0] > 0)

    low, high = float(x[lowest - 1]), float(x[lowest + 1])
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if rises(middle) else (middle, high)
    return high, float(function(np.array([high]), normal_cdf)[0][0])


def _steepest(function: Function) -> tuple[float, float]:
    """Where the slope is largest, and how large; nowhere in particular where it stays so."""
    x = np.linspace(0, 6, 6001)
    slope = function(x, normal_cdf)[1]
    if (slope == slope.max()).sum() > 1:
        return math.nan, float(slope.max())
    at = _peak(lambda at: float(function(np.array([at]), normal_cdf)[1][0]), x, int(slope.argmax()))
    return at, float(function(np.array([at]), normal_cdf)[1][0])


def _extremes(first: str, second: str) -> list[tuple[float, float]]:
    """Where two functions are furthest apart, x >= 0 for both signs; the largest difference first.

    Every local extreme, with first minus second there.
    """

    def difference(at: Floats) -> Floats:
        return FUNCTIONS[first][1](at, normal_cdf)[0] - FUNCTIONS[second][1](at, normal_cdf)[0]

    x = np.linspace(0, _FAR, 6001)
    size = np.abs(difference(x))
    # Below it the difference is rounding.
    local = (size[1:-1] > size[:-2]) & (size[1:-1] >= size[2:]) & (size[1:-1] > 1e-9)
    found = []
    for i in np.flatnonzero(local) + 1:
        at = _peak(lambda at: abs(float(difference(np.array([at]))[0])), x, int(i))
        found.append((at, float(difference(np.array([at]))[0])))
    return sorted(found, key=lambda extreme: -abs(extreme[1]))


def _peak(height: Callable[[float], float], x: Floats, i: int) -> float:
    """The place of a maximum that lies between the neighbours of x[i], by golden section."""
    low, high = float(x[max(i - 1, 0)]), float(x[min(i + 1, len(x) - 1)])
    golden = (math.sqrt(5) - 1) / 2
    while high - low > 1e-9:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if height(left) > height(right) else (left, high)
    return (low + high) / 2


def _over_normal() -> Floats:
    """[function, 5] for standard normal inputs: mean, mean square, and the three `shares`."""
    weights = _STRIP * _density(_NORMAL)
    rows = []
    for _, function in FUNCTIONS.values():
        value = function(_NORMAL, normal_cdf)[0]
        of = [value, value * value, *shares(function, _NORMAL)]
        rows.append([float(np.dot(each, weights)) for each in of])
    return np.array(rows)


def _checks(means: Floats) -> tuple[Check, ...]:
    """Identities that hold for all five functions, or for one whose integral is known."""
    halves, slopes = (0.0, ""), (0.0, "")
    x, step = _SHOWN, 1e-6
    for name, (_, function) in FUNCTIONS.items():
        odd = function(x, normal_cdf)[0] - function(-x, normal_cdf)[0] - x
        halves = max(halves, (float(np.abs(odd).max()), name))
        smooth = np.abs(x) > step  # ReLU has no slope at its corner.
        ahead, behind = (function(x + by, normal_cdf)[0] for by in (step, -step))
        off = (ahead - behind) / (2 * step) - function(x, normal_cdf)[1]
        slopes = max(slopes, (float(np.abs(off[smooth]).max()), name))
    known = abs(float(means[list(FUNCTIONS).index("GELU")]) - 1 / (2 * math.sqrt(math.pi)))
    return (
        _check("x_apart", *halves, 1e-14),
        _check("slopes_are_derivatives", *slopes, 1e-8),
        _check("normal_mean_is_known", known, "GELU", 1e-6),
    )


def _check_drawn(normal: Floats, seed: int) -> Check:
    """The integrals against as many means over inputs that were drawn, in standard errors."""
    drawn = np.random.default_rng(seed).standard_normal(_DRAWS)
    worst = (0.0, "")
    for row, (name, (_, function)) in zip(normal, FUNCTIONS.items(), strict=True):
        value = function(drawn, normal_cdf)[0]
        of = np.array([value, value * value, *shares(function, drawn)])
        # What no draw has hit has no spread of its own.
        error = np.maximum(of.std(1) / math.sqrt(_DRAWS), 1 / _DRAWS)
        worst = max(worst, (float(np.abs((of.mean(1) - row) / error).max()), name))
    return _check("drawn_inputs_agree", *worst, _STANDARD_ERRORS)


def _check_inside(inside: ActivationsInModel | None) -> tuple[Check, ...]:
    if inside is None or inside.own is None:
        return ()
    return (_check("own_activation", float(inside.errors[inside.own]), "the model", inside.close),)


def _check(name: str, error: float, where: str, tolerance: float) -> Check:
    passed = error <= tolerance
    return Check(name, error, tolerance, passed, None if passed else where)


def _source(seed: int) -> LabSource:
    from resid import __version__

    return LabSource(
        experiment="activations",
        subject="five functions",
        settings={},
        seed=seed,
        versions={"resid": __version__, "numpy": np.__version__},
    )
