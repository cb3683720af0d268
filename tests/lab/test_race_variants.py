import pytest

from resid.errors import ResidError
from resid.lab.race_variants import ALL, Variant, line_up, parse_variant


def test_names_say_what_is_changed():
    assert parse_variant("base") == ("base", Variant())
    assert parse_variant("8x-equal") == ("8x-equal", Variant(expansion=8, equal=True))
    assert parse_variant("relu+ post-ln")[1] == Variant(norm="post", activation="relu")


def test_the_order_of_changes_is_no_other_variant():
    assert parse_variant("relu+post-ln") == parse_variant("post-ln+relu")
    assert parse_variant("base+relu") == parse_variant("relu")


def test_all_variants_are_different():
    variants = [parse_variant(name) for name in ALL]
    assert [name for name, _ in variants] == list(ALL)
    assert len({variant for _, variant in variants}) == len(ALL) == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gelu2", "there is no variant 'gelu2'; choose from base, no-residual"),
        ("", "there is no variant ''"),
        ("2x+8x", "'2x+8x' changes expansion twice"),
        ("post-ln+no-norm", "changes norm twice"),
    ],
)
def test_what_is_no_variant_is_refused(text, message):
    with pytest.raises(ResidError, match=message.replace("+", r"\+")):
        parse_variant(text)


def test_variants_share_seeds_and_a_repetition_gets_its_own():
    entries = line_up(["base", "relu", "base", "base"], seeds=3, first=10)
    assert [(entry.label, entry.seeds) for entry in entries] == [
        ("base", (10, 11, 12)),
        ("relu", (10, 11, 12)),
        ("base (2)", (13, 14, 15)),
        ("base (3)", (16, 17, 18)),
    ]


def test_the_same_variant_in_another_spelling_is_a_repetition():
    entries = line_up(["relu+post-ln", "post-ln+relu"], seeds=1, first=0)
    assert [entry.label for entry in entries] == ["post-ln+relu", "post-ln+relu (2)"]
    assert entries[1].seeds == (1,)


def test_no_variant_is_refused():
    with pytest.raises(ResidError, match="no variant was named"):
        line_up([], seeds=1, first=0)
