"""StreamNorms results made by hand: no model, no torch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from resid.results import Check, Growth, Outlier, OutlierRule, StreamNorms

from .samples import make_lens

TOKENS = ("The", " capital", " of", " France", " is")


def make_norms(
    tokens: tuple[str, ...] = TOKENS,
    n_layers: int = 12,
    mids: bool = False,
    excluded: tuple[int, ...] = (0,),
    outliers: tuple[Outlier, ...] = (),
) -> StreamNorms:
    """Norms that grow by 1.2 a layer exactly, position p 1 + p / 10 times as large."""
    kinds = ("mid", "post") if mids else ("post",)
    points = ("embed", *(f"{layer}.{kind}" for layer in range(n_layers) for kind in kinds))
    n_pos = len(tokens)
    positions = 1 + np.arange(n_pos) / 10
    depth = np.arange(len(points)) / len(kinds)
    l2 = 10 * 1.2 ** depth[:, None] * positions
    cosine = np.linspace(0.1, 1, len(points))[:, None] * np.ones(n_pos)
    writes = 2 * 1.2 ** np.arange(n_layers)[:, None] * positions
    kept = 1 + np.array([p for p in range(n_pos) if p not in excluded]) / 10
    left = len(kept) > 0 and n_layers > 1
    size = 12 * np.exp(np.log(kept).mean()) if left else np.nan
    return StreamNorms(
        source=replace(make_lens(tokens, n_layers=n_layers).source, n_layers=n_layers),
        checks=(Check("stream_adds_up", 2e-7, 1e-4, True), Check("finite", 0.0, 0.0, True)),
        growth=Growth(
            per_layer=1.2 if left else np.nan,
            r_squared=0.98 if left else np.nan,
            growing_steps=1.0 if left else np.nan,
            excluded_positions=excluded,
            fitted_l2=size * 1.2 ** np.arange(n_layers),
            reason=None if left else "no position is left",
        ),
        outliers=outliers,
        outlier_rule=OutlierRule(0.05, 10.0),
        points=points,
        positions=tuple(range(n_pos)),
        layers=tuple(range(n_layers)),
        l2=l2,
        centred_l2=0.9 * l2,
        cosine_to_previous=np.where(np.arange(len(points))[:, None] > 0, 0.95 * cosine**0, np.nan),
        cosine_to_final=cosine,
        cosine_to_embed=cosine[::-1],
        embed_coefficient=1 + cosine,
        attn_out_l2=writes,
        attn_out_ratio=0.2 * np.ones_like(writes),
        attn_out_cosine=-0.1 * np.ones_like(writes),
        mlp_out_l2=3 * writes,
        mlp_out_ratio=0.6 * np.ones_like(writes),
        mlp_out_cosine=0.4 * np.ones_like(writes),
    )


MASSIVE = (
    Outlier("8.post", 0, 447, 3051.2, 0.94, 2500.0, True),
    Outlier("2.post", 0, 447, 2475.0, 0.93, 2400.0, True),
    Outlier("3.post", 1, 64, -25.0, 0.06, 14.0, False),
    Outlier("4.post", 3, 64, -24.0, 0.055, 13.0, False),
)


def with_hole(norms: StreamNorms) -> StreamNorms:
    """The norms of a run in which block 1 of its MLP was not finite."""

    def hole(values: np.ndarray, first: int) -> np.ndarray:
        values = values.copy()
        values[first:] = np.nan
        return values

    lost = norms.points.index("1.post")
    by_point = ("l2", "centred_l2", "cosine_to_previous", "cosine_to_embed", "embed_coefficient")
    writes = [f"mlp_out_{what}" for what in ("l2", "ratio", "cosine")]
    growth = replace(
        norms.growth, per_layer=np.nan, r_squared=np.nan, growing_steps=np.nan,
        fitted_l2=norms.growth.fitted_l2 * np.nan, reason="not every norm is finite",
    )  # fmt: skip
    where = "1.mlp_out at position 0"
    return replace(
        norms,
        checks=(
            Check("stream_adds_up", float("nan"), 1e-4, False, "11.post at position 0"),
            Check("finite", 115.0, 0.0, False, where),
        ),
        growth=growth,
        cosine_to_final=norms.cosine_to_final * np.nan,
        **{name: hole(getattr(norms, name), lost) for name in by_point},
        **{name: hole(getattr(norms, name), 1) for name in writes},
    )
