"""Imports matplotlib whatever the environment names and forbids; import this before matplotlib.

A shell started from a notebook hands on MPLBACKEND=module://matplotlib_inline.backend_inline. Where
that package is missing `import matplotlib` itself fails, though figures drawn here need no backend.
Where its folder cannot be written, as in a container without a home, matplotlib makes a temporary
one and logs paragraphs about it, which no one who asked for a figure needs to read.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator

from resid.errors import ResidError, first_line


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """No log lines of matplotlib's but errors, for as long as it is imported."""
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


if "matplotlib" not in sys.modules:
    _backend = os.environ.pop("MPLBACKEND", None)
    try:
        with _unheard():
            import matplotlib
            import matplotlib.font_manager  # Which looks through all fonts, and saves what it saw.
    except (OSError, RuntimeError, ValueError) as error:
        # No folder, not even a temporary one; no home; or settings in it that cannot be read.
        raise ResidError(
            f"matplotlib cannot start: {first_line(error)}\n"
            "to draw figures, set MPLCONFIGDIR to a folder that can be written"
        ) from error
    finally:
        if _backend is not None:
            os.environ["MPLBACKEND"] = _backend
    if _backend:
        # What the import would have done: a backend that exists is kept for the user's own figures.
        with contextlib.suppress(ValueError):
            matplotlib.rcParams["backend"] = _backend
