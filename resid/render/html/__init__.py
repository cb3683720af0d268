"""Results as HTML: a light element for notebooks, and a page of its own that opens anywhere."""

from resid.render.html.light import to_html
from resid.render.html.pages import page, page_of
from resid.render.html.report import Report

__all__ = ["Report", "page", "page_of", "to_html"]
