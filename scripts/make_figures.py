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


def lab_block():
    """A block of the bundled model from scratch, step by step, and without its parts."""
    import resid
    from resid.lab.rebuilt import rebuilt_block

    return rebuilt_block(resid.load("mini"), PROMPT, layer=3)


def lab_toy():
    """Gradients in the published net of five layers, with and without shortcuts."""
    from resid.lab.toy import toy

    return toy()


def lab_depth():
    """Forty layers at initialisation, residual and norm on and off."""
    from resid.lab.depth_trends import depth

    return depth()


def lab_activations():
    """Five activation functions, and how many of the bundled model's neurons stay off."""
    import resid
    from resid.lab.activations_in_model import activations_of

    return activations_of(resid.load("mini"), PROMPT)


def lab_race():
    """All variants as they race by default, and the base once more; takes some minutes."""
    from resid.lab.race import CONTEXT, plan_for, race
    from resid.lab.race_text import read_text
    from resid.lab.race_variants import ALL, line_up

    text = read_text(None, CONTEXT)
    return race(line_up([*ALL, "base"], 3, 0), plan_for(text), text)


def report():
    """The top of the page about the README's prompt, as a browser shows it; None without one."""
    import io
    import subprocess
    import tempfile

    import chromium
    from PIL import Image

    if reason := chromium.missing():
        print(f"report.png stays as it is: {reason}")
        return None
    with tempfile.TemporaryDirectory() as folder, chromium.started() as browser:
        file = Path(folder) / "report.html"
        command = [sys.executable, "-m", "resid", "report", "-q", "-m", "mini", "-o", str(file)]
        subprocess.run([*command, PROMPT], check=True)
        page = browser.new_page(viewport={"width": 1280, "height": 1200}, device_scale_factor=1.25)
        page.goto(file.as_uri())
        page.wait_for_selector(chromium.READY)
        # Down to the end of the first panels below the grid.
        box = page.get_by_role("region", name="Who led").bounding_box()
        clip = {"x": 0, "y": 0, "width": 1280, "height": box["y"] + box["height"] + 6}
        picture = Image.open(io.BytesIO(page.screenshot(clip=clip)))
    small = io.BytesIO()
    picture.convert("RGB").save(small, "png", optimize=True)
    return small.getvalue()


def corpus_lens():
    """Loss against depth over the README's text."""
    import resid
    from resid.corpus.lens import LensReading
    from resid.corpus.plan import Plan
    from resid.corpus.running import run

    model = resid.load("mini")
    text = str(FIGURES.parent / "examples" / "places.txt")
    return run(model, LensReading(model), Plan((text,), split="lines"))


# In place of the grid, the lines at the last position of the prompt.
OPTIONS = {"followed": {"follow": 4}}

PRODUCERS: dict[str, Callable[[], object]] = {
    "lens": lens,
    "followed": followed,
    "norms": norms,
    "memory": memory,
    "attribution": attribution,
    "params": params,
    "corpus_lens": corpus_lens,
    "lab_block": lab_block,
    "lab_toy": lab_toy,
    "lab_depth": lab_depth,
    "lab_activations": lab_activations,
    "lab_race": lab_race,
    "report": report,
}


def main(names: list[str]) -> None:
    """Write the figures named, or all of them."""
    from resid.render.figure import save

    for name in names or PRODUCERS:
        path = FIGURES / f"{name}.png"
        made = PRODUCERS[name]()
        if made is None:
            continue
        if isinstance(made, bytes):
            path.write_bytes(made)
        else:
            save(made, path, **OPTIONS.get(name, {}))
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
