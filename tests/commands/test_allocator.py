"""Memory that was freed stays with a process that wants it again, where that can be asked for."""

import ctypes
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from resid.commands import allocator, cli
from tests.corpus.conftest import READINGS

# Five pieces of 40 MB, one after the other: the page faults of all but the first.
COUNT = """
import resource, sys
from resid.commands.allocator import keep_freed_memory
told = keep_freed_memory() if "keep" in sys.argv else None
faults = []
for size in [40_000_000] * 6:
    b"x" * size
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(told, faults[-1] - faults[0])
"""


def has_glibc():
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (AttributeError, ValueError, OSError):
        return False


def counted(*words, **environment):
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))
    }
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *words],
        env=kept | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    told, faults = done.stdout.split()
    return told, int(faults)


@pytest.mark.skipif(not has_glibc(), reason="a setting of glibc's")
def test_freed_memory_is_used_again_without_a_page_fault():
    _, before = counted()
    told, after = counted("keep")
    assert told == "True"
    assert after < 100 < before  # A piece has 9,766 pages, or 20 where pages are huge.


@pytest.mark.skipif(not has_glibc(), reason="a setting of glibc's")
@pytest.mark.parametrize(
    "environment",
    [{"MALLOC_MMAP_THRESHOLD_": "65536"}, {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=65536"}],
    ids=lambda environment: next(iter(environment)),
)
def test_what_the_user_has_set_is_left_alone(environment):
    told, faults = counted("keep", **environment)
    assert (told, faults > 100) == ("False", True)


@pytest.mark.parametrize("error", [AttributeError, ValueError, OSError])
def test_nothing_is_asked_of_another_c_library(monkeypatch, error):
    def refuse(name):
        raise error(name)

    monkeypatch.setattr(os, "confstr", refuse, raising=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("asked for"))
    assert allocator.keep_freed_memory() is False


def test_a_version_that_takes_less_gets_less_and_one_that_takes_none_is_left_alone(monkeypatch):
    monkeypatch.setattr(os, "confstr", lambda name: "glibc 2.28", raising=False)
    monkeypatch.setattr(os, "environ", {})
    for most, expected in ((2**25, [(-3, 2**26), (-3, 2**25), (-1, 2**30)]), (0, None)):
        asked = []

        class Library:
            @staticmethod
            def mallopt(what, size, most=most, asked=asked):
                asked.append((what, size))
                return what != -3 or size <= most

        monkeypatch.setattr(ctypes, "CDLL", lambda name, library=Library: library)
        assert allocator.keep_freed_memory() is bool(most)
        assert expected is None or asked == expected
        assert most or -1 not in dict(asked)


@pytest.mark.parametrize("kind", READINGS)
def test_readings_over_text_ask_for_it(tiny_folder, tmp_path, monkeypatch, kind):
    asked = []
    monkeypatch.setattr(allocator, "keep_freed_memory", lambda: asked.append(kind))
    (tmp_path / "text.txt").write_text("the is")
    line = ["corpus", kind, str(tmp_path / "text.txt"), "-m", str(tiny_folder), "-q"]
    assert CliRunner().invoke(cli, line, catch_exceptions=False).exit_code == 0
    assert asked == [kind]
