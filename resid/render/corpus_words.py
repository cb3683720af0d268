"""What tables and figures of corpus readings both say: which text, what was left out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from resid.render.words import NOT_FINITE, count, describe_input, number
from resid.results import CorpusNorms
from resid.results.corpus_source import CorpusSource
from resid.tokens import escape_text

IDENTITIES: Mapping[str, str] = {
    "loss_equals_own": "last point's loss = the model's own",
    "finite": "every token is finite",
}


@describe_input.register
def _text(source: CorpusSource) -> str:
    """How much was read, and of which files."""
    read = (
        f"{source.tokens:,} tokens in {source.documents:,} document{'s' * (source.documents != 1)}"
    )
    first = escape_text(_name(source.files[0]["name"]))
    more = len(source.files) - 1
    read += f" of {first}" + (f" and {count(more, 'more file')}" if more else "")
    if source.shards:
        parts = ", ".join(str(k) for k, _ in source.shards)
        shards = "shard" if len(source.shards) == 1 else "shards"
        read += f", {shards} {parts} of {source.shards[0][1]}"
    return read


def _name(file: str) -> str:
    return "standard input" if file == "-" else file.replace("\\", "/").rpartition("/")[2]


def describe_windows(source: CorpusSource) -> str:
    """How the text was cut."""
    context, stride = source.settings["context"], source.settings["stride"]
    told = f"windows of {context} tokens"
    if stride < context:
        told += f" every {stride}, a token counting where it has most context"
    if source.settings["bos"]:
        told += ", a beginning-of-sequence token in front of each"
    return told


def describe_left_out(source: CorpusSource) -> list[str]:
    """A line for what could not be read, and for documents that were empty."""
    lines = []
    if source.bad_lines:
        shown = source.bad_lines_first[:3]
        places = [f"{_name(bad['file'])} line {bad['line']} ({bad['reason']})" for bad in shown]
        rest = source.bad_lines - len(shown)
        what = f"left out, as they cannot be read: {count(source.bad_lines, 'line')}: "
        what += ", ".join(places) + (f" and {rest:,} more" if rest else "")
        lines.append(what.replace("as they", "as it") if source.bad_lines == 1 else what)
    if source.empty_documents:
        lines.append(f"{count(source.empty_documents, 'document')} had no text")
    return [escape_text(line) for line in lines]


def pair(value: float, standard_error: float, sign: str = "±") -> tuple[str, str]:
    """A mean as its error allows to write it, and its error."""
    if not math.isfinite(value):
        return NOT_FINITE, ""
    if not math.isfinite(standard_error) or standard_error <= 0:
        return number(value), ""
    digits = min(max(0, 1 - math.floor(math.log10(standard_error))), 4)
    return f"{value:.{digits}f}", f"{sign}{standard_error:.{digits}f}"


def percent(value: float, digits: int = 1) -> str:
    """A share."""
    return f"{100 * value:.{digits}f}%" if math.isfinite(value) else NOT_FINITE


def perplexity(loss: float) -> str:
    """The exponential of a loss in nats, also where a model is so wrong that no float holds it."""
    if loss <= 12:
        return f"{math.exp(loss):,.1f}"
    exponent, rest = divmod(loss / math.log(10), 1)
    if exponent >= 1e5:
        return "> 1e99999"
    digits = f"{10**rest:.1f}"
    return f"{digits}e{exponent:.0f}" if digits != "10.0" else f"1.0e{exponent + 1:.0f}"


def describe_growth(norms: CorpusNorms, times: str = "×") -> str:
    """The growth per layer, its error and how well it fits."""
    growth = norms.growth
    if not math.isfinite(growth.per_layer):
        return "no growth per layer: it takes two layers"
    value = f"{times}{growth.per_layer:.4f}"
    if math.isfinite(growth.per_layer_se):
        value += f" ± {growth.per_layer_se:.4f}"
    fit = f", R² {growth.r_squared:.2f}" if math.isfinite(growth.r_squared) else ""
    return f"grows {value} per layer from 0.post to {norms.layers[-1]}.post (mean log norm{fit})"


def describe_steps(norms: CorpusNorms) -> str:
    """How near to monotone the growth is."""
    steps = percent(norms.growth.growing_steps)
    return f"the norm grows on {steps} of the steps from embed to {norms.layers[-1]}.post"
