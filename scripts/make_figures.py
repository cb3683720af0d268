#!/usr/bin/env python3
"""Draw every picture in figures/ again: one producer for each, from the bundled model.

`scripts/make_figures.py [NAME ...]` draws all, or those named.
"""

import sys
from collections.abc import Callable
from pathlib import Path

FIGURES = Path(__file__).resolve().parent.parent / "figures"
PROMPT = "The capital of France is"
TARGET = " Paris"
SIZES = ("distilgpt2", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")


def lens():
    """The logit lens of the README's prompt."""
    import resid

    model = resid.load("mini")
    return resid.logit_lens(model, resid.record(model, PROMPT), target=TARGET)


def followed():
    """Every token that leads somewhere on the way to the README's answer."""
    import resid

    model = resid.load("mini")
    recording = resid.record(model, PROMPT)
    return resid.logit_lens(model, recording, positions=[-1], follow=True)


def norms():
    """The stream's norms for a longer prompt, so that positions have a spread."""
    import resid

    model = resid.load("mini")
    prompt = "When Mary and John went to the store, John gave a drink to"
    return resid.stream_norms(model, resid.record(model, prompt))


def memory():
    """The neurons that make the README's answer."""
    import resid

    model = resid.load("mini")
    return resid.mlp_memory(model, resid.record(model, PROMPT), target=TARGET, positions=[-1])


def attribution():
    """What makes the receiver's name the answer, head by head."""
    import resid

    model = resid.load("mini")
    prompt = "When Mary and John went to the store, John gave a drink to"
    recording = resid.record(model, prompt)
    return resid.attribution(model, recording, target=" Mary", foil=" John", heads=True)


def params():
    """The parameter split of the five published sizes, side by side."""
    import resid
    from resid.results import ParamComparison

    return ParamComparison.of([resid.param_count(name) for name in SIZES])


PRODUCERS: dict[str, Callable[[], object]] = {
    "lens": lens,
    "followed": followed,
    "norms": norms,
    "memory": memory,
    "attribution": attribution,
    "params": params,
}


def main(names: list[str]) -> None:
    """Write the figures named, or all of them."""
    from resid.render.figure import save

    for name in names or PRODUCERS:
        path = FIGURES / f"{name}.png"
        save(PRODUCERS[name](), path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
