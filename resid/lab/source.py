"""Where the result of an experiment comes from: what was set, the seed, and the versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resid.results.lab import LabSource


def lab_source(
    experiment: str,
    subject: str,
    settings: Mapping[str, Any],
    seed: int | None,
    revision: str | None = None,
) -> LabSource:
    """The source of an experiment that was made just now.

    Args:
        experiment: its name on the command line, for example "depth".
        subject: what the numbers are about, in a few words: a model's name, or what was built.
        settings: everything else that decides the numbers, by name, in the order that is shown.
        seed: of whatever was drawn; None where nothing was.
        revision: of a model from the hub.
    """
    import numpy
    import torch

    from resid import __version__

    versions = {"resid": __version__, "torch": torch.__version__, "numpy": numpy.__version__}
    return LabSource(experiment, subject, dict(settings), seed, versions, revision)
