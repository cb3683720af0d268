"""tests/GOTCHAS.md against the tests that it names."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS / "GOTCHAS.md"
LAST = {"A": 18, "B": 10, "C": 26, "D": 12, "E": 7, "F": 9}
ENTRIES = [f"{letter}{n}" for letter, last in LAST.items() for n in range(1, last + 1)]
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


@cache
def names_in(file: str) -> set[str]:
    path = TESTS / file
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def faults(page: str) -> list[str]:
    """What is wrong with a page: entries out of order or without a test, and tests that are not."""
    rows = re.findall(r"^\| ([A-Z]\d+) \| (.+) \| (.*) \|$", page, re.MULTILINE)
    found = [] if [row[0] for row in rows] == ENTRIES else ["the entries are not A1 to F9 in order"]
    for entry, _, told in rows:
        named = NAMED.findall(told)
        if not named and not re.search(r"Out of reach here: \w", told):
            found.append(f"{entry} has neither a test nor a reason")
        found += [
            f"{entry}: no {file}::{name}" for file, name in named if name not in names_in(file)
        ]
        if told.count("::") != len(named):
            found.append(f"{entry} names something that does not read as a test")
    return found


def test_every_entry_is_watched_by_tests_that_exist():
    assert faults(PAGE.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("test_everything_equals_the_oracle", "test_nothing", "B7: no test_recording.py::test_not"),
        ("`test_recording.py::test_everything_equals_the_oracle`", "", "B7 has neither"),
        ("`test_recording.py::test_everything_equals_the_oracle`", "a::b", "B7 names something"),
        ("| B7 |", "| B70 |", "the entries are not"),
        ("`test_recording.py::test_everything_eq", "`test_no.py::test_everything_eq", "B7: no"),
    ],
)
def test_a_page_that_is_not_whole_is_seen(old, new, told):
    page = PAGE.read_text("utf-8")
    assert old in page
    assert any(fault.startswith(told) for fault in faults(page.replace(old, new)))
