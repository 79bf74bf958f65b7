"""OTBench: real termination methods against the frontier of their strategy (paper 002, section 5).

The way through this package: ``gather`` and ``release`` (campaigns frozen into tables) → ``load``
(checked and read again) → ``run`` and ``decide`` (a method trained; its stopping positions, handed
out step by step) → ``points`` and ``summary`` (what they cost and reach, beside the frontier) →
``intervals`` (paired bootstrap) → ``leaderboard`` (rows) → ``page`` (the report). ``session`` goes
it whole.

>>> from evaluator.otbench import load_release, run_methods
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
