"""Frozen results: numpy arrays and strings with their axes, their source and their proofs.

A result is the end of torch and the beginning of every rendering: tables, figures, JSON and CSV
read nothing else.
"""

from resid.results.attribution import Attribution
from resid.results.corpus_lens import CorpusLens
from resid.results.corpus_memory import CorpusMemory, Trigger
from resid.results.corpus_norms import CorpusGrowth, CorpusNorms, Spread
from resid.results.corpus_source import BadLine, CorpusSource, TextFile
from resid.results.lens import LogitLens, Own, Track
from resid.results.lens_baseline import BAND, Baseline, RandomStreams, ZeroStream
from resid.results.lens_followed import Followed
from resid.results.memory import Extremes, Find, MlpMemory, NeuronCard, NeuronScores
from resid.results.norms import Growth, Outlier, OutlierRule, StreamNorms
from resid.results.params import Block, Flops, ParamComparison, ParamCount
from resid.results.result import (
    Bools,
    Check,
    Floats,
    Ints,
    ModelResult,
    Origin,
    Result,
    Source,
    Strings,
)
from resid.results.verification import Line, Verification

__all__ = [
    "BAND",
    "Attribution",
    "BadLine",
    "Baseline",
    "Block",
    "Bools",
    "Check",
    "CorpusGrowth",
    "CorpusLens",
    "CorpusMemory",
    "CorpusNorms",
    "CorpusSource",
    "Extremes",
    "Find",
    "Floats",
    "Flops",
    "Followed",
    "Growth",
    "Ints",
    "Line",
    "LogitLens",
    "MlpMemory",
    "ModelResult",
    "NeuronCard",
    "NeuronScores",
    "Origin",
    "Outlier",
    "OutlierRule",
    "Own",
    "ParamComparison",
    "ParamCount",
    "RandomStreams",
    "Result",
    "Source",
    "Spread",
    "StreamNorms",
    "Strings",
    "TextFile",
    "Track",
    "Trigger",
    "Verification",
    "ZeroStream",
]
