"""The formulas on the published rows of paper 000, as far as their inputs are printed.

Rows are in paper/tableN.tsv. An O-Score is given to three digits, an accuracy to hundredths of a
percent (Table 9: to whole percents), tokens to tenths: a score follows from printed inputs if it
lies within what their rounding allows. Which rows do not is said in
docs/published_numbers.md.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from evaluator.thinkbench.oscore import (
    arithmetic_score,
    geometric_score,
    overthinking_score,
    score_gradient,
    token_efficiency,
    weighted_score,
)
from evaluator.thinkbench.pools import TaskResult, make_pool
from evaluator.thinkbench.stability import leave_one_out

HERE = Path(__file__).parent / "paper"
ROUNDING = 0.0005 + 1e-9
UNPRINTED = (7.0, 7892.0)
"""The pool from which most rows of Table 2 follow, found by search; the paper does not print it."""


def rows(number):
    with (HERE / f"table{number}.tsv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def columns(number, accuracy_step=0.005):
    table = rows(number)
    accuracy = np.array([float(row["accuracy"]) for row in table])
    low, high = (np.clip((accuracy + side * accuracy_step) / 100, 0, 1) for side in (-1, 1))
    tokens = np.array([float(row["tokens"]) for row in table])
    printed = np.array([float(row["oscore"]) for row in table])
    return low, high, tokens, printed


def follows(number, t_min, t_max, accuracy_step=0.005):
    """Return which rows' scores follow from their accuracy and tokens in a pool."""
    low, high, tokens, printed = columns(number, accuracy_step)
    least = overthinking_score(low, token_efficiency(tokens + 0.05, t_min, t_max))
    most = overthinking_score(high, token_efficiency(np.maximum(tokens - 0.05, 0), t_min, t_max))
    return (printed >= least - ROUNDING) & (printed <= most + ROUNDING)


@pytest.mark.parametrize(
    ("accuracy", "efficiency", "arithmetic", "geometric", "harmonic"),
    [
        (1.0, 0.1, 0.55, 0.32, 0.18),
        (0.9, 0.3, 0.60, 0.52, 0.45),
        (0.6, 0.6, 0.6, 0.6, 0.6),
        (0.8, 0.8, 0.8, 0.8, 0.8),
    ],
)
def test_table_4(accuracy, efficiency, arithmetic, geometric, harmonic):
    assert arithmetic_score(accuracy, efficiency) == pytest.approx(arithmetic, abs=0.005)
    assert geometric_score(accuracy, efficiency) == pytest.approx(geometric, abs=0.005)
    assert overthinking_score(accuracy, efficiency) == pytest.approx(harmonic, abs=0.005)


def test_the_examples_of_section_3():
    assert overthinking_score(0.9, 0.1) == pytest.approx(0.18)
    assert overthinking_score(0.6, 0.6) == pytest.approx(0.60)
    assert arithmetic_score(1.0, 0.1) == pytest.approx(0.55)
    assert score_gradient(0.9, 0.1)[1] / score_gradient(0.9, 0.1)[0] == pytest.approx(81)


def test_table_2_follows_from_one_pool_but_not_from_the_printed_one():
    tokens = columns(2)[2]
    assert len(tokens) == 39
    # Least and greatest tokens of the printed rows: few scores come out.
    assert follows(2, tokens.min(), tokens.max()).sum() <= 8
    # A pool that is not printed explains most of them.
    explained = follows(2, *UNPRINTED)
    assert explained.sum() >= 32
    odd = {row["model"] for row, good in zip(rows(2), explained, strict=True) if not good}
    assert odd <= {
        "Qwen3",
        "Phi-4-reasoning",
        "Phi-3-mini-128k (I)",
        "Phi-3-medium-4k (I)",
        "Phi-3-medium-128k (I)",
        "Qwen2.5-Math (I)",
    }


