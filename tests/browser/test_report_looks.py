"""The report to the eye: no text over other text, none cut, none pale, at every size and scheme."""

import pytest
from click.testing import CliRunner

from resid.commands import cli

from .conftest import PHONE, WIDE

MINI = ("-m", "mini", "The capital of France is")
LONGER = ("-m", "mini", "When Mary and John went to the store, John gave a drink to")
TABLET = (768, 1024)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, TABLET, WIDE])
@pytest.mark.parametrize("arguments", [MINI, LONGER], ids=["short", "longer"])
def test_nothing_is_wrong_to_the_eye(read, arguments, size, scheme):
    report = read(*arguments, size=size, color_scheme=scheme)
    assert report.watched.faults() == []
    report.page.get_by_role("radio", name="entropy").check()
    report.page.locator(".detail button").nth(1).click()
    assert report.watched.faults() == []


def test_dark_mode_is_dark_and_follows_the_system(read):
    report = read(*MINI, color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert max(report.page.evaluate(paper)) < 60
    dark = report.state()
    report.page.emulate_media(color_scheme="light")
    report.watched.settle()  # Style sheets follow at once, scripts are told in the next frame.
    assert min(report.page.evaluate(paper)) > 200
    assert report.state() != dark
    assert report.watched.faults() == []


def test_forced_colours_keep_the_grid_readable(read):
    report = read(*MINI, forced_colors="active")
    assert report.watched.faults() == []
    assert len(set(report.state())) > 5  # The colours of cells are data.


def test_nothing_moves_where_motion_is_not_wanted(read):
    report = read(*MINI, reduced_motion="reduce")
    report.cell("3.post", 2).click()
    assert report.page.evaluate("document.getAnimations().length") == 0


def test_large_text_still_fits(read):
    report = read(*MINI, size=PHONE)
    report.page.evaluate("document.body.style.fontSize = '130%'")
    assert [f for f in report.watched.faults() if f.startswith(("the page is", "overlap"))] == []


def test_a_page_without_panels_shows_its_figure_and_every_line_of_its_table(visit, tmp_path):
    file = tmp_path / "toy.html"
    result = CliRunner().invoke(cli, ["lab", "toy", "--seeds", "2", "-q", "-o", str(file)])
    assert result.exit_code == 0, result.output
    for size in (PHONE, WIDE):
        watched = visit(file, size=size)
        table = watched.page.locator("pre").first
        assert table.inner_text().count("\n") > 20
        seen, whole = table.evaluate("table => [table.clientHeight, table.scrollHeight]")
        assert seen == whole
        # What could not be drawn, or may not be by the page's policy, has no size.
        figure = watched.page.locator("img")
        assert figure.evaluate("figure => figure.complete && figure.naturalWidth") > 500
        assert watched.faults() == []
