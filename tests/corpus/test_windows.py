import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer

from resid.corpus import windows as module
from resid.corpus.windows import NONE, Origin, UncuttableError, cut_windows, find_seam, tokenized

SEAM = re.compile("|".join(module._SEAMS))


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
    seam = find_seam(encode)
    assert seam.pattern == SEAM.pattern
    found = [i for ids in tokenized(iter(pieces), counting, seam) for i in ids]
    assert found == encode(text)
    assert len(calls) > 10
    assert max(map(len, calls)) < 200


def test_a_tokenizer_whose_tokens_reach_over_words_is_given_the_whole_text():
    def encode(text):
        return [hash(text)]

    assert find_seam(encode) is None
    assert list(tokenized(iter(["the c", "at is"]), encode, None)) == [encode("the cat is")]


def test_a_tokenizer_is_cut_only_where_none_of_its_tokens_reaches_over():
    """As later tokenizers have tokens of a mark with the line breaks behind it."""

    def encode(text):
        return [hash(part) for part in re.findall(r"\s?\w+|[^\w\s]+\n*|\s+", text)]

    assert find_seam(encode).pattern == "|".join([module._SEAMS[0], module._SEAMS[2]])


@pytest.mark.parametrize("swallows", [{"rstrip": True}, {"lstrip": True}, {}])
def test_a_text_is_not_cut_where_an_added_token_swallows_what_stands_around_it(tiny, swallows):
    tokenizer = Tokenizer.from_str(tiny.vocabulary.tokenizer.backend_tokenizer.to_str())
    tokenizer.add_special_tokens([AddedToken("<|added|>", **swallows)])

    def encode(text):
        return tokenizer.encode(text).ids

    seam = find_seam(encode, ["<|added|>"])
    kept = {0, 2} if "rstrip" in swallows else {0, 1, 2}
    assert seam.pattern == "|".join(module._SEAMS[i] for i in sorted(kept))
    assert find_seam(tiny.vocabulary.encode, tiny.vocabulary.added()).pattern == SEAM.pattern


def test_a_text_is_not_cut_within_an_added_token(tiny):
    tokenizer = Tokenizer.from_str(tiny.vocabulary.tokenizer.backend_tokenizer.to_str())
    tokenizer.add_tokens(["is the", "0,0"])
    assert find_seam(lambda text: tokenizer.encode(text).ids, ["is the", "0,0"]) is None


@pytest.mark.parametrize(
    "line", ["日本語の文章です。" * 20 + "\n", "日本語の、文章です。" * 20, "12 34 567\n", "1,2,3,"]
)
def test_text_of_any_script_and_of_numbers_is_cut(tiny, line):
    calls = []

    def counting(text):
        calls.append(text)
        return tiny.vocabulary.encode(text)

    text = line * (10 * module.PIECE // len(line))
    pieces = [text[i : i + 5000] for i in range(0, len(text), 5000)]
    found = [i for ids in tokenized(iter(pieces), counting, SEAM) for i in ids]
    assert found == tiny.vocabulary.encode(text)
    assert max(map(len, calls)) < 2 * module.PIECE


def test_a_text_without_a_seam_is_looked_through_once():
    """Each time from its beginning would take minutes for ten megabytes."""
    looked = []

    class Counted:
        def search(self, text, start=0):
            looked.append(len(text) - start)
            return SEAM.search(text, start)

    pieces = ["中" * module.PIECE] * 30
    assert list(tokenized(iter(pieces), len_of, Counted())) == [[30 * module.PIECE]]
    assert sum(looked) < 35 * module.PIECE


def len_of(text):
    return [len(text)]


@pytest.mark.parametrize("seam", [SEAM, None])
def test_a_text_that_cannot_be_cut_ends_before_memory_does(monkeypatch, seam):
    """A few kilobytes of .gz may unpack to any number of them."""
    monkeypatch.setattr(module, "_LONGEST", 3 * module.PIECE)
    longest, more = ["x" * module.PIECE] * 3, ["x"]
    assert list(tokenized(iter(longest), len_of, seam)) == [[3 * module.PIECE]]
    with pytest.raises(UncuttableError, match="98,304 characters without a place"):
        list(tokenized(iter(longest + more), len_of, seam))
    words = [" the" * module.PIECE] * 3
    if seam:
        assert sum(map(len, tokenized(iter(words), list, seam))) == 12 * module.PIECE
