"""Frozen results: numpy arrays and strings with their axes, their source and their proofs.

A result is the end of torch and the beginning of every rendering: tables, figures, JSON and CSV
read nothing else.
"""

from resid.results.base import Check, Floats, Ints, Result, Source, Strings
from resid.results.lens import LogitLens, Track

__all__ = ["Check", "Floats", "Ints", "LogitLens", "Result", "Source", "Strings", "Track"]
