"""Campaigns: from questions to curves, in stages that each resume by themselves.

The way through this package: ``config`` with ``sections`` (what is asked) → ``early`` (impossible
requests, found before anything is loaded) → ``prepare`` (models found, prompts made, folder opened)
→ ``run`` (the driver: unit after unit, by ``workers``) → ``generate`` or ``answer`` (both with
``trajectories``), ``probe``, ``grade``, ``signal_rows`` (pure functions of a unit) → ``store`` and
``tables`` (shards) → ``curves``, ``signal_reader``, ``reader``, ``status`` (what is in a folder,
without a model).

>>> from stp.campaign import load_curves, run_campaign
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
