import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len
from rich.text import Text

from resid.render.terminal import make_console, render
from resid.results.lab import brief

from .lab_block_samples import make_block, make_depth, make_toy
from .samples import HOSTILE
from .test_terminal import Terminal, encoded

SAMPLES = {"block": make_block, "toy": make_toy, "depth": make_depth}


def lines(result):
    file = io.StringIO()
    render(result, make_console(file))
    return file.getvalue().splitlines()


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(monkeypatch, width, name):
    monkeypatch.setenv("COLUMNS", str(width))
    wide = [line for line in lines(SAMPLES[name]()) if cell_len(line) > width]
    assert wide == []


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_left_out_at_80_columns_is_there_at_200(monkeypatch, name):
    narrow = " ".join(lines(SAMPLES[name]()))
    monkeypatch.setenv("COLUMNS", "200")
    assert "not shown" not in " ".join(lines(SAMPLES[name]()))
    assert ("not shown" in narrow) == (name == "depth")


@pytest.mark.parametrize("name", SAMPLES)
def test_every_table_ends_with_its_finding_and_its_checks(name):
    result = SAMPLES[name]()
    text = " ".join(" ".join(lines(result)).split())
    assert result.finding in text
    assert "(tolerance" in text or ", exactly" in text


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_every_encoding_gets_something_readable(name, encoding):
    text = encoded(SAMPLES[name](), encoding)
    assert "\\u" not in text
    assert "?" not in text


@pytest.mark.parametrize("name", SAMPLES)
def test_colour_adds_nothing_to_the_text(name):
    file = Terminal()
    render(SAMPLES[name](), make_console(file))
    assert "\x1b[" in file.getvalue()
    plain = Text.from_ansi(file.getvalue()).plain
    assert plain.splitlines() == lines(SAMPLES[name]())


def test_the_steps_of_a_block():
    table = lines(make_block())
    assert table[0].startswith('lab block of gpt2  "The capital of", layer 3')
    row = next(line for line in table if line.startswith("│ mlp_post"))
    assert row.split() == ["│", "mlp_post", "gelu_new(mlp_pre)", "(3,", "3072)", "2e-7"]
    row = next(line for line in table if line.startswith("│ ln1"))
    assert row.endswith("(3, 768)")
    assert next(line for line in table if line.startswith("post ")).split()[-1] == "2e-7"
    moved = [line.split() for line in table if line.strip().startswith(("0 ", "1 ", "2 "))]
    assert [row[-2:] for row in moved] == [["1.00", "0.900"], ["0.750", "0"], ["0.500", "0"]]


def test_a_block_that_differs_is_loud():
    table = lines(make_block(error=0.3))
    assert any(line.startswith("FAILED: block = Hugging Face's") for line in table)


def test_hostile_tokens_stay_in_their_row(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    block = replace(make_block(tokens=HOSTILE), replaced_by_token=r"\x1b")
    table = lines(block)
    rows = [line for line in table if re.match(r" *\d+  \"", line)]
    assert len(rows) == len(HOSTILE)
    assert not any("\x1b" in line for line in table)


def test_of_a_long_prompt_the_part_that_matters_is_shown():
    block = replace(make_block(tokens=(" the",) * 300), replaced=150)
    table = lines(block)
    rows = [line for line in table if re.match(r" *\d+  \"", line)]
    assert [int(row.split()[0]) for row in rows] == list(range(138, 162))
    assert "of 300 positions; JSON has them all" in table


def test_a_block_without_a_head():
    table = " ".join(lines(replace(make_block(), logit_error=None)))
    assert "of the logits" not in table


def test_a_toy_where_nothing_arrives():
    table = lines(make_toy(silent=True))
    row = next(line for line in table if line.startswith("ReLU"))
    assert row.split() == ["ReLU", "-", "-", "100%", "100%"]


def test_depth_groups_its_rows():
    table = lines(make_depth())
    rows = [line for line in table if line.startswith("1/sqrt(d)")]
    assert [row.split()[1] for row in rows] == ["pre-LN", "pre-LN"]
    assert rows[1].split()[-1] == "×0.354"
    assert any(line.startswith("              neither") for line in table)


def test_depth_that_is_not_finite_is_shown_as_such():
    depth = make_depth(inits=("0.02",), last=np.inf)
    assert any("n/a" in line for line in lines(depth))


def test_numbers_in_a_sentence():
    numbers = [0.00636, 2.04e-13, 1098.96, 3.47e10, 8.2, 0.5, 100.0, 1e6, 0.0]
    assert [brief(number) for number in numbers] == [
        "0.0064", "2e-13", "1,099", "3.5e10", "8.2", "0.5", "100", "1e6", "0",
    ]  # fmt: skip
