"""OTBench: real termination methods against the frontier of their strategy (paper 002, section 5).

The way through this package: ``gather`` and ``release`` (campaigns frozen into tables) → ``load``
(checked and read again) → ``decide`` (a method's stopping positions, handed out step by step) →
``points`` (what they cost and reach, beside the frontier) → ``intervals`` (paired bootstrap) →
``leaderboard`` (rows) → ``page`` (the report).
"""
