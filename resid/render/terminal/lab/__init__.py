"""The lab's results in the terminal, one module an experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Registers how the source of an experiment is told.
import resid.render.lab_words  # noqa: F401
from resid.render.terminal.lab.activations import render_activations
from resid.render.terminal.lab.block import render_block
from resid.render.terminal.lab.depth import render_depth
from resid.render.terminal.lab.race import render_race
from resid.render.terminal.lab.toy import render_toy
from resid.results.lab import LabActivations, LabBlock, LabDepth, LabRace, LabResult, LabToy

RENDERERS: dict[type[LabResult], Callable[..., Any]] = {
    LabBlock: render_block,
    LabToy: render_toy,
    LabDepth: render_depth,
    LabActivations: render_activations,
    LabRace: render_race,
}
"""By the kind of result, what prints it: result and console in."""
