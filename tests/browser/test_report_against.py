"""Two prompts, or two models, side by side: aligned, moving together, and subtracted."""

import json

import pytest
from click.testing import CliRunner

from resid.commands import cli

from ..conftest import tiny_hf, write_checkpoint
from .conftest import PHONE, WIDE
from .report_page import shows

A, B = "The capital of France is", "The capital of Italy is"
PROMPTS = ("-m", "mini", A, "--against", B)


@pytest.fixture(scope="module")
def lenses():
    """What `resid lens` says of both prompts."""
    printed = CliRunner().invoke(cli, ["lens", "-m", "mini", A, B, "--format", "json"])
    return [json.loads(line)["data"] for line in printed.stdout.splitlines()]


def test_both_prompts_are_there_and_their_difference_is_the_second_minus_the_first(read, lenses):
    report = read(*PROMPTS)
    assert report.page.get_by_role("heading", level=1).all_inner_texts() == [f'"{A}"', f'"{B}"']
    assert report.page.get_by_role("grid").count() == 3
    for i, point in enumerate(["embed", *(f"{layer}.post" for layer in range(8))]):
        for position in range(5):
            tokens = [one["top_tokens"][i][position][0] for one in lenses]
            values = [one["top_probs"][i][position][0] for one in lenses]
            for which in (0, 1):
                text = report.cell(point, position, which).locator(".value").text_content()
                assert shows(text, values[which])
            cell = report.cell(point, position, 2)
            shown = cell.locator("bdi").all_text_contents()
            assert shown == (tokens if tokens[0] != tokens[1] else tokens[:1])
            difference = cell.locator(".value").text_content()
            assert shows(difference, values[1] - values[0], held=max(values))


def test_choosing_in_any_grid_turns_all_panels_of_both(read):
    report = read(*PROMPTS)
    for which, position in [(0, 1), (1, 3), (2, 2)]:
        report.cell("3.post", position, which).click()
        answers = report.page.locator(".answer").all_text_contents()
        assert len(answers) == 2
        assert all(answer.startswith(f"After position {position}, ") for answer in answers)
        said = report.panel("Which part of the network").inner_text()
        assert said.count(f"after position {position}") == 2


def test_choosing_a_difference_scrolls_both_grids_to_it(read):
    # Grids of one length scroll together anyway.
    longer, shorter = " ".join(["the"] * 30), " ".join(["the"] * 24)
    report = read("-m", "mini", longer, "--against", shorter)
    scrolled = [report.grid(which).evaluate("grid => grid.scrollLeft") for which in (0, 1)]
    assert min(scrolled) > 0
    report.cell("3.post", "29 : 23", 2).press("Home")
    report.cell("3.post", 0, 2).click()
    assert [report.grid(which).evaluate("grid => grid.scrollLeft") for which in (0, 1)] == [0, 0]


def test_the_colours_change_in_all_three(read, lenses):
    report = read(*PROMPTS)
    report.page.get_by_role("radio", name="entropy").check()
    for which in (0, 1):
        text = report.cell("2.post", 4, which).locator(".value").text_content()
        assert shows(text, lenses[which]["entropy"][3][4])
    one, two = (lens["entropy"][3][4] for lens in lenses)
    difference = report.cell("2.post", 4, 2).locator(".value").text_content()
    assert shows(difference, two - one, held=one + two)


def test_two_models_are_aligned_by_relative_depth(read, tmp_path):
    folders = []
    for layers in (2, 4):
        folder = tmp_path / str(layers)
        folder.mkdir()
        folders.append(write_checkpoint(folder, tiny_hf(n_layer=layers)))
    report = read("-m", folders[0], "the is", "--against-model", folders[1])
    rows = report.grid(2).get_by_role("rowheader").all_inner_texts()
    points = [row for row in rows if "post" in row or "embed" in row]
    assert points == ["1.post : 3.post", "1.post : 2.post", "0.post : 1.post", "0.post", "embed"]
    assert report.watched.faults() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, WIDE])
def test_nothing_is_wrong_to_the_eye(read, size, scheme):
    report = read(*PROMPTS, size=size, color_scheme=scheme)
    assert report.watched.faults() == []
    assert report.page.get_by_role("grid").count() == 3
