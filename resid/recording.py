"""Hooks that store what passes, and nothing else: the residual stream and what writes to it.

A hook here copies a tensor, or shows it to whoever watches. It changes nothing, returns nothing,
and is gone when its `with` ends, however it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import torch

from resid.errors import ResidError
from resid.forward_pass import evaluating
from resid.model import Model, Side
from resid.points import resolve, resolve_points, resolve_positions, stream_points
from resid.results import Source


@contextmanager
def recording(
    model: Model, points: str | Sequence[str] = "everything"
) -> Iterator[dict[str, torch.Tensor]]:
    """A dictionary that fills while the model runs once inside the `with`.

    Keys are names as `resid.points.resolve` gives them, values detached copies [batch, pos,
    d_model], or [batch, pos, d_mlp] for mlp_pre and mlp_post. The model's logits are bit-identical
    to those without recording. Hooks that were set before fire as before, and what they change is
    recorded.

    Args:
        model: from `load`.
        points: see `resid.points.resolve`.

    Raises:
        ResidError: a name is not a place in the model; the model ran twice (open a `recording` for
            each run) or not at all; or a hook did not fire.
    """
    captured: dict[str, torch.Tensor] = {}

    def store(name: str, tensor: torch.Tensor) -> None:
        # A copy: a later in-place operation would otherwise rewrite what was stored.
        captured[name] = tensor.clone()

    with watching(model, points, store):
        yield captured


@contextmanager
def watching(
    model: Model, points: str | Sequence[str], see: Callable[[str, torch.Tensor], None]
) -> Iterator[None]:
    """Calls `see` with the name and the tensor at every point while the model runs once inside.

    Nothing is copied or kept: this is for readings of so much that it must be read as it passes.

    Args:
        model: from `load`.
        points: see `resid.points.resolve`.
        see: gets what `recording` would store, detached, but the model's own: it must be left as it
            is, and lasts only as long as the call.

    Raises:
        ResidError: as for `recording`.
    """
    names = resolve(points, model.n_layers)
    seen: set[str] = set()

    def once(name: str, tensor: torch.Tensor) -> None:
        if name in seen:
            raise ResidError(f"a second forward pass inside one recording() reached {name}")
        seen.add(name)
        see(name, tensor.detach())

    with ExitStack() as hooks:
        for name in names:
            hooks.callback(_hook(*model.site(name), partial(once, name)).remove)
        yield
    silent = [name for name in names if name not in seen]
    if silent:
        raise ResidError(
            f"nothing passed through {silent[0]} while recording: run the model once inside the"
            " `with`\n(a compiled or offloaded model keeps its hooks from firing)"
        )


def _hook(module: Any, side: Side, see: Callable[[torch.Tensor], None]) -> Any:
    if side == "output":
        # Blocks and attention return a tensor or a tuple that begins with it, by version.
        return module.register_forward_hook(
            lambda _module, _inputs, out: see(out[0] if isinstance(out, tuple) else out)
        )
    return module.register_forward_pre_hook(
        lambda _module, inputs, named: see(inputs[0] if inputs else next(iter(named.values()))),
        with_kwargs=True,
    )


@dataclass(frozen=True, eq=False)
class Recording(Mapping[str, torch.Tensor]):
    """What one prompt left behind: a mapping from names to [pos, width] tensors.

    It holds no reference to the model.
    """

    source: Source
    activations: dict[str, torch.Tensor]
    """[pos, d_model] by name; [pos, d_mlp] for mlp_pre and mlp_post."""
    logits: torch.Tensor | None = None
    """[pos, d_vocab] the model's own logits at `logits_at`, against which readings are checked."""
    logits_at: tuple[int, ...] = ()
    """The positions of `logits`."""

    def __getitem__(self, name: str) -> torch.Tensor:
        if name in self.activations:
            return self.activations[name]
        names = resolve([name], self.source.n_layers)
        if len(names) != 1:
            raise ResidError(f"'{name}' stands for several names; ask for one, such as {names[0]}")
        (name,) = names
        if name not in self.activations:
            raise ResidError(
                f"{name} was not recorded; record it with points=[{name!r}, ...] or 'everything'"
            )
        return self.activations[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.activations)

    def __len__(self) -> int:
        return len(self.activations)

    def __contains__(self, name: object) -> bool:
        return name in self.activations

    @property
    def ids(self) -> tuple[int, ...]:
        """[pos] the ids that the model read."""
        return self.source.ids

    @property
    def points(self) -> tuple[str, ...]:
        """The recorded points of the residual stream, in order."""
        every = stream_points(self.source.n_layers, mids=True)
        return tuple(point for point in every if point in self.activations)

    def stream(self, points: str | Sequence[str] = "post") -> torch.Tensor:
        """[point, pos, d_model] the residual stream at some points, stacked in stream order.

        Raises:
            ResidError: a point was not recorded, or is not a point of the stream.
        """
        names = resolve_points(points, self.source.n_layers)
        return torch.stack([self[name] for name in names])


