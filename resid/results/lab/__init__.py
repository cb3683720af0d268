"""Frozen results of the lab's experiments."""

from resid.results.lab.activations import LabActivations
from resid.results.lab.block import LabBlock
from resid.results.lab.depth import LabDepth
from resid.results.lab.race import LabRace
from resid.results.lab.result import LabResult, LabSource, brief
from resid.results.lab.toy import LabToy

__all__ = [
    "LabActivations",
    "LabBlock",
    "LabDepth",
    "LabRace",
    "LabResult",
    "LabSource",
    "LabToy",
    "brief",
]
