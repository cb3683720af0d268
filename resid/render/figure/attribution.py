"""Attribution as a figure: the waterfall of log-probability beside the components of the logit."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.figure.bars import Panel, bar_figure, draw_panel
from resid.render.figure.style import mark_token
from resid.results import Attribution

# With many heads, only as many components as are worth a look.
_LEAST_COMPONENTS = 20


def attribution_figure(found: Attribution) -> Figure:
    """The two readings side by side, each named, the deepest part of the network on top."""
    asked = mark_token(found.target_token)
    if found.foil_token is not None:
        asked += f" rather than {mark_token(found.foil_token)}"
    notes = [
        f"Left: each point decoded with its own LayerNorm statistics; steps sum to the final"
        f" {_what(found)}. Right: shares of the logit with ln_final's scale frozen; they sum to it."
        f" Remainder {found.remainder:.1g}."
    ]
    if len(found.components) > _shown(found):
        notes.append(f"The {_shown(found)} largest of {len(found.components)} components.")
    token = mark_token(found.source.tokens[found.position])
    title = f"What makes {found.source.model} say {asked} after position {found.position}, {token}"
    return bar_figure(found, title, [_waterfall(found), _direct(found)], notes)


def draw_attribution(found: Attribution, ax: Axes) -> Axes:
    """The waterfall on the given Axes."""
    return draw_panel(_waterfall(found), ax)


def _shown(found: Attribution) -> int:
    return max(_LEAST_COMPONENTS, len(found.points) + 2)


def _what(found: Attribution) -> str:
    return "log-probability" if found.foil_token is None else "difference of log-probabilities"


def _waterfall(found: Attribution) -> Panel:
    before = np.concatenate([[found.logprob[0]], found.logprob[:-1]])
    return Panel(
        title="waterfall",
        names=found.points[::-1],
        values=(found.logprob - before)[::-1].tolist(),
        starts=before[::-1].tolist(),
        unit=f"{_what(found)}, nats",
    )


def _direct(found: Attribution) -> Panel:
    largest = np.argsort(-np.abs(found.direct), kind="stable")[: _shown(found)]
    shown = np.sort(largest)[::-1]
    return Panel(
        title="direct",
        names=[found.components[i] for i in shown],
        values=[float(found.direct[i]) for i in shown],
        unit="share of the logit" + (" difference" if found.foil_token is not None else ""),
    )
