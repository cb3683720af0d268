"""LogitLens results made by hand: no model, no torch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from resid.results import Check, LogitLens, Source, Track

HOSTILE = (
    "$$",
    r"$\frac$",
    r"\n",
    r"\x1b",
    " 日本",
    " 🤗",
    "x" * 60,
    "_init",
    "[bold]",
    "</script>",
    "",
    '"',
    r" \u200f",
    "\xe9",
    "→",
)
GUESSES = (" the", " a", " now", " Paris", " not", " France", " located", ",", "\\n", " capital")


def make_lens(
    tokens: tuple[str, ...] = ("The", " capital", " of", " France", " is"),
    guesses: tuple[str, ...] = GUESSES,
    n_layers: int = 12,
    k: int = 5,
    target: str | None = None,
    foil: str | None = None,
    seed: int = 0,
) -> LogitLens:
    """A lens whose numbers look like a model's: surer with depth, settled somewhere."""
    random = np.random.default_rng(seed)
    points = ("embed", *(f"{i}.post" for i in range(n_layers)))
    n_points, n_pos = len(points), len(tokens)
    depth = np.linspace(0, 1, n_points)[:, None]
    top_ids = random.integers(len(guesses), size=(n_points, n_pos, 1)) + np.arange(k)
    top_ids %= len(guesses)
    settled = random.integers(n_points // 2, n_points, size=n_pos)
    for j, first in enumerate(settled):
        top_ids[first:, j] = top_ids[-1, j]
    first = np.clip(depth ** random.uniform(1, 4, n_pos), 0.03, 0.95)
    top_probs = first[:, :, None] * np.array([1.0, *[0.4**i / 10 for i in range(1, k)]])
    entropy = 9 * (1 - first) + 0.1
    names = np.array([*guesses, ""], dtype=object)
    changes = top_ids[1:, :, 0] != top_ids[:-1, :, 0]
    same = top_ids[:, :, 0] == top_ids[-1, :, 0]
    starts = [n_points - int(np.argmin([*column[::-1], False])) for column in same.T]
    ranks = np.maximum(1, (20000 * (1 - depth**0.2) * np.ones((1, n_pos)))).astype(int)

    def track(name: str | None, factor: int) -> Track | None:
        logprob = (-np.log(ranks * factor) - 0.7).astype(np.float32)
        return None if name is None else Track(7 * factor, name, ranks * factor, logprob)

    return LogitLens(
        source=Source(
            model="gpt2",
            revision=None,
            n_layers=n_layers,
            d_model=768,
            d_vocab=50257,
            dtype="float32",
            device="cpu",
            prompt="".join(tokens),
            ids=tuple(range(100, 100 + n_pos)),
            tokens=tokens,
            versions={"resid": "0.1.0", "torch": "2.9.0"},
        ),
        checks=(Check("lens_equals_logits", 2.2e-6, 1e-5, True),),
        points=points,
        positions=tuple(range(n_pos)),
        top_ids=top_ids,
        top_tokens=names[top_ids],
        top_probs=top_probs.astype(np.float32),
        entropy=entropy.astype(np.float32),
        kl_to_final=(4 * (1 - depth) * np.ones((1, n_pos))).astype(np.float32),
        settled_at=tuple(points[start] for start in starts),
        flips=changes.sum(0),
        target=track(target, 1),
        foil=track(foil, 2),
    )


def with_nan(lens: LogitLens, points: slice, pos: int) -> LogitLens:
    """The lens with a stretch of one position that is not finite, and a check that says so."""

    def hole(values: np.ndarray, fill: object) -> np.ndarray:
        values = values.copy()
        values[points, pos] = fill
        return values

    target = lens.target and replace(lens.target, logprob=hole(lens.target.logprob, np.nan))
    settled = list(lens.settled_at)
    settled[pos] = None
    where = f"{lens.points[points][0]} at position {pos}"
    return replace(
        lens,
        top_ids=hole(lens.top_ids, -1),
        top_tokens=hole(lens.top_tokens, ""),
        top_probs=hole(lens.top_probs, np.nan),
        entropy=hole(lens.entropy, np.nan),
        kl_to_final=hole(lens.kl_to_final, np.inf),
        settled_at=tuple(settled),
        target=target,
        checks=(Check("lens_equals_logits", float("nan"), 1e-5, False, where),),
    )
