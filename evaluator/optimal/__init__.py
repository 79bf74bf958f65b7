"""OptimalThinkingBench (paper 004): overthinking and underthinking in one score.

The metrics are plain functions of arrays; everything else is imported on first use. Modules:
``metrics`` (OAA, AUC_OAA, F1), ``scores`` (from responses to one
number, with intervals), ``subsets`` (what is asked), ``judge`` (a model as a judge), ``methods``
(how it is asked), ``plan``, ``running``, ``grading`` and ``stored`` (a run on disk), ``recipe`` and
``building`` (how OvT-General is made), ``selection`` (which tasks need thinking), ``analyses`` and
``examples``, ``bridging`` (to step-wise truncation probing), ``results``, ``page`` and ``output``
(the report).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
