"""The report's page in the words of its readers: cells, details, panels."""

import json
import re


class ReportPage:
    """What can be done with an open report, and what is then seen."""

    def __init__(self, watched):
        self.watched = watched
        self.page = watched.page
        self.numbers = json.loads(self.page.text_content("#numbers"))

    def grid(self, which=0):
        """The logit lens, of the first prompt unless told otherwise."""
        return self.page.get_by_role("grid").nth(which)

    def cell(self, point, position, which=0):
        """The cell of a point and a position; it must be in sight or near."""
        return self.grid(which).locator(
            f'[role=gridcell][aria-label^="{point}, position {position}:"]'
        )

    def detail(self, which=0):
        """What the page tells of the cell pointed at, as text and numbers."""
        detail = self.page.locator(".detail").nth(which)
        names, values = detail.locator("dt").all(), detail.locator("dd").all_text_contents()
        return {
            "point": detail.locator(".point").text_content(),
            "where": detail.locator(".where").text_content(),
            "tops": list(
                zip(
                    detail.locator("li bdi").all_text_contents(),
                    detail.locator("li .number").all_text_contents(),
                    strict=True,
                )
            ),
            "numbers": dict(zip([name.text_content() for name in names], values, strict=True)),
        }

    def panel(self, question):
        """The panel with a heading that has these words."""
        return self.page.get_by_role("region", name=question)

    def focused(self):
        """What a screen reader says of what has the focus."""
        return self.page.evaluate("document.activeElement.getAttribute('aria-label')")

    def state(self):
        """Position and cell colours that are shown now."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll("[role=gridcell]")].map(
                 (cell) => getComputedStyle(cell).backgroundColor)"""
        )


def shows(text, value, held=None):
    """Whether a number as it is written is this value, to the last digit written.

    `held` is the size of the numbers that the page computes it from, where it is a difference: the
    page holds five digits of these.
    """
    found = re.search(r"[+−-]?(\d+(,\d{3})+|\d*\.?\d+)(e-?\d+)?", text)
    assert found, text
    digits = found[0].replace("−", "-").replace(",", "")
    mantissa, _, exponent = digits.partition("e")
    decimals = len(mantissa.partition(".")[2])
    step = 10.0 ** (int(exponent or 0) - decimals)
    return abs(float(digits) - value) <= 0.5 * step + 1e-5 * abs(value if held is None else held)
