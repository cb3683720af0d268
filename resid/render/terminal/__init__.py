"""Results in the terminal: `render` prints any result that has a renderer here."""

from __future__ import annotations

import functools
from typing import Any

from rich.console import Console

from resid.render.terminal.attribution import render_attribution
from resid.render.terminal.console import make_console
from resid.render.terminal.corpus import render_corpus_lens
from resid.render.terminal.corpus_memory import render_corpus_memory
from resid.render.terminal.corpus_norms import render_corpus_norms
from resid.render.terminal.lab import RENDERERS
from resid.render.terminal.lens import render_lens
from resid.render.terminal.memory import render_card, render_find, render_memory
from resid.render.terminal.norms import render_norms
from resid.render.terminal.params import render_comparison, render_params
from resid.render.terminal.verification import render_verification
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

__all__ = ["make_console", "render"]


@functools.singledispatch
def render(result: Result, console: Console, **options: Any) -> None:
    """Print the result as a table.

    Args:
        result: what to print.
        console: where to, as `make_console` makes it.
        **options: of the renderer of that result, for example `positions` and `grid` of
            `resid.render.terminal.lens.render_lens`.
    """
    raise TypeError(f"{type(result).__name__} has no table")


render.register(LogitLens, render_lens)
render.register(Attribution, render_attribution)
render.register(StreamNorms, render_norms)
render.register(ParamCount, render_params)
render.register(ParamComparison, render_comparison)
render.register(MlpMemory, render_memory)
render.register(Find, render_find)
render.register(NeuronCard, render_card)
render.register(Verification, render_verification)
render.register(CorpusLens, render_corpus_lens)
render.register(CorpusNorms, render_corpus_norms)
render.register(CorpusMemory, render_corpus_memory)
for kind, renderer in RENDERERS.items():
    render.register(kind, renderer)
