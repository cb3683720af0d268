"""A race on disk: what is done is kept, so that a race that was stopped can go on.

A folder holds `race.json`, what every run in it was made with; a JSON file for every run that is
finished; and a safetensors file for every run that is on its way. Every file is written beside its
place and then moved there: whole or not at all. Those of runs say which run of which race they are
of, and are sealed (see `resid.seals`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from resid import seals
from resid.errors import ResidError, brief, brief_name, first_line
from resid.headers import refuse_pipe
from resid.lab.race_text import Text
from resid.lab.race_training import Plan, State

_VERSION = 1
_MOMENTS = {"parameters": "parameters", "first": "first_moments", "second": "second_moments"}


class Folder:
    """The runs that are kept in a folder."""

    def __init__(self, path: Path, plan: Plan, race: str) -> None:
        """Remember where the runs are.

        Args:
            path: of the folder.
            plan: of all runs in it.
            race: what tells this race from others.
        """
        self.path, self.plan, self.race = path, plan, race

    @classmethod
    def open(cls, path: Path, plan: Plan, text: Text) -> Folder:
        """A new folder, or one whose runs were made just as these will be.

        Variants and the number of seeds may be others: runs that are there are used, the others
        are made.

        Raises:
            ResidError: the folder holds another race, and in what it differs; or something else.
        """
        asked = _describe(plan, text)
        told = path / "race.json"
        try:
            path.mkdir(exist_ok=True)
            if not told.exists():
                # What an interruption has left of race.json is nobody's.
                if any(file.name != _beside(told).name for file in path.iterdir()):
                    raise ResidError(
                        f"'{path}' holds other files and no race.json; "
                        "name an empty or a new folder"
                    )
                _write(told, _json(asked))
            kept = _read_json(told)
        except OSError as error:
            raise ResidError(f"cannot use '{path}': {error.strerror or error}") from None
        if kept != asked:
            differ = [name for name in asked if kept.get(name) != asked[name]] or ["race.json"]
            name = differ[0]
            raise ResidError(
                f"'{path}' holds a race with {name} {_show(kept.get(name))}; "
                f"this one has {_show(asked.get(name))}\n"
                "ask for the same again, or name another folder"
            )
        return cls(path, plan, hashlib.sha256(_json(asked)).hexdigest())

    def finished(self, name: str, seed: int) -> list[float] | None:
        """The losses of a run that is complete; None for any other.

        Raises:
            ResidError: what was kept cannot be read, or is of another run.
        """
        file = self.path / f"{name}.seed{seed}.json"
        if not file.exists():
            return None
        kept = _read_json(file)
        losses = _losses(kept.get("loss"), len(self.plan.measured_at), file)
        self._refuse_others(file, kept, name, seed)
        if not seals.is_whole(_read(file)):
            raise _broken(file, "it is damaged")
        return losses

    def finish(self, name: str, seed: int, losses: list[float]) -> None:
        """Keep a run that is complete."""
        finite = [loss if _is_finite(loss) else None for loss in losses]
        told = {"race": self.race, "run": _run(name, seed), "loss": finite, seals.NAME: seals.OPEN}
        _write(self.path / f"{name}.seed{seed}.json", seals.sealed(_json(told)))
        self._state_file(name, seed).unlink(missing_ok=True)

    def save(self, name: str, seed: int, state: State) -> None:
        """Keep a run as it is now."""
        from safetensors.torch import save

        tensors = {
            f"{part}/{key}": value.detach()
            for part, field in _MOMENTS.items()
            for key, value in getattr(state, field).items()
        }
        # repr of a float, as JSON has it, reads back to the same float.
        metadata = {
            "race": self.race,
            "run": _run(name, seed),
            "step": str(state.step),
            "loss": json.dumps(state.losses),
            seals.NAME: seals.OPEN,
        }
        _write(self._state_file(name, seed), seals.sealed(bytes(save(tensors, metadata))))

    def restore(self, name: str, seed: int, fresh: State) -> State:
        """A run as it was kept; `fresh` where it was not.

        Raises:
            ResidError: what was kept cannot be read, does not fit, or is of another run.
        """
        file = self._state_file(name, seed)
        if not file.exists():
            return fresh
        from safetensors import SafetensorError, safe_open

        content = _read(file)
        try:
            with safe_open(file, framework="pt") as opened:
                metadata = opened.metadata() or {}
                for part, field in _MOMENTS.items():
                    for key, value in getattr(fresh, field).items():
                        _fill(value, opened.get_tensor(f"{part}/{key}"))
            step, losses = int(metadata["step"]), json.loads(metadata["loss"])
        except (SafetensorError, OSError, ValueError, KeyError, RecursionError) as error:
            raise _broken(file, first_line(error)) from None
        measured = sum(at <= step for at in self.plan.measured_at)
        fresh.step, fresh.losses = step, _losses(losses, measured, file)
        self._refuse_others(file, metadata, name, seed)
        if not 0 <= step <= self.plan.steps or not seals.is_whole(content):
            raise _broken(file, "it is damaged")
        return fresh

    def _refuse_others(self, file: Path, told: Mapping[str, Any], name: str, seed: int) -> None:
        """Refuse a file of another run, or of a run of another race."""
        if told.get("race") != self.race or told.get("run") != _run(name, seed):
            raise _broken(file, "it is of another race or another run")

    def _state_file(self, name: str, seed: int) -> Path:
        return self.path / f"{name}.seed{seed}.safetensors"


def _describe(plan: Plan, text: Text) -> dict[str, Any]:
    """All that decides what a run comes to beside its variant and its seed, by name."""
    described = dataclasses.asdict(plan)
    described |= described.pop("sizes")
    described = {name.replace("_", " "): value for name, value in described.items()}
    described["measured at"] = list(plan.measured_at)
    return {
        "version": _VERSION,
        "text": f"{text.sha256[:16]} (sha256)",
        **described,
        # Another version may round otherwise, and the race would not be one.
        "torch": str(torch.__version__),
    }


def _run(name: str, seed: int) -> str:
    return f"{name}, seed {seed}"


def _fill(value: torch.Tensor, kept: torch.Tensor) -> None:
    """Put numbers in place of others of the same kind."""
    if (kept.shape, kept.dtype) != (value.shape, value.dtype):
        raise ValueError(f"a tensor is {list(kept.shape)} {kept.dtype}, not {list(value.shape)}")
    with torch.no_grad():
        value.copy_(kept)


def _losses(kept: Any, number: int, file: Path) -> list[float]:
    """Losses as they are kept: one that was not finite is null in JSON."""
    if not isinstance(kept, list) or len(kept) != number:
        raise _broken(file, f"it does not have {number} losses")
    if not all(loss is None or type(loss) is float for loss in kept):
        raise _broken(file, "a loss is no number")
    return [float("nan") if loss is None else loss for loss in kept]


def _show(value: Any) -> str:
    if value is None:
        return "none"
    return brief_name(value) if isinstance(value, str) else brief(value)


def _is_finite(value: float) -> bool:
    return value - value == 0


def _json(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def _read_json(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(_read(file))
    except (ValueError, RecursionError) as error:
        raise _broken(file, first_line(error)) from None
    if not isinstance(document, dict):
        raise _broken(file, "it is no JSON object")
    return document


def _read(file: Path) -> bytes:
    try:
        refuse_pipe(file)
        return file.read_bytes()
    except OSError as error:
        raise _broken(file, error.strerror or str(error)) from None


def _broken(file: Path, why: str) -> ResidError:
    return ResidError(
        f"'{file}' cannot be read: {brief_name(why)}\nremove it, and its run is made again"
    )


def _write(file: Path, content: bytes) -> None:
    beside = _beside(file)
    try:
        beside.write_bytes(content)
        beside.replace(file)
    except OSError as error:
        raise ResidError(f"cannot write '{file}': {error.strerror or error}") from None
    finally:
        beside.unlink(missing_ok=True)


def _beside(file: Path) -> Path:
    return file.with_name(f"{file.name}.part")
