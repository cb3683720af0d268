"""Runs that belong together: what tells them from others, and parts of one text as one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from resid.corpus.state import Run, from_bytes
from resid.errors import ResidError


def refuse_other(mine: Run, theirs: Run, what: str, advice: str) -> None:
    """Refuse a run that depends on anything else.

    Args:
        mine: what is to be done, or the first of several.
        theirs: the run that is to fit.
        what: that run, in words.
        advice: what to do about it.

    Raises:
        ResidError: naming what differs.
    """
    names = [file["name"] for file in mine.about["files"]]
    difference = _difference(mine.fingerprint, theirs.fingerprint, names)
    if not difference and mine.totals.shape != theirs.totals.shape:
        difference = f"shape: {theirs.totals.shape}, not {mine.totals.shape}"
    if difference:
        raise ResidError(f"{what} was made with another {difference}\n{advice}")


def _difference(
    mine: Mapping[str, Any], theirs: Mapping[str, Any], names: Sequence[str]
) -> str | None:
    if mine["analysis"] != theirs["analysis"]:
        return f"analysis: {theirs['analysis']}, not {mine['analysis']}"
    for name in ("dtype", "weights", "tokenizer", "configuration"):
        if mine["model"][name] != theirs["model"][name]:
            shown = {"weights": "model: its weights differ", "tokenizer": "tokenizer"}
            values = f"{name}: {theirs['model'][name]}, not {mine['model'][name]}"
            return shown.get(name, values)
    for name, value in mine["settings"].items():
        if theirs["settings"].get(name) != value:
            return f"{name}: {theirs['settings'].get(name)}, not {value}"
    if len(mine["text"]) != len(theirs["text"]):
        files = f"file{'s' * (len(theirs['text']) != 1)}"
        return f"text: {len(theirs['text'])} {files}, not {len(mine['text'])}"
    for name, one, other in zip(names, mine["text"], theirs["text"], strict=True):
        if one != other:
            return f"text: '{name}', {other['bytes']:,} bytes then, {one['bytes']:,} now"
    return None


def merge(runs: Mapping[str, Run]) -> Run:
    """Several parts of one text as one run, the same to the last bit as if it had been read so.

    Args:
        runs: by name, in any order.

    Raises:
        ResidError: two cover the same part of the text, or differ in model, text or settings.
    """
    names = list(runs)
    first = runs[names[0]]
    seen: dict[tuple[int, int], str] = {}
    for name in names:
        run = runs[name]
        refuse_other(
            first,
            run,
            f"'{name}', unlike '{names[0]}',",
            "only parts of one run over one text can be merged",
        )
        for shard in run.shards or ((1, 1),):
            if shard in seen:
                part = "all of the text" if shard == (1, 1) else "shard {}/{}".format(*shard)
                raise ResidError(f"'{seen[shard]}' and '{name}' both hold {part}")
            seen[shard] = name
    sizes = {n: name for (_, n), name in seen.items()}
    if len(sizes) > 1:
        one, other, *_ = sizes
        raise ResidError(
            f"'{sizes[one]}' is of {_shards(one)}, '{sizes[other]}' of {_shards(other)}"
            "\nonly shards of one number fit together"
        )
    # Always from the part with the first shard: its names are those that are told.
    order = sorted(names, key=lambda name: runs[name].shards or ((1, 1),))
    merged = from_bytes(runs[order[0]].to_bytes(), order[0])
    for name in order[1:]:
        merged.add(runs[name])
    (n,) = sizes
    merged.shards = () if len(seen) == n else tuple(sorted(seen))
    merged.packet = merged.batch = 0
    return merged


def _shards(n: int) -> str:
    return "all of the text" if n == 1 else f"{n} shards"
