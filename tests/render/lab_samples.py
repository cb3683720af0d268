"""Results of the lab made by hand: no training, no torch."""

from __future__ import annotations

import numpy as np

from resid.results import Check
from resid.results.lab import LabActivations, LabRace, LabSource

VARIANTS = ("base", "no-residual", "post-ln", "relu", "base (2)")


def make_race(
    variants: tuple[str, ...] = VARIANTS, seeds: int = 3, all_pairs: bool = False
) -> LabRace:
    """A race in which the second variant is much worse, the third better, and the rest noise."""
    n = len(variants)
    random = np.random.default_rng(0)
    level = np.resize([0.5, 3.0, 0.4, 0.52, 0.51], n)
    steps = (0, 50, 100)
    falling = np.array([1.0, 0.4, 0.0])
    noise = 0.01 * random.standard_normal((n, seeds, 3))
    loss = level[:, None, None] + (4.4 - level)[:, None, None] * falling + noise
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n) if all_pairs or a == 0]
    difference = np.array([(loss[b] - loss[a])[:, -1].mean() for a, b in pairs])
    half = 0.06 if seeds > 1 else np.inf
    settings = {"text": "sample", "bytes": 400_000, "steps": 100, "learning_rate": 0.006}
    versions = {"resid": "0.1.0", "torch": "2.9.0"}
    return LabRace(
        source=LabSource("race", "GPTs of 4 layers, d_model 64", settings, 0, versions),
        checks=(Check("finite", 0.0, 0.0, True), Check("causal", 0.0, 1e-5, True)),
        text_sha256="0" * 64,
        confidence=0.95,
        unigram_loss=3.083,
        bigram_loss=1.929,
        variants=variants,
        d_model=np.full(n, 64),
        d_mlp=np.full(n, 256),
        parameters=np.full(n, 210_432),
        seeds=np.arange(seeds)[None] + np.zeros((n, 1), dtype=int),
        steps=steps,
        loss=loss,
        first=tuple(a for a, _ in pairs),
        second=tuple(b for _, b in pairs),
        difference=difference,
        low=difference - half,
        high=difference + half,
    )


def make_activations() -> LabActivations:
    """The real thing: it takes a moment only, and no model."""
    from resid.lab.activations import activations

    return activations()
