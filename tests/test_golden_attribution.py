"""Attribution on the real GPT-2 against published numbers; skipped where it is not cached."""

import numpy as np
import pytest

import resid
from resid import hub

pytestmark = pytest.mark.hub

# TransformerLens, Exploratory demo: eight prompts in pairs, each with either name giving.
PROMPTS = (
    ("When John and Mary went to the shops, {} gave the bag to", " Mary", " John"),
    ("When Tom and James went to the park, {} gave the ball to", " James", " Tom"),
    ("When Dan and Sid went to the shops, {} gave an apple to", " Sid", " Dan"),
    ("After Martin and Amy went to the park, {} gave a drink to", " Amy", " Martin"),
)
SUBLAYERS = {"9.attn": 4.5655, "11.attn": -1.4417, "10.attn": -0.4123, "7.attn": 0.2796}
SUBLAYERS |= {"8.attn": 0.1995}
HEADS = {"L9H9": 2.985, "L10H7": -1.899, "L9H6": 1.385, "L11H10": -0.970, "L10H0": 0.561}
HEADS |= {"L10H10": 0.480}


@pytest.fixture(scope="module")
def attributed():
    """Receiver minus giver on all eight prompts: once by sublayer, once by head."""
    if hub.in_cache("gpt2") is None:
        pytest.skip("gpt2 is not in the local cache")
    model = resid.load("gpt2")
    found = []
    for prompt, one, other in PROMPTS:
        for giver, receiver in ((one, other), (other, one)):
            recording = resid.record(model, prompt.format(giver.strip()), bos=True)
            for heads in (False, True):
                found.append(
                    resid.attribution(model, recording, target=receiver, foil=giver, heads=heads)
                )
    return found


def mean_of(found, component):
    shares = [a.direct[a.components.index(component)] for a in found if component in a.components]
    assert len(shares) == 8
    return float(np.mean(shares))


def test_the_logit_difference_is_the_published_one(attributed):
    assert np.mean([a.logit for a in attributed]) == pytest.approx(3.5519, abs=1e-2)


def test_sublayers_carry_what_was_published(attributed):
    for component, share in SUBLAYERS.items():
        assert mean_of(attributed, component) == pytest.approx(share, abs=1e-2), component


def test_heads_carry_what_was_published(attributed):
    for component, share in HEADS.items():
        assert mean_of(attributed, component) == pytest.approx(share, abs=1e-2), component
