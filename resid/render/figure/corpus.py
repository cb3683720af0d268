"""The logit lens over text as figures: loss against depth, and where predictions settle."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resid.render.figure import corpus_panels as panels
from resid.render.figure import ticks
from resid.render.figure.style import INK, styled
from resid.render.words import count
from resid.results import CorpusLens


def corpus_lens_figure(lens: CorpusLens) -> Figure:
    """The loss at every point on the left; where predictions settle on the right.

    Args:
        lens: what to draw.
    """
    notes = [
        f"Means over {count(lens.tokens - lens.not_finite, 'token')}, cross-entropy over the "
        f"{lens.scored:,} that are predicted; bands: standard error by document.",
        "Agreement: the point's top token is the model's own. Settled: it stays so to the end.",
    ]
    return panels.two_panels(
        lens,
        lens.source,
        f"Loss against depth in {lens.source.model}",
        [lambda ax: draw_corpus_lens(lens, ax), lambda ax: draw_settled(lens, ax)],
        notes,
    )


def draw_corpus_lens(lens: CorpusLens, ax: Axes) -> Axes:
    """Draw cross-entropy, KL to the final prediction and entropy at every point.

    Args:
        lens: what to draw.
        ax: where to.

    Returns:
        `ax`.
    """
    with styled():
        xs = ticks.depths(lens.points)
        for name, mean, error, colour, marker in (
            ("cross-entropy", lens.cross_entropy, lens.cross_entropy_se, panels.STREAM, "o"),
            ("KL to final", lens.kl_to_final, lens.kl_to_final_se, panels.THIRD, "s"),
            ("entropy", lens.entropy, lens.entropy_se, panels.SECOND, "^"),
        ):
            panels.band(ax, xs, mean, error, name, color=colour, marker=marker)
        panels.plain_axes(ax, "nats a token")
        ax.set_ylim(bottom=0)
        ticks.label_points(ax, lens.source.n_layers)
        panels.legend(ax)
    return ax


def draw_settled(lens: CorpusLens, ax: Axes) -> Axes:
    """Draw at which points predictions settle, and how often each point agrees with the last."""
    with styled():
        xs = np.array(ticks.depths(lens.points))
        settled = 100 * lens.settled_histogram / max(int(lens.settled_histogram.sum()), 1)
        width = 0.8 * float(np.diff(xs).min()) if len(xs) > 1 else 0.8
        ax.bar(xs, settled, width=width, color="#9ecae1", label="settled here")
        ax.plot(xs, settled.cumsum(), color=INK, linestyle=(0, (5, 2.5)), label="settled by here")
        agreement, error = 100 * lens.agreement, 100 * lens.agreement_se
        look = {"color": panels.STREAM, "marker": "o"}
        panels.band(ax, xs, agreement, error, "agreement", **look)
        panels.plain_axes(ax, "% of tokens")
        ax.set_ylim(0, 104)
        ticks.label_points(ax, lens.source.n_layers)
        ax.set_xlim(left=min(ax.get_xlim()[0], -0.6 * width), right=xs[-1] + 0.6 * width)
        panels.legend(ax)
    return ax
