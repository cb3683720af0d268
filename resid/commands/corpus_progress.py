"""How far a run over text has come, on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from resid.commands.notes import printable, tell

if TYPE_CHECKING:
    from resid.corpus.plan import Plan, Step
    from resid.results.corpus_source import BadLine

# Bad lines that are told one by one; all are counted.
_TOLD = 10


class Progress:
    """A bar with tokens per second and the time left, where standard error is a terminal."""

    def __init__(self, plan: Plan, processes: int, shown: bool) -> None:
        self.plan, self.processes, self.shown = plan, processes, shown
        self.bad_lines = 0
        self.bar: Any = None
        self.saved = False

    def __enter__(self) -> Progress:
        if not self.shown or not sys.stderr.isatty():
            return self
        from pathlib import Path

        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        from resid.render.terminal import make_console

        self.bar = Bar(
            TextColumn("{task.fields[doing]}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=make_console(sys.stderr),
            transient=True,
        )
        known = "-" not in self.plan.files
        size = sum(Path(name).stat().st_size for name in self.plan.files) if known else None
        self.total = self.plan.max_tokens or size
        self.task = self.bar.add_task("", total=self.total, rate="", doing="reading")
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
        if self.bad_lines > _TOLD and self.shown:
            tell(f"left out in all: {self.bad_lines} lines that cannot be read")
        if self.saved and self.shown:
            tell(f"what was read is saved; go on with it by --resume {self.plan.folder}")

    def step(self, step: Step) -> None:
        """Show how far it has come."""
        if self.bar is None:
            return
        done = step.tokens_seen if self.plan.max_tokens else step.bytes_read
        seconds = self.bar.tasks[self.task].elapsed or 0.0
        rate = self.processes * step.tokens / seconds if seconds else 0.0
        self.bar.update(self.task, completed=done, rate=f"{rate:,.0f} tokens/s")

    def stop(self, saved: bool) -> None:
        """Tell that the run ends before its time."""
        self.saved = saved
        if self.bar is not None:
            # Only noted here, in the middle of anything; the bar draws it by itself.
            self.bar.update(self.task, doing="ending with this batch; once more ends it at once")

    def bad(self, line: BadLine) -> None:
        """Tell of a line that cannot be read."""
        self.bad_lines += 1
        if self.bad_lines <= _TOLD:
            self._tell(f"left out: {line.file}, line {line.line}: {line.reason}")
        elif self.bad_lines == _TOLD + 1:
            self._tell("left out: more such lines; they are counted")

    def _tell(self, text: str) -> None:
        if self.bar is not None:
            # Above the bar, which else would be torn.
            self.bar.console.print(printable(text), markup=False, highlight=False)
        elif self.shown:
            tell(text)
