"""The one exception that tells "the caller can fix this" from "this is a bug"."""

import reprlib


class ResidError(Exception):
    """A problem that the caller can fix.

    The message says what was given, what is allowed and what to do about it, in at most three
    lines; the command line shows it as it is and exits with status 1. Mistakes in the program
    itself keep Python's own exceptions.
    """


def first_line(error: BaseException) -> str:
    """The first line of a foreign error, for the one place where it is put into our words."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = 80
_BRIEF.maxlevel, _BRIEF.maxlist, _BRIEF.maxdict = 2, 4, 3


def brief(value: object) -> str:
    """A foreign value as a message can hold it: on one line, and cut where it is long."""
    text = _BRIEF.repr(value)
    return text if len(text) <= 160 else f"{text[:150]} ..."


def brief_name(name: str) -> str:
    """A foreign name as it is, where it is short and can be printed; else as `brief` has it."""
    return name if name.isprintable() and 0 < len(name) <= 200 else brief(name)