def test_table_2_gives_two_qwen3_models_each_the_others_score():
    scores = {row["parameters"]: float(row["oscore"]) for row in rows(2) if row["model"] == "Qwen3"}
    inputs = {
        row["parameters"]: (float(row["accuracy"]) / 100, float(row["tokens"]))
        for row in rows(2)
        if row["model"] == "Qwen3"
    }
    for size, other in (("14", "32"), ("32", "14")):
        accuracy, tokens = inputs[size]
        score = overthinking_score(accuracy, token_efficiency(tokens, *UNPRINTED))
        assert score == pytest.approx(scores[other], abs=0.001)


def test_no_efficiency_gives_phi_3_minis_score():
    (row,) = [row for row in rows(2) if row["model"] == "Phi-3-mini-128k (I)"]
    best = overthinking_score(float(row["accuracy"]) / 100 + 0.00005, 1.0)
    assert best < float(row["oscore"]) - 0.03


def test_table_9_scores_above_what_any_pool_allows():
    _, high, tokens, printed = columns(9, accuracy_step=0.5)
    assert len(tokens) == 43
    most = overthinking_score(high, 1.0)
    beyond = printed > most + ROUNDING
    labels = [(row["model"], row["budget"]) for row in rows(9)]
    assert [label for label, over in zip(labels, beyond, strict=True) if over] == [
        ("GPT-5", "medium"),
        ("GPT-5", "high"),
    ]
    best = max(
        follows(9, t_min, t_max, accuracy_step=0.5).sum()
        for t_min in np.arange(0.0, 14.6, 0.5)
        for t_max in range(800, 12_001, 100)
    )
    assert best < 22


def test_tables_10_and_11_cannot_share_table_2s_pool():
    # The same accuracies and tokens, other scores.
    of = {(row["model"], row["parameters"]): row for row in rows(2)}
    for size, printed in (("0.5", 0.268), ("7", 0.568), ("72", 0.591)):
        second = of["Qwen2.5 (I)", size]
        (tenth,) = [
            row
            for row in rows(10)
            if row["model"] == f"Qwen2.5-{size}B" and row["budget"] == "FP16"
        ]
        assert tenth["accuracy"] == second["accuracy"]
        assert float(tenth["tokens"]) == float(second["tokens"])
        assert float(tenth["oscore"]) == printed != float(second["oscore"])
    assert not follows(10, *UNPRINTED).any()
    assert not follows(11, 89.4, 6780.7).any()
    # Capped models write far fewer tokens and yet score less than accuracy alone explains.
    low, _, _, printed = columns(11)
    assert sum(score < accuracy for score, accuracy in zip(printed, low, strict=True)) >= 9


def test_table_17_on_the_rows_of_table_2():
    results = {
        f"{row['model']} {row['parameters']} {at}": {
            "all": TaskResult(accuracy=float(row["accuracy"]) / 100, tokens=float(row["tokens"]))
        }
        for at, row in enumerate(rows(2))
    }
    order = sorted(results, key=lambda model: results[model]["all"].tokens)
    stability = leave_one_out(results, removed=[*order[:5], *order[-5:]])
    assert len(stability.rows) == 10
    drifts = {row.removed.split(" ")[0]: row.largest_drift for row in stability.rows}
    # Only the two ends of the pool matter: the paper's example, Phi-4-reasoning, is not one.
    assert drifts["Phi-4-reasoning"] == 0.0
    assert drifts["Phi-4-reasoning-plus"] > 0.01
    assert drifts["Phi-3-mini-128k"] > 0.0
    assert sum(drift > 0 for drift in (row.largest_drift for row in stability.rows)) == 2
    assert stability.kendall > 0.87
    assert stability.spearman > 0.92
    assert stability.mean_rank_change < 1.3


def test_the_pool_of_table_2s_rows():
    results = {
        str(at): {"all": TaskResult(accuracy=0.5, tokens=float(row["tokens"]))}
        for at, row in enumerate(rows(2))
    }
    assert make_pool(results).range_of("all") == (89.4, 6780.7)


def test_the_weighted_score_is_the_plain_one_for_beta_1():
    assert weighted_score(0.7892, 0.957, beta=1) == pytest.approx(overthinking_score(0.7892, 0.957))
