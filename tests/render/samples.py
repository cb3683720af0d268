"""LogitLens results made by hand: no model, no torch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from resid.results import (
    Baseline,
    Check,
    Followed,
    LogitLens,
    RandomStreams,
    Source,
    Track,
    ZeroStream,
)

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
        margin=(2 * first + 0.25).astype(np.float32),
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
        margin=hole(lens.margin, np.nan),
        settled_at=tuple(settled),
        target=target,
        checks=(Check("lens_equals_logits", float("nan"), 1e-5, False, where),),
    )


def with_followed(lens: LogitLens) -> LogitLens:
    """The lens with the tokens that lead in it, their other probabilities made up."""
    top1 = lens.top_ids[:, :, 0]
    pairs = [(j, i) for j, column in enumerate(top1.T) for i in dict.fromkeys(column.tolist())]
    pairs = [(j, i) for j, i in pairs if i >= 0]
    index, ids = (np.array([pair[n] for pair in pairs], dtype=int) for n in (0, 1))
    named = {int(i): t for i, t in zip(lens.top_ids.flat, lens.top_tokens.flat, strict=True)}
    tokens = np.array([*(named[i] for i in ids.tolist()), ""], dtype=object)[:-1]
    leads = top1[:, index] == ids
    probs = np.where(leads, lens.top_probs[:, index, 0], 0.01 / (1 + np.arange(len(ids))))
    logprob = np.where(top1[:, index] >= 0, np.log(probs), np.nan)
    return replace(lens, followed=Followed(index, ids, tokens, logprob, leads))


def with_baseline(lens: LogitLens) -> LogitLens:
    """The lens with a baseline whose numbers are told apart at sight."""
    n_pos, k = lens.top_ids.shape[1:]
    names = np.array([*[f" z{i}" for i in range(k)], ""], dtype=object)[:-1]
    probs = 0.1 / (1 + np.arange(k))
    kl = np.arange(n_pos) / 10
    zero = ZeroStream(8.25, np.arange(k), names, probs, 3 + kl)
    random = RandomStreams(64, 0, np.array([7.5, 6.5, 7.75]), np.array([4.0, 2, 6])[:, None] + kl)
    return replace(lens, baseline=Baseline(zero, random))
