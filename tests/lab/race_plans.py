"""Races small enough to be run in tests."""

from resid.lab.race_text import read_text
from resid.lab.race_training import Plan
from resid.lab.race_variants import Sizes


def small_text():
    return read_text(None, 32)


def small_plan(text, steps=6, d_model=12, layers=2, batch=4, context=16, **changes):
    fields = {
        "sizes": Sizes(layers, d_model, 2, context, text.d_vocab),
        "steps": steps,
        "batch": batch,
        "learning_rate": 0.006,
        "held_out": 160,
        "measured_at": (0, steps // 2, steps),
    }
    return Plan(**(fields | changes))
