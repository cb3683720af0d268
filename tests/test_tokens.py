"""Tokens: what is shown can be read back to the bytes, and text becomes the ids it should."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resid.errors import ResidError
from resid.tokens import (
    Vocabulary,
    check_ids,
    check_unicode,
    escape_bytes,
    escape_text,
    mark_spaces,
    quote,
)

ESCAPE = re.compile(r"\\(?:([nrt\\])|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
NAMED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
HARD = st.text(alphabet=list("\\nrtxuU01bfé\n\t\x1b\x85\xa0␣ \u200f\u0301\ufe0f𝄞"), max_size=12)


def read_back(display: str) -> bytes:
    """The bytes that a display string stands for: the definition of the escapes, read forwards."""
    found, end = b"", 0
    for match in ESCAPE.finditer(display):
        found += display[end : match.start()].encode()
        named, byte, short, long = match.groups()
        code = int(short or long or "0", 16)
        found += bytes([int(byte, 16)]) if byte else (NAMED.get(named) or chr(code)).encode()
        end = match.end()
    return found + display[end:].encode()


@given(st.binary(max_size=12) | HARD.map(str.encode))
@example(b"\\\n")
@example(b"\\n")
@example(b"\\\\n")
@example(b"\\\x80")
def test_a_display_reads_back_to_its_bytes(piece):
    assert read_back(escape_bytes(piece)) == piece


@given(HARD)
@example("\\␣")
@example("\\u2423")
def test_a_marked_display_reads_back_to_its_text(text):
    marked = mark_spaces(escape_text(text))
    assert " " not in marked
    assert read_back(marked.replace("␣", " ")) == text.encode()


@given(st.binary(max_size=12) | HARD.map(str.encode))
def test_a_display_holds_nothing_that_moves_the_cursor(piece):
    shown = escape_bytes(piece)
    assert shown.isprintable()
    assert not set(shown) & set("\u200f\ufe0f\xa0\x1b\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" Paris", " Paris"),
        ("\n", r"\n"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x7f", r"\x7f"),
        ("\x85", r"\u0085"),
        ("\xa0", r"\u00a0"),
        ("\u202eabc", r"\u202eabc"),
        ("שלום", "שלום"),
        ("\u0301", r"\u0301"),
        ("e\u0301", "e\u0301"),
        ("\u0e31", r"\u0e31"),
        ("\ufe0f", r"\ufe0f"),
        ("❤\ufe0f", r"❤\ufe0f"),
        ("\u3164", r"\u3164"),
        ("\U000e0001", r"\U000e0001"),
        (r"\d+", r"\d+"),
        (r"\n", r"\\n"),
        (r"\x1b", r"\\x1b"),
        ("\\\n", r"\\\n"),
        ("🤗", "🤗"),
        ("", ""),
    ],
)
def test_text_is_shown_as(text, shown):
    assert escape_text(text) == shown


def test_a_byte_that_is_not_utf8_is_shown_as_an_escape():
    assert [escape_bytes(bytes([byte])) for byte in (0x80, 0xC3, 0xF0, 0xFF)] == [
        r"\x80",
        r"\xc3",
        r"\xf0",
        r"\xff",
    ]


def test_a_space_is_visible_in_quotes_and_in_marks():
    assert (quote(" the "), mark_spaces(" the ")) == ('" the "', "␣the␣")


def test_all_256_single_byte_tokens_look_different(tiny):
    assert len(set(tiny.vocabulary.show_all(range(256)))) == 256


def test_pieces_of_one_character_are_shown_as_bytes(tiny):
    ids = tiny.encode("🤗é\n")
    shown = tiny.vocabulary.show_all(ids)
    assert shown == (r"\xf0\x9f", r"\xa4", r"\x97", r"\xc3", r"\xa9", r"\n")
    assert b"".join(read_back(token) for token in shown).decode() == "🤗é\n"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=10))
def test_the_tokens_of_any_prompt_read_back_to_the_prompt(tiny, prompt):
    shown = tiny.vocabulary.show_all(tiny.vocabulary.encode(prompt))
    assert b"".join(read_back(token) for token in shown) == prompt.encode()


def test_a_space_of_the_vocabulary_is_a_space(tiny):
    assert tiny.vocabulary.show_all(tiny.encode("the the")) == ("the", " the")


def test_a_typed_G_with_dot_is_not_a_space(tiny):
    shown = tiny.vocabulary.show_all(tiny.encode("Ġ"))
    assert shown == (r"\xc4", r"\xa0")


def test_ids_start_without_a_space_and_are_pinned(tiny):
    assert tiny.encode("the the is ?") == [257, 258, 260, 261]


def test_a_typed_end_of_text_is_one_visible_token(tiny):
    ids = tiny.encode("a<|endoftext|>b")
    assert tiny.vocabulary.show_all(ids) == ("a", "<|endoftext|>", "b")
    assert ids[1] == 264


def test_a_token_added_in_plain_text_is_not_read_as_bytes(fresh):
    fresh.vocabulary.tokenizer.add_tokens(["naïve"])
    assert Vocabulary(fresh.vocabulary.tokenizer).show(265) == "naïve"


def test_a_trailing_space_is_a_token_of_its_own(tiny):
    ids = tiny.encode("the is ")
    assert ids[:-1] == tiny.encode("the is")
    assert tiny.vocabulary.show(ids[-1]) == " "


def test_a_space_before_punctuation_survives(tiny):
    assert "".join(tiny.vocabulary.show_all(tiny.encode("y is ?"))) == "y is ?"


@pytest.mark.parametrize("token_id", [265, 299, 10**9, -1])
def test_an_id_without_a_token_is_shown_as_its_number(tiny, token_id):
    assert tiny.vocabulary.show(token_id) == f"<id {token_id}>"


def test_bos_is_added_exactly_once_and_only_on_request(tiny):
    plain = tiny.encode("the is")
    assert plain == tiny.vocabulary.tokenizer("the is")["input_ids"]
    assert tiny.encode("the is", bos=True) == [264, *plain]


def test_a_tokenizer_that_adds_bos_itself_does_not_add_a_second():
    def tokenizer(text, add_special_tokens=True, **_):
        return {"input_ids": [1] * add_special_tokens + [7]}

    tokenizer.bos_token_id, tokenizer.get_added_vocab = 1, dict
    vocabulary = Vocabulary(tokenizer)
    assert vocabulary.encode("x") == [7]
    assert vocabulary.encode("x", bos=True) == [1, 7]


def test_bos_without_a_token_for_it_is_refused():
    def tokenizer(text, **_):
        return {"input_ids": [7]}

    tokenizer.bos_token_id, tokenizer.get_added_vocab = None, dict
    with pytest.raises(ResidError, match="no beginning-of-sequence token"):
        Vocabulary(tokenizer).encode("x", bos=True)


def test_the_tokenizer_is_never_changed(tiny):
    tokenizer = tiny.vocabulary.tokenizer

    def state():
        return len(tokenizer), dict(tokenizer.special_tokens_map), tokenizer.pad_token

    before = state()
    tiny.vocabulary.show_all(range(300))
    tiny.encode("the is", bos=True)
    tiny.vocabulary.id_of(" the", 300)
    assert state() == before


def test_without_a_tokenizer_ids_still_have_names():
    assert Vocabulary(None).show_all([0, 42]) == ("<id 0>", "<id 42>")


def test_without_a_tokenizer_text_is_refused_with_the_reason():
    with pytest.raises(ResidError, match="no files; give ids in place of text"):
        Vocabulary(None, absent="no files").encode("the")


def test_without_a_tokenizer_a_target_in_text_is_refused_and_the_way_out_named():
    with pytest.raises(ResidError, match="no files; give the target by its id, for example id:42"):
        Vocabulary(None, absent="no files").id_of("the", 300)


@pytest.mark.parametrize("token", [" the", "id:258", 258])
def test_a_token_is_named_by_its_text_or_its_id(tiny, token):
    assert tiny.vocabulary.id_of(token, 300) == 258


def test_an_id_needs_no_tokenizer():
    assert Vocabulary(None).id_of("id:7", 300) == 7


@pytest.mark.parametrize("token", ["id:300", 300, -1])
def test_an_id_outside_of_the_vocabulary_is_refused_with_the_range(tiny, token):
    with pytest.raises(ResidError, match=r"the target is id -?\d+; .* has ids 0 to 299"):
        tiny.vocabulary.id_of(token, 300)


def test_a_token_that_the_model_does_not_have_is_refused(tiny):
    with pytest.raises(ResidError, match=r"the foil is id 264; the vocabulary has ids 0 to 263"):
        tiny.vocabulary.id_of("<|endoftext|>", 264, "the foil")


def test_a_target_of_several_tokens_is_refused_with_its_pieces(tiny):
    with pytest.raises(ResidError) as error:
        tiny.vocabulary.id_of("the cat", 300)
    assert str(error.value) == (
        'the target "the cat" is 4 tokens, not one: '
        '"the" (id:257), " c" (id:263), "a" (id:97), "t" (id:116)'
    )


def test_a_target_that_is_one_token_with_a_leading_space_says_so(tiny):
    with pytest.raises(ResidError, match='with a leading space it is one: " is"'):
        tiny.vocabulary.id_of("is", 300)


def test_an_empty_target_is_refused(tiny):
    with pytest.raises(ResidError, match="the foil is empty"):
        tiny.vocabulary.id_of("", 300, "the foil")


def test_many_pieces_are_counted_not_listed(tiny):
    with pytest.raises(ResidError, match=r"is 20 tokens, .* and 12 more$"):
        tiny.vocabulary.id_of("q" * 20, 300)


def test_bytes_that_were_not_utf8_are_refused_with_their_place():
    with pytest.raises(ResidError, match=r"the prompt is not valid UTF-8: it has \\xe9 .* 3$"):
        check_unicode("caf\udce9", "the prompt")


def test_ids_without_an_embedding_are_refused_with_their_place():
    with pytest.raises(ResidError, match=r"id 300 at position 2; the model embeds ids 0 to 299"):
        check_ids([0, 299, 300], 300)


class Failing:
    """A tokenizer whose files are wrong in a way that shows only when it is used."""

    def __init__(self, error):
        self.error = error

    def get_added_vocab(self):
        return {}

    def __len__(self):
        return 1

    def __call__(self, text, **options):
        raise self.error


def test_a_tokenizer_that_fails_on_a_text_is_an_error_of_its_files():
    panic = type("PanicException", (BaseException,), {})("index out of bounds")
    for error in (Exception("no token for unknown words"), panic):
        vocabulary = Vocabulary(Failing(error))
        for call in (vocabulary.encode, lambda text, of=vocabulary: of.id_of(text, 5)):
            with pytest.raises(ResidError, match=rf'fails on "a\\n": {error}\nsomething is wrong'):
                call("a\n")
    with pytest.raises(KeyboardInterrupt):
        Vocabulary(Failing(KeyboardInterrupt())).encode("a")
