"""The lab's results as figures, one module an experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Registers how the source of an experiment is told.
import resid.render.lab_words  # noqa: F401
from resid.render.figure.lab.activations import activations_figure, draw_activations
from resid.render.figure.lab.block import block_figure, draw_block
from resid.render.figure.lab.depth import depth_figure, draw_depth
from resid.render.figure.lab.race import draw_race, race_figure
from resid.render.figure.lab.toy import draw_toy, toy_figure
from resid.results.lab import LabActivations, LabBlock, LabDepth, LabRace, LabResult, LabToy

FIGURES: dict[type[LabResult], tuple[Callable[..., Any], Callable[..., Any]]] = {
    LabBlock: (block_figure, draw_block),
    LabToy: (toy_figure, draw_toy),
    LabDepth: (depth_figure, draw_depth),
    LabActivations: (activations_figure, draw_activations),
    LabRace: (race_figure, draw_race),
}
"""By the kind of result, what makes a figure of it, and what draws it on Axes that exist."""
