"""How many inputs a fuzzer tries: few in every run, the same each time; many when there is time."""

import functools
import os
from collections import Counter
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings

LONG = bool(os.environ.get("RESID_LONG_TESTS"))
"""Set by scripts/test --long."""
TRIED: Counter[str] = Counter()
"""Inputs tried by this run, by test."""


def fuzz(few: int, many: int, **strategies) -> Callable:
    """Like hypothesis's `given`, with a budget of inputs and a count of what was tried.

    Args:
        few: inputs in a usual run, which tries the same ones every time.
        many: inputs with scripts/test --long, drawn anew by every run.
        strategies: as for `given`; what is not named is a fixture.
    """

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def counted(*arguments, **named):
            TRIED[test.__name__] += 1
            return test(*arguments, **named)

        budget = settings(
            max_examples=many if LONG else few,
            derandomize=not LONG,
            database=None,
            deadline=None,
            # Fixtures here are read only or made anew by the test; processes and models are slow.
            suppress_health_check=list(HealthCheck),
        )
        return budget(given(**strategies)(counted))

    return decorate
