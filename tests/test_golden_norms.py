"""Published numbers about the residual streams of the real GPT-2s."""

import numpy as np
import pytest

import resid
from resid import hub

pytestmark = pytest.mark.hub

IOI = [
    text.format(name)
    for text, names in (
        ("When John and Mary went to the shops, {} gave the bag to", ("John", "Mary")),
        ("When Tom and James went to the park, {} gave the ball to", ("James", "Tom")),
        ("When Dan and Sid went to the shops, {} gave an apple to", ("Sid", "Dan")),
        ("After Martin and Amy went to the park, {} gave a drink to", ("Amy", "Martin")),
    )
    for name in names
]
# TransformerLens, Exploratory_Analysis_Demo: `ln_final.hook_scale` at the last position.
IOI_STD = [19.57, 18.35, 18.29, 18.68, 17.49, 18.87, 16.42, 18.68]
MISS_IT = "The sale ends today. You won't want to miss it!"


def measure(name, prompt, **options):
    if hub.in_cache(name) is None:
        pytest.skip(f"{name} is not in the local cache")
    model = resid.load(name)
    return resid.stream_norms(model, resid.record(model, prompt, bos=True, logits=False), **options)


def test_final_stream_has_the_published_size():
    last = [measure("gpt2", prompt).centred_l2[-1, -1] for prompt in IOI]
    assert np.allclose(np.array(last) / np.sqrt(768), IOI_STD, atol=0.01)


def test_massive_activations_are_where_the_papers_found_them():
    # Sun et al. 2024: the starting token only. Ran-Milo et al. 2026 (2604.14722): 447, 138, 378.
    norms = measure("gpt2", MISS_IT)
    massive = [outlier for outlier in norms.outliers if outlier.massive]
    assert {outlier.pos for outlier in massive} == {0}
    at = {(o.point, o.dim): o.value for o in norms.outliers if o.pos == 0}
    for layer in range(2, 11):
        assert at[f"{layer}.post", 447] > 2000
        assert at[f"{layer}.post", 138] > 500
    assert at["10.post", 447] == pytest.approx(3050, abs=60)
    ratio = norms.l2[3:12, 0] / np.median(norms.l2[3:12, 1:], axis=1)
    assert (ratio > 10).all()


def test_gpt2_xl_grows_as_heimersheim_and_turner_measured():
    growth = measure("gpt2-xl", MISS_IT).growth
    assert growth.per_layer == pytest.approx(1.045, abs=0.01)
    assert growth.excluded_positions == (0,)
