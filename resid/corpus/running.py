"""One run over a corpus: read, save as it goes, take up where it stopped, bring parts together."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from resid.corpus import state
from resid.corpus.batches import Cutting, PacketEnd, Work
from resid.corpus.distributed import Group
from resid.corpus.files import STANDARD_INPUT, identify
from resid.corpus.fingerprint import describe_model
from resid.corpus.memory import MemoryReading
from resid.corpus.merging import refuse_other
from resid.corpus.plan import Plan, Step
from resid.corpus.reading import Reading
from resid.corpus.state import Run, Tally
from resid.corpus.stopping import held_back
from resid.corpus.text import Corpus
from resid.corpus.windows import find_seam
from resid.corpus.world import World
from resid.errors import ResidError
from resid.model import Model
from resid.results import Result
from resid.results.corpus_source import BadLine, CorpusSource


def run(
    model: Model,
    reading: Reading,
    plan: Plan,
    *,
    world: World | None = None,
    on_step: Callable[[Step], None] = lambda step: None,
    on_bad: Callable[[BadLine], None] = lambda line: None,
    on_stop: Callable[[bool], None] = lambda saved: None,
) -> Result | None:
    """The result of one analysis over a text; None in all processes but the first.

    Where the plan has a folder, Ctrl-C and SIGTERM end the run after the batch that is being read,
    with all that was read saved; a second one ends it at once.

    Args:
        model: that the reading reads.
        reading: a fresh one.
        plan: what to do.
        world: the processes that share the work; None: this one alone.
        on_step: is called after every batch.
        on_bad: is called with every bad line, once.
        on_stop: is called when a run with a folder is asked to end, with whether it is saved: at
            first False, then True.

    Raises:
        ResidError: the text cannot be read or holds nothing, the state belongs to another run, or,
            with `strict`, a line is bad.
    """
    world = world or World()
    cutting = _cutting(model, plan)
    started = _start(model, reading, plan, cutting)
    path = _path(plan, world)
    group = Group(world, model.device, plan.folder)
    with state.owned(plan.folder, alone=world.size == 1), group.connected():
        done = _taken_up(started, plan, world)
        if done is not None and plan.strict and done.tally.bad_lines:
            raise ResidError(_first_bad(done.source()))
        group.agree(_agreed(started, done))
        if done is None:
            if isinstance(reading, MemoryReading):
                reading.find_sayings()
            reader = _Reader(model, reading, plan, cutting, world, started, on_bad)
            if path is None:
                for step in reader.steps():
                    on_step(step)
            else:
                with held_back(lambda: on_stop(False)) as asked:
                    for step in reader.saved_steps(path, asked):
                        on_step(step)
                    if asked():
                        on_stop(True)
            done = _brought_together(started, plan, group, path)
    if done is None or not world.is_first:
        return None
    source = done.source()
    if not source.tokens and not source.shards:
        raise ResidError(_nothing_read(source))
    return done.totals.result(source)


def _nothing_read(source: CorpusSource) -> str:
    more = len(source.files) - 1
    told = f"there is nothing to read in '{source.files[0]['name']}'"
    told += f" and {more:,} more" if more else ""
    if source.empty_documents:
        told += f": {source.empty_documents:,} of its documents had no text"
    if source.bad_lines:
        told += f"\n{source.bad_lines:,} of its lines cannot be read, the first of them "
        told += _first_bad(source)
    return told


def _first_bad(source: CorpusSource) -> str:
    return "{file}, line {line}: {reason}".format(**source.bad_lines_first[0])


def _cutting(model: Model, plan: Plan) -> Cutting:
    room = model.n_ctx - plan.bos
    context = room if plan.context is None else plan.context
    if not 1 <= context <= room:
        with_bos = ", one of which is the beginning-of-sequence token" if plan.bos else ""
        raise ResidError(
            f"the context is {context} tokens; {model.name} reads 1 to {model.n_ctx}{with_bos}"
        )
    stride = context if plan.stride is None else plan.stride
    if not 1 <= stride <= context:
        raise ResidError(f"the stride is {stride}; it lies between 1 and the context's {context}")
    bos = model.bos_id() if plan.bos else None
    return Cutting(context, stride, plan.batch_tokens, plan.max_tokens, bos)


def _start(model: Model, reading: Reading, plan: Plan, cutting: Cutting) -> Run:
    """A run that has read nothing."""
    if STANDARD_INPUT in plan.files and (plan.folder is not None or plan.shard != (1, 1)):
        raise ResidError(
            "standard input cannot be read twice, so a run over it is neither saved nor shared out"
            "\nput the text into a file"
        )
    files = [dataclasses.asdict(identify(name)) for name in plan.files]
    settings = {
        "bos": plan.bos,  # Before what it changes.
        "context": cutting.context,
        "stride": cutting.stride,
        "split": plan.split,
        "field": plan.field or "text",
        "max_tokens": plan.max_tokens,
        "batch_tokens": plan.batch_tokens,
    }
    told = reading.totals.shape
    asked = {name: told[name] for name in ("points", "top", "projection") if name in told}
    source = model.source(None, ())
    names = ("model", "revision", "n_layers", "d_model", "d_vocab", "device", "versions")
    return Run(
        fingerprint={
            "analysis": reading.totals.analysis,
            "model": describe_model(model),
            "text": [{"bytes": file["bytes"], "sha256": file["sha256"]} for file in files],
            "settings": settings | asked,
        },
        about={name: getattr(source, name) for name in names} | {"files": files},
        totals=reading.totals,
        tally=Tally(),
        shards=() if plan.shard[1] == 1 else (plan.shard,),
    )


def _path(plan: Plan, world: World) -> Path | None:
    """Where this process saves its run."""
    if plan.folder is None:
        return None
    part = f"part-{world.rank + 1}-of-{world.size}.safetensors"
    return plan.folder / (state.FILE if world.size == 1 else part)


def _taken_up(started: Run, plan: Plan, world: World) -> Run | None:
    """The finished run of the folder, or None, with what its state holds put into `started`."""
    if plan.folder is None:
        return None
    path, whole = _path(plan, world), plan.folder / state.FILE
    assert path is not None
    there = sorted(plan.folder.glob("*.safetensors")) if plan.folder.is_dir() else []
    if there and not plan.resume:
        raise ResidError(
            f"'{plan.folder}' holds a run already\n"
            "go on with it by --resume, or give another folder"
        )
    state.sweep(path)
    for file in (whole, path):
        if not file.is_file():
            continue
        found = state.read(file)
        refuse_other(
            started,
            found,
            f"the run in '{plan.folder}'",
            "start anew in another folder, or go on with what it was made with",
        )
        if found.shards != started.shards:
            raise ResidError(f"the run in '{plan.folder}' is of another shard of the text")
        if found.finished and file == whole:
            return found
        if file == path:
            started.totals.add(found.totals.record(), found.totals.arrays())
            started.tally = found.tally
            started.packet, started.batch = found.packet, found.batch
            started.finished = found.finished
            return None
    # Of as many processes some may have saved before this one did.
    others = [file.name for file in there if not file.match(f"part-*-of-{world.size}.*")]
    if others:
        raise ResidError(
            f"the run in '{plan.folder}' was started on another number of processes: it has "
            f"{others[0]}\ngo on with it on as many, or start anew in another folder"
        )
    return None


def _agreed(started: Run, done: Run | None) -> bytes:
    """What all processes must have in common."""
    return json.dumps([started.fingerprint, started.shards, done is not None]).encode()


class _Reader:
    """One process's part of a run, from where it stopped to its end."""

    def __init__(
        self,
        model: Model,
        reading: Reading,
        plan: Plan,
        cutting: Cutting,
        world: World,
        run: Run,
        on_bad: Callable[[BadLine], None],
    ) -> None:
        self.reading, self.plan, self.world, self.run = reading, plan, world, run
        self.on_bad = on_bad
        self.numbers = {name: i for i, name in enumerate(plan.files)}
        self.parts = plan.shard[1] * world.size
        self.part = plan.shard[0] - 1 + plan.shard[1] * world.rank
        # Of the packet that is being read; with its end they count.
        self.bad_lines: list[BadLine] = []
        self.corpus = Corpus(plan.files, split=plan.split, field=plan.field, on_bad=self._bad)
        encode = model.vocabulary.encode
        seam = find_seam(encode, model.vocabulary.added())
        self.work = Work(self.corpus, encode, cutting, self._is_mine, seam)

    def saved_steps(self, path: Path, asked_to_end: Callable[[], bool]) -> Iterator[Step]:
        """The same, saved to a file from time to time, at the end, and where it is asked to end."""
        saved = time.monotonic()
        for step in self.steps():
            ends = asked_to_end()
            if ends or time.monotonic() - saved >= self.plan.save_every:
                state.save(self.run, path)
                saved = time.monotonic()
            if ends:
                return
            yield step
        state.save(self.run, path)

    def steps(self) -> Iterator[Step]:
        """Read; a step for every batch and for every end of a packet."""
        if self.run.finished:
            return
        tokens, skipped = 0, self.run.batch
        for what in self.work.run(self.run.packet):
            if isinstance(what, PacketEnd):
                self._close(what)
            elif skipped:
                skipped -= 1  # It is in the totals that the run was taken up with.
                continue
            else:
                self.reading.read(what, first=self.run.batch == 0)
                tokens += what.tokens
                self.run.tally.tokens += what.tokens
                self.run.packet, self.run.batch = self.work.packet, self.run.batch + 1
            yield Step(self.corpus.bytes_read, self.work.tokens_seen, tokens)
        self._count_bad()  # Behind the last document.
        self.run.finished, self.run.packet, self.run.batch = True, 0, 0

    def _is_mine(self, packet: int) -> bool:
        return packet % self.parts == self.part

    def _bad(self, line: BadLine) -> None:
        if self.plan.strict:
            raise ResidError(f"{line.file}, line {line.line}: {line.reason}")
        if self.work.mine:
            self.bad_lines.append(line)
        self.on_bad(line)

    def _count_bad(self) -> None:
        for line in self.bad_lines:
            self.run.tally.add_bad(self.numbers[line.file], line.line, line.reason)
        self.bad_lines = []

    def _close(self, end: PacketEnd) -> None:
        self.run.totals.close()
        self.run.tally.documents += end.documents
        self.run.tally.empty_documents += end.empty
        self._count_bad()
        self.run.packet, self.run.batch = end.packet + 1, 0


def _brought_together(run: Run, plan: Plan, group: Group, path: Path | None) -> Run | None:
    """The parts of all processes as one; None in all but the first."""
    if group.world.size == 1:
        return run
    first = group.world.is_first
    for rank, received in enumerate(group.gathered(b"" if first else run.to_bytes()), start=1):
        run.add(state.from_bytes(received, f"process {rank}"))
    if plan.folder is not None and path is not None:
        if first:
            state.save(run, plan.folder / state.FILE)
        group.wait()  # Only when the whole is safe are the parts of no more use.
        path.unlink(missing_ok=True)
    return run if first else None
