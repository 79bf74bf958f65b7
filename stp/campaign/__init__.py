"""Campaigns: from questions to curves, in stages that each resume by themselves.

The way through this package: ``config`` (what is asked) → ``prepare`` (models found, prompts made,
folder opened) → ``run`` (the driver: unit after unit, by ``workers``) → ``generate``, ``probe``,
``grade`` (pure functions of a unit) → ``store`` and ``tables`` (shards) → ``curves``, ``reader``,
``status`` (what is in a folder, without a model).
"""
