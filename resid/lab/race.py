"""A race of small models: the same text, the same seeds, one thing in the block changed at a time.

After the ablations that everybody quotes (residual connections: He et al. 1512.03385; where the
LayerNorm goes: Xiong et al. 2002.04745; SwiGLU at equal parameters: Shazeer 2002.05202; the width
of the MLP: Kaplan et al. 2001.08361), small enough to be run again by whoever doubts them. All
variants share one learning rate, tuned for none: a race says how they compare at this size, after
this many steps.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Literal

import numpy as np
import torch

from resid.lab.race_folder import Folder
from resid.lab.race_models import initial_parameters, logits
from resid.lab.race_text import Text
from resid.lab.race_training import Plan, State, advance, begin
from resid.lab.race_variants import Entry, Sizes, count_parameters
from resid.lab.race_verdict import interval
from resid.lab.source import lab_source
from resid.lab.threads import one_thread
from resid.results.lab import LabRace
from resid.results.result import Check, Floats

Pairs = Literal["first", "all"]
Job = tuple[Entry, int]

CONTEXT = 64
"""Bytes that the models see at once, unless a plan says otherwise."""
_D_MODEL, _N_HEADS, _BATCH, _HELD_OUT = 64, 2, 16, 4096
_MEASUREMENTS = 12
# An equal-parameter variant is as near to the base as whole neurons allow.
_EQUAL = 0.01
# Masked attention weights are exact zeros; what is left is the order in which a kernel adds.
_CAUSAL = 1e-5


def plan_for(text: Text, *, layers: int = 4, steps: int = 200, learning_rate: float = 6e-3) -> Plan:
    """How the race is run on a text, in sizes that keep it short.

    Args:
        text: what is read.
        layers: blocks in every model.
        steps: of training.
        learning_rate: at its highest.
    """
    measured = {round(steps * k / _MEASUREMENTS) for k in range(_MEASUREMENTS + 1)}
    return Plan(
        sizes=Sizes(layers, _D_MODEL, _N_HEADS, CONTEXT, text.d_vocab),
        steps=steps,
        batch=_BATCH,
        learning_rate=learning_rate,
        held_out=_HELD_OUT,
        measured_at=tuple(sorted(measured)),
    )


def race(
    entries: Sequence[Entry],
    plan: Plan,
    text: Text,
    *,
    pairs: Pairs = "first",
    confidence: float = 0.95,
    folder: Folder | None = None,
    jobs: int | None = None,
    progress: Callable[[int], None] = lambda steps: None,
) -> LabRace:
    """Train every variant under each of its seeds, and judge what the seeds can tell apart.

    Runs are independent of each other and of how many go on at once: each computes on one thread,
    so that the same seeds give the same numbers on the same machine.

    Args:
        entries: the variants, as `line_up` makes them.
        plan: how they are trained, as `plan_for` makes it.
        text: what they read.
        pairs: "first" judges every variant against the first; "all" judges every pair, with
            wider intervals, for there are more of them.
        confidence: that all intervals hold together.
        folder: where runs are kept, and taken from where they are there.
        jobs: how many runs at once; None: one for every core.
        progress: called with the number of steps that are done more than before.

    Returns:
        The held-out loss of every run at every measurement, in nats a byte, and the intervals.
    """
    todo: list[Job] = [(entry, seed) for entry in entries for seed in entry.seeds]
    runner = _Runner(plan, text, folder, progress)
    losses = _run_all(runner, todo, jobs or _cores())
    shape = (len(entries), len(entries[0].seeds), len(plan.measured_at))
    curves = np.array([losses[i] for i in range(len(todo))]).reshape(shape)
    chosen = [
        (a, b) for a in range(len(entries)) for b in range(a + 1, len(entries))
        if pairs == "all" or a == 0
    ]  # fmt: skip
    judged = [
        interval(curves[a, :, -1], curves[b, :, -1], confidence, len(chosen)) for a, b in chosen
    ]
    unigram, bigram = text.count_losses()
    widths = np.array([entry.variant.widths(plan.sizes) for entry in entries])
    return LabRace(
        source=lab_source("race", _subject(plan), _settings(plan, text), entries[0].seeds[0]),
        checks=_checks(entries, plan, curves),
        text_sha256=text.sha256,
        confidence=confidence,
        unigram_loss=unigram,
        bigram_loss=bigram,
        variants=tuple(entry.label for entry in entries),
        d_model=widths[:, 0],
        d_mlp=widths[:, 1],
        parameters=np.array([count_parameters(entry.variant, plan.sizes) for entry in entries]),
        seeds=np.array([entry.seeds for entry in entries]),
        steps=plan.measured_at,
        loss=curves,
        first=tuple(a for a, _ in chosen),
        second=tuple(b for _, b in chosen),
        difference=np.array([each.difference for each in judged]),
        low=np.array([each.low for each in judged]),
        high=np.array([each.high for each in judged]),
    )


class _StoppedError(Exception):
    """Another run has failed, or somebody has had enough."""


class _Runner:
    """Makes one run at a time, in whatever thread calls it."""

    def __init__(
        self, plan: Plan, text: Text, folder: Folder | None, progress: Callable[[int], None]
    ) -> None:
        self.plan, self.text, self.folder, self.progress = plan, text, folder, progress
        self.stop = threading.Event()

    def __call__(self, job: Job) -> list[float]:
        """The losses of the run: those that are kept, or after training to its end."""
        entry, seed = job
        kept = self.folder.finished(entry.name, seed) if self.folder else None
        if kept is not None:
            self.progress(self.plan.steps)
            return kept
        state = begin(entry.variant, self.plan, seed)
        if self.folder:
            state = self.folder.restore(entry.name, seed, state)
            self.progress(state.step)

        def save(state: State) -> None:
            if self.folder:
                self.folder.save(entry.name, seed, state)

        advance(
            state,
            entry.variant,
            self.plan,
            self.text,
            seed,
            after_step=self._after_step,
            after_measurement=save,
        )
        if self.folder:
            self.folder.finish(entry.name, seed, state.losses)
        return state.losses

    def _after_step(self) -> None:
        if self.stop.is_set():
            raise _StoppedError
        self.progress(1)


def _run_all(runner: _Runner, todo: Sequence[Job], jobs: int) -> list[list[float]]:
    """The losses of every run, in order."""
    # One thread each: sums then come out the same whatever the number of cores.
    with one_thread(), ThreadPoolExecutor(min(jobs, len(todo))) as pool:
        running = [pool.submit(runner, job) for job in todo]
        try:
            done, _ = wait(running, return_when=FIRST_EXCEPTION)
            for run in done:
                run.result()  # Raises what ended the race.
        except BaseException:
            runner.stop.set()
            pool.shutdown(cancel_futures=True)
            raise
        return [run.result() for run in running]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _subject(plan: Plan) -> str:
    """What races, in a few words."""
    layers = "1 layer" if plan.sizes.layers == 1 else f"{plan.sizes.layers} layers"
    return f"GPTs of {layers}, d_model {plan.sizes.d_model}"


def _settings(plan: Plan, text: Text) -> dict[str, object]:
    length = len(text.train) + len(text.held_out)
    return {
        "text": text.name,
        "bytes": length,
        "steps": plan.steps,
        "batch": plan.batch,
        "context": plan.sizes.context,
        "heads": plan.sizes.n_heads,
        "learning_rate": plan.learning_rate,
        "initial": "N(0, 1/inputs)",
    }


def _checks(entries: Sequence[Entry], plan: Plan, curves: Floats) -> tuple[Check, ...]:
    finite, causal = _check_finite(entries, plan, curves), _check_causal(entries, plan)
    return (finite, causal, *_check_equal(entries, plan))


def _check_finite(entries: Sequence[Entry], plan: Plan, curves: Floats) -> Check:
    def place(i: int, j: int, k: int) -> str:
        return f"{entries[i].label}, seed {entries[i].seeds[j]}, step {plan.measured_at[k]}"

    return Check.of_finite(np.isfinite(curves), place)


def _check_causal(entries: Sequence[Entry], plan: Plan) -> Check:
    """No variant's prediction may change when a later byte does."""
    sizes = plan.sizes
    ids = torch.arange(sizes.context)[None] % sizes.d_vocab
    other = ids.clone()
    other[0, -1] = (other[0, -1] + 1) % sizes.d_vocab
    worst, where = 0.0, None
    for entry in entries:
        parameters = initial_parameters(entry.variant, sizes, entry.seeds[0])
        with torch.no_grad():
            both = [logits(parameters, entry.variant, sizes, each) for each in (ids, other)]
        error = float((both[0] - both[1])[:, :-1].abs().max())
        if error > worst:
            worst, where = error, entry.label
    passed = worst <= _CAUSAL
    return Check("causal", worst, _CAUSAL, passed, None if passed else where)


def _check_equal(entries: Sequence[Entry], plan: Plan) -> tuple[Check, ...]:
    """What is said to have as many parameters as the base has."""
    base = count_parameters(type(entries[0].variant)(), plan.sizes)
    worst, where = None, None
    for entry in entries:
        if entry.variant.equal:
            error = abs(count_parameters(entry.variant, plan.sizes) / base - 1)
            if worst is None or error > worst:
                worst, where = error, entry.label
    if worst is None:
        return ()
    passed = worst <= _EQUAL
    return (Check("equal_parameters", worst, _EQUAL, passed, None if passed else where),)
