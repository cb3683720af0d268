"""Imports matplotlib whatever backend the environment names; import this before matplotlib.

A shell started from a notebook hands on MPLBACKEND=module://matplotlib_inline.backend_inline. Where
that package is missing `import matplotlib` itself fails, though figures drawn here need no backend.
"""

import contextlib
import os
import sys

if "matplotlib" not in sys.modules:
    _backend = os.environ.pop("MPLBACKEND", None)
    try:
        import matplotlib
    finally:
        if _backend is not None:
            os.environ["MPLBACKEND"] = _backend
    if _backend:
        # What the import would have done: a backend that exists is kept for the user's own figures.
        with contextlib.suppress(ValueError):
            matplotlib.rcParams["backend"] = _backend
