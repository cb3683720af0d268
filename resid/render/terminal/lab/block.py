"""The rebuilt block in the terminal: its steps with their shapes, and what each part is for."""

from __future__ import annotations

import math

from rich.console import Console
from rich.text import Text

from resid.render.lab_block_words import ON_THE_STREAM, formula, shape
from resid.render.lab_words import IDENTITIES, digits
from resid.render.terminal import cells
from resid.render.terminal.columns import column, print_columns, total_width
from resid.render.terminal.console import pick, say, shorten
from resid.render.terminal.frame import print_checks, print_source
from resid.render.words import short
from resid.results.lab import LabBlock

_NARROWEST_FORMULA = 12
_MOST_POSITIONS = 24


def render_block(block: LabBlock, console: Console) -> None:
    """Print every step of the block, then which positions notice a token, then the straight line.

    Args:
        block: what to print.
        console: where to.
    """
    print_source(console, "lab block", block)
    say(console, f"block {block.layer}, written from scratch, on the model's own weights")
    say(console, "")
    _print_steps(block, console)
    say(console, "")
    say(console, f"all blocks stacked: {_stack(block)}")
    say(console, "")
    _print_change(block, console)
    say(console, "")
    say(console, _line(block))
    say(console, "")
    say(console, Text(block.finding, style="bold"))
    notes = "error: largest difference over largest value; blank where Hugging Face's block shows"
    say(console, f"{notes} nothing", cells.QUIET)
    print_checks(console, block, IDENTITIES)


def _print_steps(block: LabBlock, console: Console) -> None:
    activation = str(block.source.settings["activation"])
    steps = column("step", [_step(console, step) for step in block.steps])
    shapes = column("shape", [Text(shape(sizes)) for sizes in block.shapes])
    errors = column("error", [_error(error) for error in block.step_errors], right=True)
    formulas = [formula(step, activation) for step in block.steps]
    room = console.width - total_width([steps, column("", []), shapes, errors])
    made = [Text(shorten(console, text, max(room, 1))) for text in formulas]
    middle = [column("is", made)] if room >= _NARROWEST_FORMULA else []
    print_columns(console, [steps, *middle, shapes, errors])


def _step(console: Console, step: str) -> Text:
    """The stream stands at the margin, what lies in a branch behind a line."""
    if step in ON_THE_STREAM:
        return Text(step, style="bold")
    return Text.assemble((pick(console, "│ ", "| "), cells.QUIET), step)


def _error(error: float) -> Text:
    """Empty where nothing was compared, loud where the difference has no size."""
    if math.isnan(error):
        return Text()
    return Text(short(error)) if math.isfinite(error) else cells.absent()


def _stack(block: LabBlock) -> str:
    worst = int(block.stack_errors.argmax())
    line = f"error at most {short(block.stack_errors[worst])}, at {block.points[worst]}"
    if block.logit_error is None:
        return line
    return f"{line}; of the logits {short(block.logit_error)}"


def _print_change(block: LabBlock, console: Console) -> None:
    settings = block.source.settings
    line = Text(f"the token at position {block.replaced} becomes ")
    line.append_text(cells.token(console, block.replaced_by_token))
    say(console, line.append(": how far the last stream moves, over its norm"))
    say(console, "")
    shown = block.positions
    if len(shown) > _MOST_POSITIONS:
        first = max(0, block.replaced - _MOST_POSITIONS // 2)
        shown = shown[first : first + _MOST_POSITIONS]
    columns = [
        column("pos", [Text(str(position)) for position in shown], right=True),
        column("token", [cells.token(console, settings["tokens"][p], 24) for p in shown]),
        column("with attention", [_moved(block.change[p]) for p in shown], right=True),
        column("without attention", [_moved(block.change_alone[p]) for p in shown], right=True),
    ]
    print_columns(console, columns)
    if len(shown) < len(block.positions):
        say(console, f"of {len(block.positions):,} positions; JSON has them all", cells.QUIET)


def _moved(change: float) -> Text:
    if not math.isfinite(change):
        return cells.absent()
    return Text(digits(change)) if change else Text("0", style=cells.QUIET)


def _line(block: LabBlock) -> str:
    width = block.shapes[0][-1]
    return (
        f"the MLP without its activation: one {width:,} x {width:,} matrix, W_in W_out, does what "
        f"{block.d_mlp:,} neurons do, error {short(block.affine_error)}; half an input then misses "
        f"half way by {short(100 * block.bend_linear)}%, with the activation by {block.bend:.0%}"
    )