def check_made_by(model: Model, recording: Recording) -> None:
    """Refuse what is no recording, and one whose stream the model cannot have made.

    Raises:
        ResidError: naming what differs: a size, or a token or a position that the model lacks.
    """
    if not isinstance(recording, Recording):
        raise ResidError(
            f"this reads a recording, not a {type(recording).__name__}: "
            "resid.record(model, prompt) makes one"
        )
    source, ids = recording.source, recording.ids
    check_size(model, recording, "n_layers", source.n_layers, model.n_layers)
    check_size(model, recording, "d_model", source.d_model, model.d_model)
    unknown = [token for token in ids if not 0 <= token < model.n_embeddings]
    if unknown:
        raise ResidError(
            f"the recording of {source.model} has the id {unknown[0]}; "
            f"{model.name} has ids 0 to {model.n_embeddings - 1}"
        )
    if len(ids) > model.n_ctx:
        raise ResidError(
            f"the recording of {source.model} has {len(ids)} positions; "
            f"{model.name} reads {model.n_ctx}"
        )


def check_size(model: Model, recording: Recording, name: str, recorded: int, own: int) -> None:
    """Refuse a recording one of whose sizes is not the model's.

    Raises:
        ResidError: naming it.
    """
    if recorded != own:
        raise ResidError(
            f"the recording is not of {model.name}, whose {name} is {own}, but of "
            f"{recording.source.model}, whose {name} is {recorded}"
        )


@overload
def record(
    model: Model,
    prompt: str | Sequence[int],
    *,
    points: str | Sequence[str] = ...,
    bos: bool = ...,
    logits: bool | Sequence[int] = ...,
) -> Recording: ...


@overload
def record(
    model: Model,
    prompt: Sequence[Sequence[int]] | list[str],
    *,
    points: str | Sequence[str] = ...,
    bos: bool = ...,
    logits: bool = ...,
) -> list[Recording]: ...


def record(
    model: Model,
    prompt: str | Sequence[int] | Sequence[str | Sequence[int]],
    *,
    points: str | Sequence[str] = "everything",
    bos: bool = False,
    logits: bool | Sequence[int] = True,
) -> Recording | list[Recording]:
    """The recording of one forward pass over a prompt; for a list of prompts, a list of recordings.

    Several prompts run as one padded batch, and each recording equals that of its prompt alone.

    Args:
        model: from `load`.
        prompt: text or ids; or a sequence of such.
        points: which points and activations to keep, see `resid.points.resolve`. "post" keeps the
            stream alone, which for a long prompt is a small part of "everything".
        bos: put one beginning-of-sequence token in front.
        logits: keep the model's own logits, at every position or at those given (negative ones
            count from the end); readings check themselves against them.

    Raises:
        ResidError: a prompt is empty, longer than the context, or has ids that the model cannot
            read; or a name in `points` is not a place in the model.
    """
    if _is_one(prompt):
        return _record([prompt], model, points, bos, logits)[0]
    if len(prompt) == 0:
        raise ResidError("the list of prompts is empty; give at least one prompt")
    if not isinstance(logits, bool):
        raise ResidError("positions for logits need a single prompt; give logits=True or False")
    return _record(list(prompt), model, points, bos, logits)


def _is_one(prompt: Any) -> bool:
    """Whether a prompt is one: text, a row of ids as numbers, array or tensor."""
    if isinstance(prompt, str):
        return True
    if hasattr(prompt, "ndim"):
        return bool(prompt.ndim == 1)
    if len(prompt) == 0:
        return False
    # The numbers of a tensor are tensors without an axis, which have a length that raises.
    return not hasattr(prompt[0], "__len__") or getattr(prompt[0], "ndim", 1) == 0


def _record(
    prompts: list[Any], model: Model, points: Any, bos: bool, logits: bool | Sequence[int]
) -> list[Recording]:
    rows = [model.encode(prompt, bos=bos) for prompt in prompts]
    longest = max(len(row) for row in rows)
    names = resolve(points, model.n_layers)
    wanted = _positions(logits, longest) if model.has_head else ()
    own = None
    with evaluating(model.hf), torch.no_grad(), recording(model, names) as captured:
        if wanted:
            own = model.forward(rows, wanted)
        else:
            model.run_blocks(rows)
    kept = []
    for i, (prompt, row) in enumerate(zip(prompts, rows, strict=True)):
        n = len(row)
        at = tuple(position for position in wanted if position < n)
        text = prompt if isinstance(prompt, str) else None
        kept.append(
            Recording(
                source=model.source(text, row),
                activations={name: _row(captured[name], i, n) for name in names},
                logits=None if own is None else _row(own, i, len(at)),
                logits_at=at,
            )
        )
    return kept


def _positions(logits: bool | Sequence[int], n: int) -> tuple[int, ...]:
    if isinstance(logits, bool):
        return tuple(range(n)) if logits else ()
    return tuple(resolve_positions(logits, n))


def _row(batch: torch.Tensor, i: int, n: int) -> torch.Tensor:
    """One prompt's part of a padded batch; a copy where the batch would be kept alive by it."""
    part = batch[i, :n]
    return part if batch.shape[0] == 1 else part.clone()
