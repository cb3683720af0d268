"""A report of a full context: the page stays small, and its end can be reached."""

import pytest

from ..conftest import tiny_hf, write_checkpoint
from .conftest import PHONE, WIDE

N = 1024


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """Arguments for a report of 1,024 tokens."""
    folder = write_checkpoint(tmp_path_factory.mktemp("long"), tiny_hf(n_positions=N))
    return "-m", folder, "--ids", ",".join(str(i * 7 % 264) for i in range(N))


@pytest.mark.parametrize("size", [PHONE, WIDE])
def test_the_page_holds_what_is_in_sight_and_little_more(read, long, size):
    report = read(*long, size=size)
    assert report.page.evaluate("document.querySelectorAll('*').length") < 5000
    assert report.watched.faults() == []
    grid = report.grid()
    assert grid.get_attribute("aria-colcount") == str(N + 1)
    assert 1 <= report.page.get_by_role("gridcell").count() < 400
    # It starts at its end, where the prediction is; the beginning is a scroll away.
    assert report.cell("2.post", N - 1).is_visible()
    grid.evaluate("grid => { grid.scrollLeft = 0; }")
    report.watched.settle()
    assert report.cell("2.post", 0).is_visible()
    assert report.cell("2.post", N - 1).count() == 0
    grid.evaluate("grid => { grid.scrollLeft = grid.scrollWidth / 2; }")
    report.watched.settle()
    middle = report.page.locator("[role=gridcell][data-i='2']").evaluate_all(
        "all => all.map(cell => Number(cell.dataset.j))"
    )
    assert any(abs(j - N / 2) < 20 for j in middle)
    assert report.page.get_by_role("gridcell").count() < 400


def test_keys_reach_both_ends_and_every_step_between(read, long):
    report = read(*long)
    press = report.page.keyboard.press
    report.cell("2.post", N - 1).focus()
    press("Home")
    assert report.focused().startswith("2.post, position 0:")
    report.watched.settle()
    assert report.cell("2.post", 0).is_visible()
    for position in range(1, 40):
        press("ArrowRight")
        assert report.focused().startswith(f"2.post, position {position}:")
    report.watched.settle()
    assert report.cell("2.post", 39).is_visible()
    press("PageDown")
    assert int(report.focused().split("position ")[1].split(":")[0]) > 40
    press("Control+End")
    assert report.focused().startswith(f"embed, position {N - 1}:")
    press("Enter")
    assert report.page.locator(".answer").text_content().startswith(f"After position {N - 1}, ")


def test_a_position_without_attribution_says_so(read, long):
    report = read(*long)
    report.cell("2.post", N - 1).focus()
    report.page.keyboard.press("Home")
    report.page.keyboard.press("Enter")
    assert report.detail()["where"].startswith("position 0, ")
    for question in ("Which part of the network", "Which neurons"):
        assert "--positions" in report.panel(question).inner_text()
    assert report.watched.faults() == []
