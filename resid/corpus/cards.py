"""A neuron's card with what a run over text has found: how often it fires, and on what."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from resid.corpus.fingerprint import describe_model
from resid.corpus.memory_totals import MemoryTotals
from resid.corpus.state import open_run
from resid.errors import ResidError
from resid.model import Model
from resid.results.memory import NeuronCard


def with_triggers(
    card: NeuronCard, model: Model, folder: str | Path, *, top: int | None = None
) -> NeuronCard:
    """The card with the text that fires its neuron.

    Args:
        card: of a neuron of the model.
        model: the one that the run was made with.
        folder: of a finished run of `resid corpus memory`.
        top: triggers on the card at most; None: all that the run has. The share of triggers with
            which the value agrees is of all of them.

    Raises:
        ResidError: there is no such run in the folder, or it was made with another model.
    """
    run = open_run(folder)
    totals = run.totals
    if not isinstance(totals, MemoryTotals):
        raise ResidError(
            f"the run in '{folder}' is of resid corpus {totals.analysis}, which keeps no triggers"
            "\ngive the folder of a resid corpus memory"
        )
    mine, theirs = describe_model(model), run.fingerprint["model"]
    for name in ("dtype", "weights", "configuration", "tokenizer"):
        if mine[name] != theirs[name]:
            raise ResidError(
                f"the run in '{folder}' was made with other {name} than {model.name} has: "
                f"{run.about['model']}, {theirs['dtype']}\ngive that model with -m"
            )
    if not (card.layer < totals.n_layers and card.neuron < totals.d_mlp):
        raise ResidError(f"the run in '{folder}' has no L{card.layer}N{card.neuron}")
    files = [file["name"] for file in run.about["files"]]
    triggers = totals.triggers_of(card.layer, card.neuron, totals.vocabulary(), files)
    follows = [trigger.next_id for trigger in triggers if trigger.next_id >= 0]
    agreement = None
    if follows and card.promoted.known[0]:
        # What the card says the value promotes, which in the run may be by another projection.
        agreement = follows.count(int(card.promoted.ids[0, 0])) / len(follows)
    fires = float(totals.share_fired(card.layer)[card.neuron])
    return dataclasses.replace(
        card,
        triggers=tuple(trigger.record() for trigger in triggers[:top]),
        fires=fires if fires == fires else None,
        agreement=agreement,
        corpus=run.source(),
    )
