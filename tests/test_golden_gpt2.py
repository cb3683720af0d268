"""Numbers that others published for GPT-2 small, met by record and logit_lens.

They need the real weights in the local Hugging Face cache; nothing is ever downloaded.
"""

import numpy as np
import pytest
import torch

import resid
from resid.hub import in_cache

pytestmark = pytest.mark.hub

# nnsight's logit lens tutorial (plain Hugging Face forward, no BOS), top token of block 0 to 11;
# read off a picture in which spaces at the ends do not show.
EIFFEL = "The Eiffel Tower is in the city of"
GRID_A = """
\\n  E    iff  el    Tower  not     the    same   scape  the
the  Z    ness ter   Tower  not     order  same   scape  the
the  leg  ness ter   Tower  now     order  same   scape  the
the  leg  ness stra  Tower  also    the    same   hall   the
the  leg  ness horn  Tower  also    front  same   scape  the
the  FP   ler  Tower Towers also    the    same   scape  the
the  FP   ler  Tower Tower  also    front  midst  scape  East
the  FP   ler  Tower Tower  located front  midst  centre Ing
the  TS   ler  Tower Tower  located front  midst  centre Rome
the  FP   el   Tower tower  located London midst  centre London
the  nerg el   Tower is     located the    midst  's     Paris
\\n  -    el   Tower is     a       the    middle centre Paris
"""

# TransformerLens' Patchscopes demo, its rows turned the right way up; BOS in front.
PATCHSCOPES = "Patchscopes is a nice tool to inspect hidden representation of language model"
GRID_B = {
    10: (
        ", .0274|Notes .3284|rew .5192|¶ .1790|a .6429|tool .3577|tool .6038|for .5885|help .1857|"
        "your .3143|items .1530|of .3586|objects .4576|objects .1487|objects .1351"
    ),
    11: (
        "\\n .0623|Notes .2409|rew .1659|\\n .1621|a .4492|tool .0423|tool .1106|for .3447|"
        "help .0816|the .1364|files .0724|of .2512|the .0847|features .0951|. .1267"
    ),
}
UNREADABLE = "¶"  # In the published figure, some sign or other.

IOI = "After John and Mary went to the store, John gave a bottle of milk to"
IOI_PROBABILITIES = {
    " Mary": 0.7007,
    " the": 0.0467,
    " John": 0.0454,
    " them": 0.0411,
    " his": 0.0273,
    " her": 0.0124,
}


@pytest.fixture(scope="module")
def gpt2():
    if in_cache("gpt2") is None:
        pytest.skip("gpt2 is not in the local cache")
    return resid.load("gpt2")


def read(model, prompt, bos=False, **options):
    lens = resid.logit_lens(model, resid.record(model, prompt, bos=bos), **options)
    assert not lens.failures
    return lens


def test_the_bias_of_the_final_norm_is_the_published_unigram_prior(gpt2):
    # The lens of a stream that the norm takes to zero is that bias alone.
    prior = gpt2.ln_final(torch.zeros(gpt2.d_model)) @ gpt2.W_U
    prior = prior - prior.mean()
    top = prior.topk(6)
    expected = [",", " the", " and", ".", "\\n", " a"]
    assert list(gpt2.vocabulary.show_all(top.indices)) == expected
    np.testing.assert_allclose(top.values, [7.03, 6.98, 6.68, 6.49, 6.48, 6.47], atol=0.01)
    names = [gpt2.vocabulary.id_of(name, gpt2.d_vocab) for name in (" John", " Mary")]
    np.testing.assert_allclose(prior[names], [2.8995, 1.6034], atol=1e-3)


def test_the_last_row_of_the_eiffel_grid_is_met_exactly(gpt2):
    lens = read(gpt2, EIFFEL, top=1)
    said = "".join(lens.top_tokens[-1, :, 0])
    assert said == r"\n-el Tower is a the middle centre Paris"


def test_the_eiffel_grid_is_met_in_nine_cells_of_ten(gpt2):
    lens = read(gpt2, EIFFEL, top=1)
    expected = np.array([line.split() for line in GRID_A.split("\n")[1:-1]])
    found = np.array([[token.strip() for token in row] for row in lens.top_tokens[1:, :, 0]])
    assert found.shape == expected.shape == (12, 10)
    assert (found == expected)[:-1].mean() >= 0.9


def patchscopes_row(lens, block):
    """Where a row of the grid is met: its tokens, and its probabilities to 1e-3."""
    published = [cell.rsplit(" ", 1) for cell in GRID_B[block].split("|")]
    assert len(published) == len(lens.positions) == 15
    found = [token.strip() for token in lens.top_tokens[block + 1, :, 0]]
    pairs = zip(found, published, strict=True)
    tokens = [name in (token, UNREADABLE) for token, (name, _) in pairs]
    probs = [float(prob) for _, prob in published]
    return tokens, np.isclose(lens.top_probs[block + 1, :, 0], probs, atol=1e-3, rtol=0)


def test_the_rows_of_the_patchscopes_grid_are_met(gpt2):
    lens = read(gpt2, PATCHSCOPES, bos=True, top=1)
    last_tokens, last_probs = patchscopes_row(lens, 11)
    if not (all(last_tokens) and last_probs.all()):
        # read() has held the last row against the plain forward pass: the figure is what differs.
        pytest.skip("the published rows are not upside down after all")
    tokens, probs = patchscopes_row(lens, 10)
    assert all(tokens)
    assert probs.all()


def test_one_two_three_four_is_followed_by_five(gpt2):
    recorded = resid.record(gpt2, "One two three four")
    last = recorded.logits[-1]
    assert int(last.argmax()) == 1936
    # Published to 1e-4; other kernels than those of its author move the fourth decimal.
    assert float(last.max()) == pytest.approx(-69.4948, abs=1e-3)
    assert resid.logit_lens(gpt2, recorded, top=1).top_tokens[-1, -1, 0] == " five"


def test_the_indirect_object_has_its_published_probability(gpt2):
    for token, published in IOI_PROBABILITIES.items():
        lens = read(gpt2, IOI, bos=True, target=token, positions=[-1])
        assert np.exp(lens.target.logprob[-1, 0]) == pytest.approx(published, abs=1e-3), token


@pytest.mark.parametrize(("giver", "difference"), [("Mary", 4.276), ("John", -2.738)])
def test_the_indirect_object_has_its_published_logit_difference(gpt2, giver, difference):
    prompt = f"After John and Mary went to the store, {giver} gave a bottle of milk to"
    lens = read(gpt2, prompt, bos=True, target=" John", foil=" Mary", positions=[-1])
    found = lens.target.logprob[-1, 0] - lens.foil.logprob[-1, 0]
    assert found == pytest.approx(difference, abs=5e-3)
