"""What curves say: OR, AD, intervals, frontiers, audits, and the tables of all of them.

``analyse`` makes every table from curves, ``analyse_campaigns`` from campaigns on disk; `Asked`
says which. The names are imported on first use.

>>> from evaluator.analysis import Asked, analyse, analyse_campaigns
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
