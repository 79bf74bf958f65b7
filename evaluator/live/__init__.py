"""Termination methods that run live: on a model while it thinks, not on stored trajectories."""
