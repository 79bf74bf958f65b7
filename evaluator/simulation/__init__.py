"""Synthetic worlds whose truth is known, and what estimators make of them."""
