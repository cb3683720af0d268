"""A real Chromium, offline, that tells of everything a page should not do."""

import functools
import os
from contextlib import ExitStack

import chromium
import pytest
from click.testing import CliRunner

from resid.commands import cli

from .report_page import ReportPage
from .watched import Watched

MISSING = chromium.missing()
PHONE, WIDE = (390, 844), (1600, 1000)


def pytest_runtest_setup(item):
    if MISSING and "browser" in item.fixturenames:
        # Nobody reads what CI skips.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no browser: {MISSING}")


def pytest_terminal_summary(terminalreporter):
    if MISSING:
        terminalreporter.write_line(f"not run: the tests in a browser, as {MISSING}")


# Closed with these tests: playwright's event loop would be in the way of any other in this thread.
@pytest.fixture(scope="package")
def browser():
    """The one browser of all tests here."""
    with chromium.started() as browser:
        yield browser


@pytest.fixture
def visit(browser):
    """Opens a file, or markup, in a window of its own, and returns the watched page.

    At the end of the test every page must have been silent: no request, no error, no dialog.
    """
    with ExitStack() as stack:
        pages = []

        def visit(file=None, *, markup=None, size=WIDE, **emulated):
            context = browser.new_context(
                viewport=dict(zip(("width", "height"), size, strict=True)), offline=True, **emulated
            )
            stack.callback(context.close)
            pages.append(Watched(context, file))
            if markup is not None:
                pages[-1].page.set_content(markup)
            return pages[-1]

        yield visit
        for page in pages:
            page.settle()
        told = [line for page in pages for line in page.told]
    assert told == []


@pytest.fixture(scope="package")
def made(tmp_path_factory):
    """The file that `resid report` with these arguments writes; each is written once."""

    @functools.cache
    def made(*arguments):
        file = tmp_path_factory.mktemp("report") / "report.html"
        command = ["report", "-q", "-o", str(file), *map(str, arguments)]
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0, result.output
        assert result.stdout == ""
        return file

    return made


@pytest.fixture
def read(visit, made):
    """Opens the report of these arguments; keywords are the window's."""

    def read(*arguments, **window):
        watched = visit(made(*arguments), **window)
        watched.page.wait_for_selector(chromium.READY)
        watched.settle()  # Charts are drawn in the first frame.
        return ReportPage(watched)

    return read
