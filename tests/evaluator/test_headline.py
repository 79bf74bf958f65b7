"""The findings in words, where they could be misread."""

from evaluator.analysis.frontiers import cell_frontiers
from evaluator.analysis.headline import make_headline
from evaluator.analysis.overthinking import per_trajectory, summarise
from stp.curves import Curves


def headline(correct_s: list[list[int]]):
    curves = Curves(
        tokens=[10 * k for row in correct_s for k in range(len(row))],
        correct=[value for row in correct_s for value in row],
        trajectory_offsets=[sum(map(len, correct_s[:s])) for s in range(len(correct_s) + 1)],
        question=range(len(correct_s)),
        probes=4,
        benchmark_names=("b",),
        model_names=("m",),
    )
    return make_headline(curves, summarise(per_trajectory(curves)), cell_frontiers(curves))


def test_a_model_that_is_never_right_after_thinking_has_nothing_to_save():
    found = headline([[0, 0, 0], [0, 2, 0], [0, 0]])
    assert found.potential == (
        "Full thinking is never right here, so there is no accuracy to keep for fewer tokens. The "
        "best accuracy within reach: 16.7% by dynamic early exit, 16.7% by fixed budgets and 0.0% "
        "by dynamic routing."
    )
    assert "66.7% of the curves are flat" in found.sentence


def test_few_flat_curves_are_not_worth_a_sentence():
    found = headline([[0, 2, 4]] * 9 + [[4, 4]])
    assert "flat" not in found.sentence
    assert found.potential.startswith("With perfect choices")
