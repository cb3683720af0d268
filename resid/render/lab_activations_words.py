"""What the table and the figure of the activation functions both say."""

from __future__ import annotations

import math

from resid.render.words import NOT_FINITE
from resid.results.lab import LabActivations

IDENTITIES = {
    "x_apart": "f(x) - f(-x) = x, all five",
    "slopes_are_derivatives": "slope = difference quotient, all five",
    "normal_mean_is_known": "mean of GELU over normal inputs = 1 / (2 sqrt(pi))",
    "drawn_inputs_agree": "integrals = means over 50,000 drawn inputs, in standard errors",
    "own_activation": "the function named as the model's own = its coefficients",
}
"""What the checks hold, by the check's name."""


def percent(share: float) -> str:
    """A share with one decimal below a hundred: 50.0%, 1.5%, 0%, <0.1%."""
    if not math.isfinite(share):
        return NOT_FINITE
    if share == 0 or share == 1:
        return f"{100 * share:.0f}%"
    return "<0.1%" if share < 0.0005 else f"{100 * share:.1f}%"


def place(at: float) -> str:
    """Where something is, in six significant digits."""
    return f"{at:.6g}" if math.isfinite(at) else "everywhere"


def unseen(result: LabActivations) -> list[tuple[str, str, float]]:
    """Functions that no plot can tell from another: their name, the other's, and how far apart."""
    close = []
    for i in result.furthest():
        names = result.functions[result.first[i]], result.functions[result.second[i]]
        if abs(result.apart[i]) < _VISIBLE:
            close.append((*names, abs(float(result.apart[i]))))
    return close


# In a plot of a few units' height less than this is thinner than a line.
_VISIBLE = 0.002
