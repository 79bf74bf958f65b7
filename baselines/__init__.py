"""Termination methods behind one interface."""
