"""What fuzzers of the command line share; and at the end, how many inputs were tried."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from resid.commands import cli
from tests.fuzz.budget import LONG, TRIED
from tests.fuzz.command_lines import furnish
from tests.fuzz.fork_server import Server


@pytest.fixture(scope="session")
def furnished(tiny_folder, tmp_path_factory):
    """Makes a folder with all that command lines name, which is gone behind the `with`."""
    text = tmp_path_factory.mktemp("run") / "text.txt"
    text.write_text("the is the ? the", encoding="utf-8")
    line = ["corpus", "memory", str(text), "-m", str(tiny_folder), "--top", "2"]
    run = text.parent / "run"
    assert CliRunner().invoke(cli, [*line, "-o", str(run)]).exit_code == 0

    @contextmanager
    def own_folder():
        top = Path(tempfile.mkdtemp())
        try:
            furnish(top / "in", tiny_folder, run)
            yield top / "in"
        finally:
            shutil.rmtree(top)

    return own_folder


@pytest.fixture(scope="module")
def loaded_once():
    """A checkpoint is read once for all inputs that ask for it in the same way."""
    import resid.loading

    opened, open_found = {}, resid.loading.open_found

    def reopen(found, **options):
        key = (os.path.realpath(found.folder), found.name, *sorted(options.items()))
        if key not in opened:
            opened[key] = open_found(found, **options)
        return opened[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("resid.loading.open_found", reopen)
        yield


@pytest.fixture(scope="session")
def server():
    """Forks a process for every command line."""
    server = Server()
    yield server
    server.close()


def pytest_terminal_summary(terminalreporter):
    if TRIED:
        terminalreporter.write_line(f"fuzzed: {TRIED.total():,} inputs by {len(TRIED)} fuzzers")
        for name, tried in sorted(TRIED.items()) if LONG else ():
            terminalreporter.write_line(f"  {name}: {tried:,}")
