"""Questions on which thinking, or its lack, hurts: chosen only where the difference is significant.

Two methods answered a question several times each. A question is shown only if Fisher's exact test
on right and wrong finds a difference that is significant after correction for all questions tested
(Benjamini and Hochberg's false discovery rate). The paper takes 128 responses of each.
"""

from dataclasses import dataclass, replace

import pandas as pd
from scipy import stats

from evaluator.optimal.analyses import thinking_methods
from evaluator.optimal.methods import NO_THINKING

FALSE_DISCOVERIES = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A question that one way of asking answers better, and responses that show it.

    Attributes
    ----------
    kind
        ``"overthinking"``: an easy question that is answered worse with thinking;
        ``"underthinking"``: a hard one that is answered worse without.
    model, question
        Which model, and the question's key.
    better, worse
        The two methods.
    better_right, better_responses, worse_right, worse_responses
        How often each was right, and out of how many.
    p_value, q_value
        Fisher's exact test, two-sided; and adjusted.
    better_sample, worse_sample
        A right response of the better method, and a wrong one of the worse.
    """

    kind: str
    model: str
    question: str
    better: str
    worse: str
    better_right: int
    better_responses: int
    worse_right: int
    worse_responses: int
    p_value: float
    q_value: float
    better_sample: int
    worse_sample: int


def find_examples(rows: pd.DataFrame) -> list[Example]:
    """Return all questions with a significant difference, clearest first.

    ``rows`` are graded rows of one or several models. What each model thinks with (``thinking``
    before other methods) is compared with its ``no-thinking``. On the overthinking side examples
    are questions where thinking is worse, on the other side those where its lack is.
    """
    plain = NO_THINKING
    kept = rows[rows["right"].notna() & (rows["side"] != "none")]
    ways = {
        str(model): next(iter(thinking_methods(own)), plain) for model, own in kept.groupby("model")
    }
    kept = kept[(kept["method"] == kept["model"].map(ways)) | (kept["method"] == plain)]
    found: list[tuple[int, Example]] = []
    tested: list[float] = []
    for (model, question), group in kept.groupby(["model", "question"], sort=True):
        way = ways[str(model)]
        halves = {
            name: group[group["method"] == name].sort_values("sample") for name in (way, plain)
        }
        counts = {name: (int(h["right"].sum()), len(h)) for name, h in halves.items()}
        if len(counts) < 2 or not all(total for _, total in counts.values()):
            continue
        table = [[right, total - right] for right, total in counts.values()]
        p_value = float(stats.fisher_exact(table).pvalue)
        tested.append(p_value)
        side = group["side"].iloc[0]
        better, worse = (plain, way) if side == "ovt" else (way, plain)
        # Compared as whole numbers: right / total of one against the other.
        gain = counts[better][0] * counts[worse][1] - counts[worse][0] * counts[better][1]
        if gain <= 0:
            continue
        example = Example(
            kind="overthinking" if side == "ovt" else "underthinking",
            model=str(model),
            question=str(question),
            better=better,
            worse=worse,
            better_right=counts[better][0],
            better_responses=counts[better][1],
            worse_right=counts[worse][0],
            worse_responses=counts[worse][1],
            p_value=p_value,
            q_value=p_value,
            better_sample=_first(halves[better], right=True),
            worse_sample=_first(halves[worse], right=False),
        )
        found.append((len(tested) - 1, example))
    adjusted = stats.false_discovery_control(tested)
    kept_examples = [
        replace(example, q_value=float(adjusted[place]))
        for place, example in found
        if adjusted[place] <= FALSE_DISCOVERIES
    ]
    return sorted(kept_examples, key=lambda each: (each.p_value, each.model, each.question))


def _first(rows: pd.DataFrame, *, right: bool) -> int:
    return int(rows[rows["right"] == right]["sample"].iloc[0])
