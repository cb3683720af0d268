"""resid: what a pretrained GPT-2 is thinking between its layers.

    model = resid.load("gpt2")
    recording = resid.record(model, "The capital of France is")
    lens = resid.logit_lens(model, recording, top=5, target=" Paris")
    print(lens.to_json())

Every name below is imported when it is first used, so that importing resid costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from resid.errors import ResidError as ResidError
    from resid.model import Model as Model
    from resid.model import load as load
    from resid.readings.logit_lens import logit_lens as logit_lens
    from resid.recording import Recording as Recording
    from resid.recording import record as record
    from resid.results import LogitLens as LogitLens

# Public name -> the module that defines it. `recording()`, the context manager, stays at
# `resid.recording.recording`: a package cannot hold a module and a function of one name.
_PUBLIC = {
    "LogitLens": "resid.results",
    "Model": "resid.model",
    "Recording": "resid.recording",
    "ResidError": "resid.errors",
    "load": "resid.model",
    "logit_lens": "resid.readings.logit_lens",
    "record": "resid.recording",
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'resid' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
