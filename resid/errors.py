"""The one exception that tells "the caller can fix this" from "this is a bug"."""


class ResidError(Exception):
    """A problem that the caller can fix.

    The message says what was given, what is allowed and what to do about it, in at most three
    lines; the command line shows it as it is and exits with status 1. Mistakes in the program
    itself keep Python's own exceptions.
    """


def first_line(error: BaseException) -> str:
    """The first line of a foreign error, for the one place where it is put into our words."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
