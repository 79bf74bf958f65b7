"""Synthetic worlds whose truth is known, and what estimators make of them."""

import stp  # noqa: F401 (finds compiled code a folder, before numba looks for one)
