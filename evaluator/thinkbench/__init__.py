r"""LLMThinkBench: accuracy and length on basic arithmetic (papers 000, 001, 003).

``run(model, out)`` runs it; ``compare_runs`` scores several runs in one pool. The modules:
``config`` and ``questions`` (what is asked), ``running`` (asking and grading), ``stored`` (the
folder), ``grading`` (responses to verdicts and counts), ``measures`` (per task, category, overall),
``pools`` (token efficiency and O-Scores), ``significance``, ``stability``, ``correlations``,
``lengths`` and ``comparison`` (runs beside each other), ``error_kinds``, ``patterns``, ``judge``
and ``agreement`` (the taxonomy), ``bridge`` (beside a campaign of step-wise truncation probing),
``leaderboard``, ``tables``, ``page`` and ``output`` (what people read).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
