"""The result of rebuilding a block: what it equals, and what happens without each of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from resid.axes import axes
from resid.results.lab.result import LabResult, brief
from resid.results.result import Floats


@dataclass(frozen=True)
class LabBlock(LabResult):
    """A pretrained block written from scratch, held against the original and taken apart.

    Errors are relative: the largest difference, divided by the largest value of the original.
    """

    analysis: ClassVar[str] = "lab_block"
    layer: int
    """Which block."""
    n_layers: int
    """Of the model, all of which were rebuilt for what is stacked."""
    logit_error: float | None
    """Of the stack's logits; None where the model has no unembedding."""
    replaced: int
    """The position whose token was replaced by another."""
    replaced_by: int
    """The id of that other token."""
    replaced_by_token: str
    """Its display string."""
    d_mlp: int
    """Neurons of the block."""
    affine_error: float
    """Of one affine map, W_in W_out and b_in W_out + b_out, against the MLP without activation."""
    bend: float
    """The MLP of half its input, against half way from the MLP of zero to the MLP of its input:
    norm of the difference over half the distance between the two. 0 where the MLP is affine."""
    bend_linear: float
    """The same without activation."""
    steps: tuple[str, ...] = axes("step")
    """What happens in the block, first to last, under the field's names."""
    shapes: tuple[tuple[int, ...], ...] = axes("step")
    """Of the step's value: tokens and width, with heads apart heads first."""
    step_errors: Floats = axes("step")
    """Against what Hugging Face's block has there; NaN where that shows nothing."""
    points: tuple[str, ...] = axes("point")
    """The stream's points: embed, then behind every block."""
    stack_errors: Floats = axes("point")
    """Of all blocks stacked on the embeddings, at every point."""
    positions: tuple[int, ...] = axes("pos")
    """Of the prompt."""
    change: Floats = axes("pos")
    """By how much that moved the last stream: norm of the difference over norm of the stream."""
    change_alone: Floats = axes("pos")
    """The same where attention is taken out of every block."""
    sample_affine: Floats = axes("sample")
    """Some entries of what the affine map makes of the block's MLP input."""
    sample_linear: Floats = axes("sample")
    """The same entries of what the MLP without activation makes of it."""
    sample_own: Floats = axes("sample")
    """The same entries of what the MLP itself makes of it."""

    @property
    def step_error(self) -> float:
        """The error of the whole block: at its last step."""
        return float(self.step_errors[-1])

    @property
    def moved(self) -> list[int]:
        """The positions whose last stream the replaced token moved."""
        return [p for p, change in zip(self.positions, self.change, strict=True) if change != 0]

    @property
    def moved_alone(self) -> list[int]:
        """The same without attention."""
        changes = zip(self.positions, self.change_alone, strict=True)
        return [position for position, change in changes if change != 0]

    @property
    def finding(self) -> str:
        """What was found, from the numbers."""
        logits = ""
        if self.logit_error is not None:
            whole = "the whole model" if self.n_layers == 1 else f"all {self.n_layers} blocks"
            logits = f" and {whole} within {brief(self.logit_error)} of the model's logits"
        return (
            f"Built from scratch, block {self.layer} comes within {brief(self.step_error)} of "
            f"Hugging Face's{logits}; a token replaced at position {self.replaced} moves "
            f"{_at(self.moved)}, without attention {_at(self.moved_alone)}; without its activation "
            f"the MLP of {self.d_mlp:,} neurons is one affine map to within "
            f"{brief(self.affine_error)} (with it, half an input misses half way by "
            f"{self.bend:.0%})."
        )

    def axis_labels(self) -> dict[str, Sequence[Any]]:
        """`step`, `point`, `pos` and `sample`."""
        return {
            "step": self.steps,
            "point": self.points,
            "pos": self.positions,
            "sample": range(len(self.sample_own)),
        }

    def measured(self) -> dict[str, Any]:
        """The arrays under the names that JSON's `data` has for them."""
        return {
            "layer": self.layer,
            "shapes": self.shapes,
            "step_errors": self.step_errors,
            "stack_errors": self.stack_errors,
            "logit_error": self.logit_error,
            "replaced": {
                "pos": self.replaced,
                "id": self.replaced_by,
                "token": self.replaced_by_token,
            },
            "change": self.change,
            "change_alone": self.change_alone,
            "d_mlp": self.d_mlp,
            "affine_error": self.affine_error,
            "bend": self.bend,
            "bend_linear": self.bend_linear,
            "sample_affine": self.sample_affine,
            "sample_linear": self.sample_linear,
            "sample_own": self.sample_own,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record for every step of the block."""
        for step, shape, error in zip(self.steps, self.shapes, self.step_errors, strict=True):
            yield {
                "layer": self.layer,
                "step": step,
                "shape": "x".join(map(str, shape)),
                "error": error,
            }


def _at(positions: list[int]) -> str:
    """Positions in words: runs as first to last."""
    if not positions:
        return "nothing"
    if len(positions) == 1:
        return f"position {positions[0]} alone"
    if positions == list(range(positions[0], positions[-1] + 1)):
        return f"positions {positions[0]} to {positions[-1]}"
    return f"{len(positions)} positions from {positions[0]} to {positions[-1]}"
