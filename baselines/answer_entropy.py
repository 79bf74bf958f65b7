"""Entropy of the answer's first token, followed as EAT does (arXiv 2509.26522).

As :mod:`baselines.end_entropy`, after the thinking-end and the answer's opening: where a model's
token after the thinking-end is always the same, its entropy says nothing, and this one does.

Departures. Those of :mod:`baselines.end_entropy`, and the place of the entropy.
"""

from dataclasses import dataclass
from typing import Literal

from baselines.end_entropy import EndEntropy


@dataclass(eq=False)
class AnswerEntropy(EndEntropy):
    """Stop when the running variance of the answer's entropy falls below a threshold."""

    after: Literal["end", "opening"] = "opening"

    name = "answer_entropy"
