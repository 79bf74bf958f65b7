"""Termination methods behind one interface.

Each method is a module of its own; :mod:`baselines.interface` says what one is, and
:mod:`baselines.registry` finds them.
"""

from baselines.interface import EarlyExit, FixedBudget, Method, Router
from baselines.measurements import Measurements
from baselines.registry import find_method, method_names
from baselines.views import Prefix, QuestionView

__all__ = [
    "EarlyExit",
    "FixedBudget",
    "Measurements",
    "Method",
    "Prefix",
    "QuestionView",
    "Router",
    "find_method",
    "method_names",
]
