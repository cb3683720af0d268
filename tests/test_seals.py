"""A seal notices every bit, and text that looks like a seal is none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from resid import seals


def nested(text):
    """As a corpus run is written: one JSON text in the metadata, the seal among its fields."""
    import numpy as np

    header = {"about": text, seals.NAME: seals.OPEN, "more": text}
    return bytes(save({"x": np.arange(6.0)}, {"corpus": json.dumps(header)}))


def flat(text):
    """As a finished run of a race is written."""
    return json.dumps({"about": text, seals.NAME: seals.OPEN, "loss": [1.0]}, indent=1).encode()


LOOKALIKES = ("", '"seal": "' + "0" * 64 + '"', '\\"seal\\": \\"' + "1" * 64 + '\\"', "seal", "\\")


@pytest.mark.parametrize("make", [nested, flat])
@given(
    text=st.sampled_from(LOOKALIKES) | st.text(max_size=8), at=st.integers(0), bit=st.integers(0, 7)
)
def test_every_bit_is_noticed(make, text, at, bit):
    content = seals.sealed(make(text))
    assert seals.is_whole(content)
    changed = bytearray(content)
    changed[at % len(content)] ^= 1 << bit
    assert not seals.is_whole(bytes(changed))
    # Only the seal was written, and nothing of anybody's text.
    begin, end = seals.find(content)
    assert content[:begin] + seals.OPEN.encode() + content[end:] == make(text)


def test_what_has_no_seal_cannot_be_sealed_and_is_not_whole():
    with pytest.raises(ValueError, match="no seal"):
        seals.sealed(b"{}")
    assert not seals.is_whole(b"{}")
