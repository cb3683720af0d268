"""Tells at the end how many inputs the fuzzers tried."""

from tests.fuzz.budget import TRIED


def pytest_terminal_summary(terminalreporter):
    if TRIED:
        terminalreporter.write_line(f"fuzzed: {TRIED.total():,} inputs by {len(TRIED)} fuzzers")
