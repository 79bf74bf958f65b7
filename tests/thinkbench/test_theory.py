"""Definition 2, saturation, tokens per word and why tools fail, on made-up runs and values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.thinkbench import ThinkConfig, compare_runs
from evaluator.thinkbench import run as run_think
from evaluator.thinkbench.grading import Graded
from evaluator.thinkbench.pools import TaskResult
from evaluator.thinkbench.tables import comparison_tables
from evaluator.thinkbench.theory import overthinking_by_task, saturation_fit, tokens_per_word
from evaluator.thinkbench.tool_failures import tool_failure
from stp.asking import CallableResponder, Response, Settings

VALUES = st.dictionaries(
    st.sampled_from("abcd"),
    st.fixed_dictionaries(
        {task: st.tuples(st.integers(0, 3), st.integers(1, 4)) for task in ("sum", "mean")}
    ),
    min_size=1,
)


@given(VALUES)
def test_definition_2_is_what_it_says(values):
    results = {
        name: {t: TaskResult(accuracy=a / 3, tokens=float(n)) for t, (a, n) in tasks.items()}
        for name, tasks in values.items()
    }
    found = overthinking_by_task(results)
    for name, tasks in results.items():
        for task, own in tasks.items():
            concise = [
                other
                for other, theirs in results.items()
                if theirs[task].tokens < own.tokens and theirs[task].accuracy >= own.accuracy
            ]
            assert (task in found[name]) == bool(concise)
            if concise:
                best = min(results[other][task].tokens for other in concise)
                assert results[found[name][task]][task].tokens == best


@pytest.mark.parametrize(("limit", "scale"), [(0.9, 1000.0), (0.5, 300.0), (1.0, 5000.0)])
def test_a_saturation_is_found_again(limit, scale):
    budgets = np.array([128, 512, 1024, 2048, 4096, 8192])
    fit = saturation_fit(budgets, limit * (1 - np.exp(-budgets / scale)))
    assert fit.limit == pytest.approx(limit, abs=1e-4)
    assert fit.scale == pytest.approx(scale, rel=1e-3)
    assert fit.residual < 1e-5
    assert fit.fall == 0


@pytest.mark.parametrize("seed", range(5))
def test_no_other_curve_is_nearer(seed):
    rng = np.random.default_rng(seed)
    budgets = np.sort(rng.choice(np.arange(100, 9000), 6, replace=False)).astype(float)
    accuracy = rng.uniform(0, 1, 6)
    fit = saturation_fit(budgets, accuracy)
    for scale in np.geomspace(budgets[0] / 50, budgets[-1] * 50, 400):
        shape = 1 - np.exp(-budgets / scale)
        limit = np.clip(accuracy @ shape / (shape @ shape), 0, 1)
        distance = np.sqrt(np.mean((accuracy - limit * shape) ** 2))
        assert fit.residual <= distance + 1e-6


def test_what_does_not_grow_has_no_scale_and_a_fall_is_said():
    flat = saturation_fit([128, 1024, 8192], [0.9, 0.9, 0.9])
    assert (flat.limit, flat.scale) == (pytest.approx(0.9), 0.0)
    # Gemini-2.5-Pro in Table 9: best at its least budget, 2 points lower at its largest.
    falling = saturation_fit([128, 6554, 12979, 32256], [0.90, 0.82, 0.71, 0.88])
    assert falling.fall == pytest.approx(0.02)
    assert falling.residual > 0.05


@pytest.mark.parametrize(
    ("budgets", "accuracy"),
    [([1, 2], [0, 1]), ([1, 1, 1], [0, 0, 0]), ([0, 1, 2], [0, 0, 0]), ([1, 2, 3], [0, 0, 2])],
)
def test_what_cannot_be_fitted_is_refused(budgets, accuracy):
    with pytest.raises(ValueError, match="budgets"):
        saturation_fit(budgets, accuracy)


def graded(**changes):
    values = {
        "id": "q", "task": "sum", "category": "basic", "fold": 0, "size": 8, "answer": "1",
        "right": False, "followed": True, "reason": "", "tokens": 10, "estimated_by": "",
        "thinking_tokens": None, "answer_tokens": None, "words": 5, "characters": 20,
        "finish": "stop", "seconds": 0.0, "tool_calls": 1, "parted": False, "ran_on": None,
        "error": None, "pattern": None,
    }  # fmt: skip
    return Graded(**{**values, **changes})


def test_tokens_per_word_are_measured_where_they_were_counted():
    rows = [graded(words=w, tokens=2 * w) for w in (10, 20, 40)]
    found = tokens_per_word(
        [*rows, graded(words=9, tokens=900, estimated_by="words × 1.33"), graded(words=0)]
    )
    assert (found.mean_ratio, found.slope, found.responses) == (2.0, pytest.approx(2.0), 3)
    assert found.exponent == pytest.approx(1.0)
    uneven = tokens_per_word([graded(words=1, tokens=3), graded(words=100, tokens=100)])
    assert uneven.mean_ratio == 2.0
    assert uneven.slope == pytest.approx(10003 / 10001)
    assert tokens_per_word([graded(estimated_by="words × 1.33")]) is None
    assert tokens_per_word([graded(words=7, tokens=9)]).exponent is None


@pytest.mark.parametrize(
    ("written", "calls", "kind"),
    [
        ("calculator: 45 * 67 *\nError: this is not an arithmetic expression", 1, "syntax error"),
        ("python: print(\nSyntaxError: \'(\' was never closed", 1, "syntax error"),
        ("Action: calculator\nAction Input: hanoi(5)\nObservation: Error: no function hanoi of 1 "
         "numbers", 1, "wrong tool"),
        ("abacus: 3\nError: no tool abacus; there are calculator", 1, "wrong tool"),
        ("calculator: 45 * 67\n3015", 1, "incorrect logic"),
        ("calculator: 45 *\nError: this is not an arithmetic expression\ncalculator: 45 * 2\n90", 2,
         "incorrect logic"),
        ("python: x()\nError: the program ran for 5 s and was stopped", 1, "other"),
        (None, 0, "no call"),
    ],
)  # fmt: skip
def test_why_a_response_with_tools_is_wrong(written, calls, kind):
    response = Response(id="q", text="\\boxed{1}", tool_calls=calls, tool_text=written)
    assert tool_failure(graded(tool_calls=calls), response) == kind
    assert tool_failure(graded(right=True), response) is None


def test_the_tables_are_there_where_runs_allow_them(tmp_path):
    runs = []
    for budget in (64, 256, 1024):
        config = ThinkConfig(
            tasks=("sum",),
            samples=2,
            folds=1,
            sizes=(8,),
            settings=Settings(thinking_tokens=budget),
        )
        model = CallableResponder(
            lambda prompt, settings: {
                "text": "\\boxed{1}",
                "thinking_tokens": 5,
                "output_tokens": settings.thinking_tokens,
            },
            name="m",
        )  # fmt: skip
        runs.append(run_think(model, tmp_path / str(budget), config, name=f"m {budget}"))
    tables = {table.name: table for table in comparison_tables(compare_runs(runs, replicates=10))}
    assert {"overthinks", "saturation", "words"} <= set(tables)
    assert "tool-failures" not in tables
    assert tables["overthinks"].frame["tasks"].to_dict() == {"m 64": 0, "m 256": 1, "m 1024": 1}
    assert tables["saturation"].frame["budgets"].tolist() == [3]
