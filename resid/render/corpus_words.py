"""What tables and figures of corpus readings both say: which text, what was left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from resid.render.words import NOT_FINITE, count, describe_input, number
from resid.results import CorpusNorms, NeuronCard
from resid.results.corpus_source import CorpusSource
from resid.tokens import escape_text

IDENTITIES: Mapping[str, str] = {
    "loss_equals_own": "last point's loss = the model's own",
    "finite": "every number is finite",
}


@describe_input.register
def _text(source: CorpusSource) -> str:
    """How much was read, and of which files."""
    read = f"{count(source.tokens, 'token')} in {count(source.documents, 'document')}"
    if source.shards:
        # Before the names, which may be cut where there is little room.
        held = [k for k, _ in source.shards]
        read += f", {_shards(held, source.shards[0][1])}"
    first = escape_text(_name(source.files[0]["name"]))
    more = len(source.files) - 1
    return read + f" of {first}" + (f" and {count(more, 'more file')}" if more else "")


def _shards(held: Sequence[int], n: int) -> str:
    """Some of n shards by number: shards 1-3, 5 of 8."""
    runs: list[list[int]] = []
    for k in held:
        if runs and runs[-1][-1] == k - 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    told = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"shard{'s' * (len(held) > 1)} {', '.join(told)} of {n}"


def _name(file: str) -> str:
    return "standard input" if file == "-" else file.replace("\\", "/").rpartition("/")[2]


def describe_windows(source: CorpusSource) -> str:
    """How the text was cut."""
    context, stride = source.settings["context"], source.settings["stride"]
    told = f"windows of {count(context, 'token')}"
    if stride < context:
        told += f" every {stride}, a token counting where it has most context"
    if source.settings["bos"]:
        told += ", a beginning-of-sequence token in front of each"
    return told


def describe_left_out(source: CorpusSource) -> list[str]:
    """A line for what could not be read, for documents that were empty, and for missing shards."""
    lines = []
    held = {k for k, _ in source.shards}
    if len(held) > 1:
        n = source.shards[0][1]
        lines.append("missing: " + _shards([k for k in range(1, n + 1) if k not in held], n))
    if held and not source.tokens:
        lines.append(
            "nothing fell to this part: text is dealt out in packets of whole documents, which a "
            "smaller --batch-tokens makes smaller"
        )
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


def describe_fires(card: NeuronCard) -> str:
    """How often a neuron fires over the text of a run, and whether its value says what follows."""
    line = f"fires on {percent(card.fires or 0.0, 2)}"
    if card.corpus is not None:
        line += f" of {describe_input(card.corpus)}"
    if card.agreement is not None:
        share = percent(card.agreement, 0)
        line += f"; its value's top token follows {share} of its triggers there"
    return line


def name_place(trigger: Mapping[str, Any]) -> str:
    """The file and the line where the document of a trigger begins, as editors take it."""
    return escape_text(f"{trigger['file']}:{trigger['line']}")


def describe_growth(norms: CorpusNorms) -> str:
    """The growth per layer, its error and how well it fits."""
    growth = norms.growth
    if not math.isfinite(growth.per_layer):
        if len(norms.layers) < 2:
            return "no growth per layer: it takes two layers"
        if norms.tokens == norms.tokens_at_start:
            return "no growth per layer: no token stands after position 0"
        return "no growth per layer: the norms are not all finite and above 0"
    value = f"×{growth.per_layer:.4f}"
    if math.isfinite(growth.per_layer_se):
        value += f" ± {growth.per_layer_se:.4f}"
    fit = f", R² {growth.r_squared:.2f}" if math.isfinite(growth.r_squared) else ""
    return f"grows {value} per layer from 0.post to {norms.layers[-1]}.post (mean log norm{fit})"


def describe_steps(norms: CorpusNorms) -> str:
    """How near to monotone the growth is."""
    steps = percent(norms.growth.growing_steps)
    return f"the norm grows on {steps} of the steps from embed to {norms.layers[-1]}.post"
