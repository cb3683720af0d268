"""How a command may end, whatever it is given: the one rule that every fuzzer here holds."""

import resource
import sys
import traceback
import unicodedata

import pytest
from click.testing import CliRunner

from resid.commands import cli
from resid.errors import ResidError

# What a command may need beyond what the tests hold anyway, in KiB.
_ROOM = 400 * 1024


def ends_well(*words, names=()):
    """What a command came to, once it has ended as commands must.

    With status 0 and a result, 1 and a message in few lines, 2 and a word on usage, or 3 and a
    result that says which check failed; never with an exception, never with a sign that a terminal
    obeys, never with hundreds of megabytes more than before.

    Args:
        words: of the command line.
        names: of which a message that ends with status 1 has to name one.
    """
    before = _peak()
    ran = CliRunner().invoke(cli, [str(word) for word in words])
    told = f"{ran.exit_code}: {ran.stderr[:2000]!r}"
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        pytest.fail("".join(traceback.format_exception(ran.exception)[-4:]))
    assert ran.exit_code in (0, 1, 2, 3), told
    assert _peak() - before < _ROOM, told
    assert not commands_in(ran.stdout), told
    assert not commands_in(ran.stderr), told
    if ran.exit_code in (1, 2):
        lines = ran.stderr.splitlines()
        error = next(i for i, line in enumerate(lines) if line.startswith("Error: "))
        assert ran.stdout == "", told
        assert len(lines) - error <= 3, told
        assert len(ran.stderr) < 5000, told
        # What stands before it is told of lines that cannot be read, and of the model.
        notices = ("left out", "model:", "the tokenizer has")
        assert all(line.startswith(notices) for line in lines[:error]), told
        assert not names or any(str(name) in ran.stderr for name in names), told
    else:
        assert ran.stdout, told
    if ran.exit_code == 3:
        assert "check failed" in ran.stderr, told
    return ran


def refusal_of(call, *arguments, **named):
    """What a call returns and None; or None and its ResidError, which says enough in few lines."""
    try:
        return call(*arguments, **named), None
    except ResidError as error:
        text = str(error)
        assert text, repr(error)
        assert len(text.splitlines()) <= 3, repr(text)
        assert len(text) < 5000, repr(text[:500])
        return None, error


def commands_in(text):
    """The signs of a text that a terminal could obey, or that turn text around."""
    return {
        sign for sign in text if sign != "\n" and unicodedata.category(sign) in ("Cc", "Cf", "Cs")
    }


def _peak():
    """KiB that this process has held at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak
