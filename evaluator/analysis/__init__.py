"""What curves say: OR, AD, intervals, frontiers, audits, and the tables of all of them.

``analyse`` makes every table from curves, ``analyse_campaigns`` from campaigns on disk; `Asked`
says which. The names are imported on first use.

>>> from evaluator.analysis import Asked, analyse, analyse_campaigns
"""

import lazy_loader

import stp  # noqa: F401 (finds compiled code a folder, before numba looks for one)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
