import pytest

from resid.render.escapes import cut, escape_unless


def test_cut_leaves_what_fits():
    assert cut("abcdef", 6, len) == "abcdef"


def test_cut_says_that_it_cut():
    assert cut("abcdef", 4, len) == "abc…"
    assert cut("abcdef", 4, len, "...") == "a..."


@pytest.mark.parametrize("escape", [r"\n", r"\x1b", r"\u65e5", r"\U0001f917"])
def test_cut_never_splits_an_escape(escape):
    for room in range(2, len(escape) + 2):
        assert cut(f"a{escape}bc", room, len) in ("a…", f"a{escape}…")


def test_escape_tells_signs_from_bytes():
    shown = "".join(escape_unless(str.isascii, sign) for sign in "é日🤗a")
    assert shown == r"\u00e9\u65e5\U0001f917a"
    assert escape_unless(str.isprintable, "\x1b[1m") == r"\x1b[1m"
