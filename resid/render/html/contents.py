"""The numbers that a page carries, as small as they can be: what the panels draw from."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from resid.render import parts
from resid.render.escapes import as_utf8
from resid.render.html.alignment import align_points, align_positions
from resid.render.html.report import Report
from resid.render.lens_words import describe_flips
from resid.render.norm_summary import (
    describe_growth,
    describe_outliers,
    describe_positions,
    describe_steps,
    spread,
)
from resid.render.words import IDENTITIES, describe_input, describe_projection, neuron_name
from resid.results import Attribution, LogitLens, MlpMemory, ParamCount, Result, StreamNorms, Track

DIGITS = 5
"""Significant digits of the numbers in a page: more than it shows, fewer than JSON and CSV hold."""
SHARES = 12
"""Components of a logit that are told one by one."""
LEADERS = 6
"""Tokens that lead somewhere which are drawn over depth: those that lead last."""

_READINGS = {
    "logit_lens": "lens",
    "stream_norms": "norms",
    "mlp_memory": "neurons",
    "param_count": "parameters",
}


def contents(reports: Sequence[Report], command: str) -> dict[str, Any]:
    """All that the page's script reads.

    Args:
        reports: one, or two to be compared.
        command: the command line that makes the page again.
    """
    return {
        "command": command,
        "digits": DIGITS,
        "reports": [_report(report) for report in reports],
        "alignment": _alignment(reports),
    }


def embedded(document: dict[str, Any]) -> str:
    """The document as JSON that may stand inside a script element, whatever its strings hold."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    # A folder's name may hold bytes that are not UTF-8; its escape is the same in JSON as here.
    return as_utf8(text)


def _report(report: Report) -> dict[str, Any]:
    source = report.source
    tokens = dict(zip(source.ids, source.tokens, strict=True))
    document: dict[str, Any] = {
        "model": source.model,
        "input": describe_input(source),
        "source": {
            field.name: getattr(source, field.name)
            for field in dataclasses.fields(source)
            if field.name not in ("tokens", "prompt")
        },
        "prompt": source.prompt,
        "n_layers": source.n_layers,
        "checks": [*_checks(report.results)],
    }
    if report.lens is not None:
        document["lens"] = _lens(report.lens, tokens)
    if report.norms is not None:
        document["norms"] = _norms(report.norms)
    if report.memory is not None:
        document["memory"] = _memory(report.memory, tokens)
    if report.attributions:
        document["attribution"] = _attribution(report.attributions, tokens)
    if report.params:
        document["params"] = [_params(count) for count in report.params]
    # An id without a token has no text but its own number, which the page can write itself.
    named = {token_id: text for token_id, text in tokens.items() if text != f"<id {token_id}>"}
    return document | {"tokens": named}


def _checks(results: Iterable[Result]) -> Iterable[dict[str, Any]]:
    """Every check once: of the same one in several results, the one that is worst."""
    worst: dict[tuple[str, str], dict[str, Any]] = {}
    for result in results:
        for check in result.checks:
            key = (_READINGS.get(result.analysis, result.analysis), check.name)
            found = {
                "reading": key[0],
                "name": check.name,
                "identity": IDENTITIES.get(check.name, check.name.replace("_", " ")),
                "error": rounded(check.error),
                "tolerance": check.tolerance,
                "passed": bool(check.passed),
                "where": check.where,
                "times": 1,
            }
            before = worst.get(key)
            if before is None:
                worst[key] = found
                continue
            times = before["times"] + 1
            better = not before["passed"] or (check.passed and check.error <= before["error"])
            worst[key] = (before if better else found) | {"times": times}
    return worst.values()


def _lens(lens: LogitLens, tokens: dict[int, str]) -> dict[str, Any]:
    tokens.update(zip(lens.top_ids.ravel().tolist(), lens.top_tokens.ravel().tolist(), strict=True))
    document: dict[str, Any] = {
        "points": lens.points,
        "positions": lens.positions,
        "top_ids": lens.top_ids.tolist(),
        "top_probs": _short(lens.top_probs),
        "entropy": rounded(lens.entropy),
        "kl": rounded(lens.kl_to_final),
        "margin": rounded(lens.margin),
        "settled": [
            None if point is None else lens.points.index(point) for point in lens.settled_at
        ],
        "flips": lens.flips.tolist(),
        "flips_told": describe_flips(lens),
    }
    for name in ("target", "foil"):
        track: Track | None = getattr(lens, name)
        if track is not None:
            tokens[track.id] = track.token
            document[name] = {"id": track.id, **_track(track.rank, track.logprob)}
    if lens.own is not None:
        tokens.update(zip(lens.own.ids.tolist(), lens.own.tokens.tolist(), strict=True))
        document["own"] = {
            "id": lens.own.ids.tolist(),
            **_track(lens.own.rank, lens.own.logprob),
        }
    if lens.followed is not None:
        followed = lens.followed
        by_position = [followed.at(index) for index in range(len(lens.positions))]
        document["followed"] = [
            [
                {"id": int(followed.ids[i]), "prob": _probs(followed.logprob[:, i])}
                for i in found[-LEADERS:]
            ]
            for found in by_position
        ]
        document["earlier"] = [max(0, len(found) - LEADERS) for found in by_position]
    tokens.pop(-1, None)  # Stands where a point is not finite.
    return document


