import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resid.corpus import windows as module
from resid.corpus.windows import NONE, Origin, cut_windows, cuts_cleanly, tokenized
from resid.errors import ResidError


def windows_of(ids, context, stride, piece=5):
    pieces = [ids[i : i + piece] for i in range(0, len(ids), piece)]
    return list(cut_windows(Origin(7, 2, 31), iter(pieces), context, stride))


@given(n=st.integers(0, 60), context=st.integers(1, 12), data=st.data())
def test_every_token_counts_once_where_it_has_most_context(n, context, data):
    stride = data.draw(st.integers(1, context))
    ids = list(range(100, 100 + n))
    found = windows_of(ids, context, stride, data.draw(st.integers(1, 9)))
    counted = {}
    for window in found:
        assert window.ids == ids[window.start : window.start + len(window.ids)]
        assert len(window.ids) <= context
        follows = ids[window.start + len(window.ids) :]
        assert window.next == (follows[0] if follows else NONE)
        for place in range(window.counted, len(window.ids)):
            assert window.start + place not in counted
            counted[window.start + place] = place
    assert sorted(counted) == list(range(n))
    for position, place in counted.items():
        # Windows begin at multiples of the stride: the earliest that reaches this far is best.
        first = next(s for s in range(0, n, stride) if position < s + context)
        assert place == position - first


def test_without_overlap_windows_lie_side_by_side():
    assert [w.start for w in windows_of(list(range(10)), 4, 4)] == [0, 4, 8]
    assert [w.start for w in windows_of(list(range(8)), 4, 4)] == [0, 4]


def test_a_long_text_in_pieces_has_the_ids_of_the_whole(tiny, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 20)
    encode, calls = tiny.vocabulary.encode, []

    def counting(text):
        calls.append(text)
        return encode(text)

    generator = random.Random(1)
    words = ["the ", "cat", " ?", "  ", "é", " is", "\n", " 12", "'s", "🤗"]
    text = "".join(generator.choices(words, k=400))
    pieces = [text[i : i + 13] for i in range(0, len(text), 13)]
    assert cuts_cleanly(encode)
    found = [i for ids in tokenized(iter(pieces), counting, cuts=True) for i in ids]
    assert found == encode(text)
    assert len(calls) > 10
    assert max(map(len, calls)) < 200


def test_a_tokenizer_whose_tokens_reach_over_words_is_given_the_whole_text():
    def encode(text):
        return [hash(text)]

    assert not cuts_cleanly(encode)
    assert list(tokenized(iter(["the c", "at is"]), encode, cuts=False)) == [encode("the cat is")]


def test_a_text_without_a_seam_is_looked_through_once(monkeypatch):
    """Each time from its beginning would take minutes for ten megabytes."""
    looked = []
    seam = module._SEAM

    class Counted:
        def search(self, text, start=0):
            looked.append(len(text) - start)
            return seam.search(text, start)

    monkeypatch.setattr(module, "_SEAM", Counted())
    pieces = ["中" * module.PIECE] * 30
    assert list(tokenized(iter(pieces), len_of, True)) == [[30 * module.PIECE]]
    assert sum(looked) < 35 * module.PIECE


def len_of(text):
    return [len(text)]


@pytest.mark.parametrize("cuts", [True, False])
def test_a_text_that_cannot_be_cut_is_refused_before_memory_runs_out(monkeypatch, cuts):
    """A few kilobytes of .gz may unpack to any number of them."""
    monkeypatch.setattr(module, "_LONGEST", 3 * module.PIECE)
    longest, more = ["x" * module.PIECE] * 3, ["x"]
    assert list(tokenized(iter(longest), len_of, cuts)) == [[3 * module.PIECE]]
    with pytest.raises(ResidError, match="the document at a, line 7, has 98,304 characters that"):
        list(tokenized(iter(longest + more), len_of, cuts, "the document at a, line 7,"))
    words = [" the" * module.PIECE] * 3
    if cuts:
        assert sum(map(len, tokenized(iter(words), list, cuts))) == 12 * module.PIECE
