"""Corpus results made by hand: no model, no torch."""

from dataclasses import replace

import numpy as np

from resid.results import (
    Check,
    CorpusGrowth,
    CorpusLens,
    CorpusMemory,
    CorpusNorms,
    CorpusSource,
    Spread,
    Trigger,
)

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def make_source(n_layers=12, **changes):
    fields = {
        "model": "gpt2",
        "revision": None,
        "n_layers": n_layers,
        "d_model": 768,
        "d_vocab": 50257,
        "dtype": "float32",
        "device": "cpu",
        "files": ({"name": "books/a.txt", "bytes": 7, "sha256": "0"},) * 3,
        "settings": {"context": 1024, "stride": 512, "bos": True},
        "shards": ((2, 8),),
        "documents": 1234,
        "empty_documents": 1,
        "tokens": 1_234_567,
        "bad_lines": 5,
        "bad_lines_first": ({"file": "books/b\x1b.txt", "line": 7, "reason": "not JSON"},) * 4,
        "versions": {"resid": "0.1.0"},
    }
    return CorpusSource(**(fields | changes))


def _points(n_layers):
    return ("embed", *(f"{layer}.post" for layer in range(n_layers)))


def make_corpus_lens(n_layers=12, se=0.01, **source):
    points = _points(n_layers)
    n = len(points)
    depth = np.linspace(0, 1, n)
    error = np.full(n, se)
    return CorpusLens(
        source=make_source(n_layers, **source),
        checks=(Check("loss_equals_own", 1e-6, 1e-3, True), Check("finite", 0.0, 0.0, True)),
        documents=1234,
        tokens=1_234_567,
        not_finite=0,
        scored=1_233_333,
        points=points,
        cross_entropy=13 - 10 * depth,
        cross_entropy_se=error,
        kl_to_final=9 * (1 - depth),
        kl_to_final_se=error,
        entropy=1 + depth,
        entropy_se=error,
        agreement=depth,
        agreement_se=error,
        settled_histogram=np.arange(n),
    )


def make_corpus_norms(n_layers=12, first=True, **source):
    def spread(n):
        mean = np.geomspace(3, 300, n)
        quantiles = mean[:, None] * np.array([0.5, 0.8, 1, 1.2, 2])
        start = 10 * mean if first else np.full(n, np.nan)
        return Spread(mean, mean / 100, quantiles, start)

    return CorpusNorms(
        source=make_source(n_layers, **source),
        checks=(),
        documents=1234,
        tokens=1_234_567,
        not_finite=0,
        tokens_at_start=1300 if first else 0,
        resolution=0.011,
        points=_points(n_layers),
        layers=tuple(range(n_layers)),
        quantile_shares=QUANTILES,
        l2=spread(n_layers + 1),
        attn_out=spread(n_layers),
        mlp_out=spread(n_layers),
        growth=CorpusGrowth(1.05, 0.001, 0.98, 0.9, 0.001, np.geomspace(5, 300, n_layers)),
    )


def make_trigger(**changes):
    fields = {
        "activation": 12.5,
        "document": 77,
        "file": "books/a tale.txt",
        "line": 3,
        "pos": 12,
        "before": "It was the best of times, it was the worst of",
        "id": 7,
        "token": " times",
        "after": r"\n 日本 [bold]",
        "next_id": 8,
    }
    return Trigger(**(fields | changes))


def make_corpus_memory(n_layers=12, neurons=40, projection="folded", **source):
    generator = np.random.default_rng(0)
    shares = generator.uniform(size=(n_layers, neurons))
    layer = np.linspace(0, 0.05, n_layers)
    none = np.full(n_layers, np.nan)
    texts = np.full((n_layers, neurons), "text", dtype=object)
    return CorpusMemory(
        source=make_source(n_layers, **source),
        checks=(Check("neurons_add_up", 1e-6, 1e-4, True),),
        documents=1234,
        tokens=1_234_567,
        not_finite=0,
        projection=projection,
        top=10,
        layers=tuple(range(n_layers)),
        fires=shares,
        active=shares.mean(1),
        active_se=layer / 10,
        dead=np.arange(n_layers),
        agreement=layer if projection else none,
        agreement_se=layer / 10 if projection else none,
        agreement_chance=layer / 5 if projection else none,
        top_activation=shares,
        top_document=np.arange(n_layers * neurons).reshape(n_layers, neurons) - 1,
        top_file=texts,
        top_line=np.ones((n_layers, neurons), dtype=int),
        top_pos=np.zeros((n_layers, neurons), dtype=int),
        top_before=texts,
        top_token=texts,
        top_after=texts,
        strongest_neuron=np.arange(n_layers),
        strongest=(None, *(make_trigger() for _ in range(n_layers - 1))),
    )


def without_numbers(result):
    """The same where nothing was read."""
    nan = np.full(len(result.points), np.nan)
    names = ("cross_entropy", "kl_to_final", "entropy", "agreement")
    fields = {name + end: nan for name in names for end in ("", "_se")}
    none = np.zeros(len(nan), dtype=int)
    return replace(result, scored=0, tokens=0, settled_histogram=none, **fields)