def _track(rank: npt.NDArray[Any], logprob: npt.NDArray[Any]) -> dict[str, Any]:
    ranks = rank.astype(object)
    ranks[rank == 0] = None
    return {"rank": ranks.tolist(), "prob": _probs(logprob)}


def _probs(logprob: npt.NDArray[Any]) -> Any:
    return _short(np.exp(logprob.astype(np.float64)))


def _short(probs: npt.NDArray[Any]) -> Any:
    """Probabilities, most of a page: below 0.001, where one digit is shown, three will do."""
    if probs.ndim:
        return [_short(one) for one in probs]
    return rounded(probs if probs >= 0.001 else float(f"{probs:.3g}"))


def _norms(norms: StreamNorms) -> dict[str, Any]:
    middle = spread(norms, norms.l2)
    return {
        "points": norms.points,
        "positions": norms.positions,
        "layers": norms.layers,
        "apart": norms.growth.excluded_positions,
        "l2": rounded(norms.l2),
        "low": rounded(middle.low),
        "median": rounded(middle.median),
        "high": rounded(middle.high),
        "attention": rounded(norms.attn_out_l2),
        "mlp": rounded(norms.mlp_out_l2),
        "over": describe_positions(norms),
        "notes": [
            note
            for note in (describe_growth(norms), describe_steps(norms), *describe_outliers(norms))
            if note
        ],
    }


def _memory(memory: MlpMemory, tokens: dict[int, str]) -> dict[str, Any]:
    # A negative coefficient writes the opposite of the value: what that suppresses is promoted.
    written = [
        memory.promoted if coefficient >= 0 else memory.suppressed
        for coefficient in memory.coefficient
    ]
    for i, side in enumerate(written):
        if side.known[i]:
            tokens.update(zip(side.ids[i].tolist(), side.tokens[i].tolist(), strict=True))
    if memory.target_id is not None and memory.target_token is not None:
        tokens[memory.target_id] = memory.target_token
    names = map(neuron_name, memory.layer.tolist(), memory.neuron.tolist())
    return {
        "positions": memory.positions,
        "target": memory.target_id,
        "projection": describe_projection(memory.projection),
        "order": memory.order,
        # One element for every neuron listed.
        "name": list(names),
        "pos": memory.pos.tolist(),
        "coefficient": rounded(memory.coefficient),
        "writes": rounded(memory.write_norm),
        "share": None if memory.target_logit is None else rounded(memory.target_logit),
        # Of a value whose scores are not finite, nothing.
        "promotes": [
            side.ids[i].tolist() if side.known[i] else [] for i, side in enumerate(written)
        ],
    }


def _attribution(found: Sequence[Attribution], tokens: dict[int, str]) -> dict[str, Any]:
    return {
        "points": found[0].points,
        "components": found[0].components,
        "each": [_explained(one, tokens) for one in found],
    }


def _explained(found: Attribution, tokens: dict[int, str]) -> dict[str, Any]:
    """One position's attribution, of the components those with the largest shares."""
    tokens[found.target_id] = found.target_token
    if found.foil_id is not None and found.foil_token is not None:
        tokens[found.foil_id] = found.foil_token
    largest = np.argsort(-np.abs(found.direct), kind="stable")[:SHARES]
    others = len(found.direct) - len(largest)
    return {
        "position": found.position,
        "target": found.target_id,
        "foil": found.foil_id,
        "logprob": rounded(found.logprob),
        "delta": rounded(found.delta),
        "largest": largest.tolist(),
        "direct": rounded(found.direct[largest]),
        "others": others,
        "rest": rounded(found.direct.sum() - found.direct[largest].sum()),
        "logit": rounded(found.logit),
    }


def _params(count: ParamCount) -> dict[str, Any]:
    return {
        "model": count.source.model,
        "total": count.total,
        "parts": [
            {"part": name, "name": parts.NAMES[name], "number": count.parts[name]}
            for name in parts.present([count])
        ],
        "within_blocks": parts.WITHIN_BLOCKS,
        "tied": count.unembedding_tied,
        "blocks": [{"which": which, **block.data()} for which, block in parts.runs(count.blocks)],
        "n_blocks": len(count.blocks),
        "ratio": parts.ratio(count.mlp_to_attention),
        "ratio_weights": parts.ratio(count.mlp_to_attention_weights),
        "origin": count.counted_from,
        "dimensions": parts.dimensions(count),
        "bytes": parts.size(count.bytes["float32"]),
    }


def _alignment(reports: Sequence[Report]) -> dict[str, Any] | None:
    if len(reports) != 2 or reports[0].lens is None or reports[1].lens is None:
        return None
    shown = [
        [report.source.tokens[position] for position in report.lens.positions]
        for report in reports
        if report.lens is not None
    ]
    return {
        "positions": align_positions(*shown),
        "points": align_points(reports[0].lens.points, reports[1].lens.points),
    }


def rounded(values: Any) -> Any:
    """Nested lists of numbers with few digits; what is not finite is None."""
    if isinstance(values, np.ndarray) and values.ndim:
        return [rounded(value) for value in values]
    value = float(values)
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
