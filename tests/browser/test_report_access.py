"""The report for those who hear it: everything has a role, a name, and a place in the order."""

from itertools import pairwise

import resid

from .conftest import PHONE

MINI = ("-m", "mini", "The capital of France is")


def test_the_page_has_a_language_a_title_and_one_order_of_headings(read):
    page = read(*MINI).page
    assert page.evaluate("document.documentElement.lang") == "en"
    assert "The capital of France is" in page.title() and "mini" in page.title()
    levels = page.eval_on_selector_all(
        "h1, h2, h3, h4", "all => all.map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels)), levels
    assert page.get_by_role("main").count() == 1


def test_every_panel_is_a_region_named_by_its_question(read):
    page = read(*MINI).page
    questions = page.get_by_role("heading", level=2).all_inner_texts()
    assert len(questions) >= 8
    for question in questions:
        region = page.get_by_role("region", name=question, exact=True)
        assert region.count() == 1, question


def test_the_grid_is_a_grid_with_rows_cells_and_headers(read):
    page = read(*MINI).page
    grid = page.get_by_role("grid")
    assert "The capital of France is" in grid.get_attribute("aria-label")
    rows = grid.get_by_role("row").all()
    assert len(rows) == int(grid.get_attribute("aria-rowcount")) == 11
    assert [int(row.get_attribute("aria-rowindex")) for row in rows] == list(range(1, 12))
    points = [row.get_by_role("rowheader").inner_text() for row in rows[1:-1]]
    assert points == [*(f"{i}.post" for i in reversed(range(8))), "embed"]
    for row in rows[1:-1]:
        cells = row.get_by_role("gridcell").all()
        assert [cell.get_attribute("aria-colindex") for cell in cells] == list("23456")
        assert all(cell.get_attribute("aria-label") for cell in cells)
    assert page.locator("[role=gridcell][tabindex='0']").count() == 1


def test_everything_that_can_be_used_has_a_name(read):
    page = read(*MINI, size=PHONE).page
    for role in ("button", "radio", "combobox", "link", "img", "table", "region", "grid"):
        for element in page.get_by_role(role).all():
            # As the browser tells it to a screen reader.
            described = element.aria_snapshot().splitlines()[0]
            assert '"' in described or role == "table", described
    assert page.get_by_role("img").count() >= 4
    assert page.locator("svg:not([role=img][aria-label])").count() == 0
    assert page.locator("table:not(:has(thead th[scope=col]))").count() == 0


def test_what_is_only_colour_is_also_said(read):
    report = read(*MINI)
    label = report.cell("7.post", 4).get_attribute("aria-label")
    model = resid.load("mini")
    said = resid.logit_lens(model, resid.record(model, MINI[-1])).top_probs[-1, 4, 0]
    assert '" Paris"' in label and "probability" in label
    assert f"{said:.3f}".removeprefix("0") in label
    chosen = report.page.locator("[aria-selected=true], [aria-current]")
    assert chosen.count() >= 1


def test_a_finger_can_hit_what_can_be_pressed(read):
    report = read(*MINI, size=PHONE, has_touch=True)
    for element in report.page.locator("button, select, fieldset label").all():
        box = element.bounding_box()
        assert box["height"] >= 24 and box["width"] >= 24, element.inner_text()
    report.cell("3.post", 3).tap()
    assert report.detail()["where"].startswith("position 3, ")
    assert report.page.locator(".answer").text_content().startswith("After position 3, ")
