"""Results as figures: result in, Axes or Figure out; never pyplot, never a global setting."""

from __future__ import annotations

# The first of all: it makes `import matplotlib` safe.
import resid.render.figure.headless  # noqa: F401

# isort: split
import functools
from pathlib import Path
from typing import IO, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.errors import ResidError
from resid.render.figure.attribution import attribution_figure, draw_attribution
from resid.render.figure.corpus import corpus_lens_figure, draw_corpus_lens
from resid.render.figure.corpus_memory import corpus_memory_figure, draw_corpus_memory
from resid.render.figure.corpus_norms import corpus_norms_figure, draw_corpus_norms
from resid.render.figure.lab import FIGURES
from resid.render.figure.lens import draw_lens
from resid.render.figure.lens_followed import draw_followed, followed_figure
from resid.render.figure.lens_layout import lens_figure
from resid.render.figure.memory import (
    card_figure,
    draw_card,
    draw_find,
    draw_memory,
    find_figure,
    memory_figure,
)
from resid.render.figure.norms import draw_norms
from resid.render.figure.norms_panels import norms_figure
from resid.render.figure.params import draw_params
from resid.render.figure.params_figure import figure_of_params
from resid.render.figure.style import styled
from resid.render.figure.verification import draw_verification, verification_figure
from resid.results import (
    Attribution,
    CorpusLens,
    CorpusMemory,
    CorpusNorms,
    Find,
    LogitLens,
    MlpMemory,
    NeuronCard,
    ParamComparison,
    ParamCount,
    Result,
    StreamNorms,
    Verification,
)

__all__ = ["FORMATS", "draw", "draw_followed", "figure", "followed_figure", "plot", "save"]

FORMATS = ("png", "svg", "pdf")


@functools.singledispatch
def figure(result: Result, **options: Any) -> Figure:
    """A new figure of the result with its title and caption, in the size that it needs.

    Args:
        result: what to draw.
        **options: of that result's drawing, for example `show` of
            `resid.render.figure.lens_layout.lens_figure`.
    """
    raise TypeError(f"{type(result).__name__} has no figure")


@functools.singledispatch
def draw(result: Result, ax: Axes, **options: Any) -> Axes:
    """Draw the result on Axes that exist, and return them."""
    raise TypeError(f"{type(result).__name__} has no figure")


figure.register(LogitLens, lens_figure)
draw.register(LogitLens, draw_lens)
figure.register(Attribution, attribution_figure)
draw.register(Attribution, draw_attribution)
figure.register(StreamNorms, norms_figure)
draw.register(StreamNorms, draw_norms)
figure.register(ParamCount, figure_of_params)
draw.register(ParamCount, draw_params)
figure.register(ParamComparison, figure_of_params)
draw.register(ParamComparison, draw_params)
figure.register(MlpMemory, memory_figure)
draw.register(MlpMemory, draw_memory)
figure.register(Find, find_figure)
draw.register(Find, draw_find)
figure.register(NeuronCard, card_figure)
draw.register(NeuronCard, draw_card)
figure.register(Verification, verification_figure)
draw.register(Verification, draw_verification)
figure.register(CorpusLens, corpus_lens_figure)
draw.register(CorpusLens, draw_corpus_lens)
figure.register(CorpusNorms, corpus_norms_figure)
draw.register(CorpusNorms, draw_corpus_norms)
figure.register(CorpusMemory, corpus_memory_figure)
draw.register(CorpusMemory, draw_corpus_memory)
for kind, (make_figure, draw_on) in FIGURES.items():
    figure.register(kind, make_figure)
    draw.register(kind, draw_on)


def plot(result: Result, ax: Axes | None = None, **options: Any) -> Axes:
    """The Axes on which the result was drawn: those given, or a new figure's."""
    return figure(result, **options).axes[0] if ax is None else draw(result, ax, **options)


def save(
    result: Result, file: Path | str | IO[bytes], format: str | None = None, **options: Any
) -> None:
    """Draw the result and write it; the same result gives the same bytes.

    Args:
        result: what to draw.
        file: a path, or a binary file that is open.
        format: png, svg or pdf; by default what the path's suffix says.
        **options: as for `figure`.

    Raises:
        ResidError: the format is none of these.
    """
    if format is None and isinstance(file, Path | str):
        format = Path(file).suffix.removeprefix(".").lower()
    if format not in FORMATS:
        raise ResidError(f"a figure is written as {', '.join(FORMATS)}, not {format!r}")
    creator = f"resid {result.source.versions.get('resid', '')}".strip()
    metadata = {
        "png": {"Software": creator},
        "svg": {"Creator": creator, "Date": None},
        "pdf": {"Creator": creator, "Producer": "matplotlib", "CreationDate": None},
    }[format]
    packed: dict[str, Any] = {"pil_kwargs": {"optimize": True}} if format == "png" else {}
    drawn = figure(result, **options)
    dpi = 160 if drawn.get_figwidth() < 8 else 120  # both crisp, both small files
    with styled():
        drawn.savefig(file, format=format, dpi=dpi, metadata=metadata, **packed)
