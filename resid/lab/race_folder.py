"""A race on disk: what is done is kept, so that a race that was stopped can go on.

A folder holds `race.json`, what every run in it was made with; a JSON file for every run that is
finished; and a safetensors file for every run that is on its way. Every file is written beside its
place and then moved there: whole or not at all.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import torch

from resid.errors import ResidError, first_line
from resid.lab.race_text import Text
from resid.lab.race_training import Plan, State

_VERSION = 1
_MOMENTS = {"parameters": "parameters", "first": "first_moments", "second": "second_moments"}


class Folder:
    """The runs that are kept in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

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
                if any(path.iterdir()):
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
        return cls(path)

    def finished(self, name: str, seed: int) -> list[float] | None:
        """The losses of a run that is complete; None for any other."""
        file = self.path / f"{name}.seed{seed}.json"
        if not file.exists():
            return None
        losses = _read_json(file).get("loss")
        if not isinstance(losses, list):
            raise _broken(file, "it has no losses")
        # A loss that was not finite is null.
        return [float("nan") if loss is None else float(loss) for loss in losses]

    def finish(self, name: str, seed: int, losses: list[float]) -> None:
        """Keep a run that is complete."""
        finite = [loss if _is_finite(loss) else None for loss in losses]
        _write(self.path / f"{name}.seed{seed}.json", _json({"loss": finite}))
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
        metadata = {"step": str(state.step), "loss": json.dumps(state.losses)}
        _write(self._state_file(name, seed), bytes(save(tensors, metadata)))

    def restore(self, name: str, seed: int, fresh: State) -> State:
        """A run as it was kept; `fresh` where it was not.

        Raises:
            ResidError: what was kept cannot be read or does not fit.
        """
        file = self._state_file(name, seed)
        if not file.exists():
            return fresh
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(file, framework="pt") as opened:
                metadata = opened.metadata() or {}
                for part, field in _MOMENTS.items():
                    with torch.no_grad():
                        for key, value in getattr(fresh, field).items():
                            value.copy_(opened.get_tensor(f"{part}/{key}"))
            fresh.step, fresh.losses = int(metadata["step"]), json.loads(metadata["loss"])
        except (SafetensorError, OSError, ValueError, KeyError, RuntimeError) as error:
            raise _broken(file, first_line(error)) from None
        return fresh

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


def _show(value: Any) -> str:
    return "none" if value is None else str(value)


def _is_finite(value: float) -> bool:
    return value - value == 0


def _json(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def _read_json(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise _broken(file, first_line(error)) from None
    if not isinstance(document, dict):
        raise _broken(file, "it is no JSON object")
    return document


def _broken(file: Path, why: str) -> ResidError:
    return ResidError(f"'{file}' cannot be read: {why}\nremove it, and its run is made again")


def _write(file: Path, content: bytes) -> None:
    beside = file.with_name(f"{file.name}.part")
    try:
        beside.write_bytes(content)
        beside.replace(file)
    except OSError as error:
        raise ResidError(f"cannot write '{file}': {error.strerror or error}") from None
