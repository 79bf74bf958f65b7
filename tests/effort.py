"""How much a test tries: all of it in `make test-all`, a part of it in `make test`.

A property that is tried on many random cases fails on the first ones already when something breaks;
the many find what is rare. `make test` sets STP_QUICK_TESTS; without it everything is tried.
"""

import os

QUICK = os.environ.get("STP_QUICK_TESTS") == "1"


def tries(whole: int, quick: int | None = None) -> int:
    """Return how many cases to try: ``whole``, or ``quick`` (a tenth) in a quick run."""
    return (whole // 10 if quick is None else quick) if QUICK else whole
