"""A headless Chromium for the web pages that resid writes: for their tests, pictures and times.

The browser is the system's (scripts/browser installs Debian's), driven by playwright. It starts
with an empty profile and an empty home, and can look up no host name.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
# What a report holds once its script has built it.
READY = "main[aria-busy=false]"


def find() -> str | None:
    """Where the browser is, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def missing() -> str | None:
    """Why there can be no browser here, or None where there can."""
    if find() is None:
        return f"none of {', '.join(NAMES)} is on PATH; scripts/browser installs one on Debian"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed; scripts/setup test installs it"
    return None


@contextmanager
def started() -> Iterator[Any]:
    """A running browser, as playwright's Browser; gone with all that it wrote at the end."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find(),
            chromium_sandbox=False,  # It does not start as root, and shows our own pages only.
            args=FLAGS,
            env={**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home},
        )
        try:
            yield browser
        finally:
            browser.close()
