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
    from resid.loading import load as load
    from resid.model import Model as Model
    from resid.readings.attribution import attribution as attribution
    from resid.readings.logit_lens import logit_lens as logit_lens
    from resid.readings.mlp_memory import mlp_memory as mlp_memory
    from resid.readings.neurons import find_neurons as find_neurons
    from resid.readings.neurons import neuron_card as neuron_card
    from resid.readings.param_count import param_count as param_count
    from resid.readings.stream_norms import stream_norms as stream_norms
    from resid.readings.verification.certificate import verify as verify
    from resid.recording import Recording as Recording
    from resid.recording import record as record
    from resid.recording_file import open_recording as open_recording
    from resid.results import Attribution as Attribution
    from resid.results import Find as Find
    from resid.results import LogitLens as LogitLens
    from resid.results import MlpMemory as MlpMemory
    from resid.results import NeuronCard as NeuronCard
    from resid.results import ParamCount as ParamCount
    from resid.results import StreamNorms as StreamNorms
    from resid.results import Verification as Verification

# Public name -> the module that defines it. `recording()`, the context manager, stays at
# `resid.recording.recording`: a package cannot hold a module and a function of one name.
_PUBLIC = {
    "Attribution": "resid.results",
    "Find": "resid.results",
    "LogitLens": "resid.results",
    "MlpMemory": "resid.results",
    "Model": "resid.model",
    "NeuronCard": "resid.results",
    "ParamCount": "resid.results",
    "Recording": "resid.recording",
    "ResidError": "resid.errors",
    "StreamNorms": "resid.results",
    "Verification": "resid.results",
    "attribution": "resid.readings.attribution",
    "find_neurons": "resid.readings.neurons",
    "load": "resid.loading",
    "logit_lens": "resid.readings.logit_lens",
    "mlp_memory": "resid.readings.mlp_memory",
    "neuron_card": "resid.readings.neurons",
    "open_recording": "resid.recording_file",
    "param_count": "resid.readings.param_count",
    "record": "resid.recording",
    "stream_norms": "resid.readings.stream_norms",
    "verify": "resid.readings.verification.certificate",
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
