"""What runs differ in, the papers' tables and views of it, against their definitions by hand."""

import dataclasses
import re
import statistics

import pytest

from data.errors import MisuseError
from data.progress import Progress
from evaluator.runs.pairs import median_ratio, pair_responses
from evaluator.thinkbench import (
    StudyRun,
    ThinkConfig,
    compare_runs,
    run_study,
    write_comparison,
)
from evaluator.thinkbench import run as run_model
from evaluator.thinkbench.folds import fold_scores
from evaluator.thinkbench.insights import accuracies_beside, insights, score_contours
from evaluator.thinkbench.oscore import overthinking_score, token_efficiency
from evaluator.thinkbench.questions import plan_questions
from evaluator.thinkbench.study_tables import cases_table, models_table, paired, pairs_table
from evaluator.thinkbench.tables import comparison_tables, summary_table
from evaluator.thinkbench.variants import families, matched_pairs, studies, variant_of
from stp.asking import CallableResponder, Responder
from stp.cli.main import main
from tests.thinkbench.test_run import Solver

CONFIG = ThinkConfig(tasks=("sum", "mode", "find_maximum"), samples=3, folds=2, sizes=(8,))
IDS = [item.id for item in plan_questions(CONFIG)]


def made(folder, name, wrong, tokens, attributes=None, *, model=None, **settings):
    """A run of a model that is wrong on its first questions, with so many tokens and more."""
    config = dataclasses.replace(CONFIG, settings=dataclasses.replace(CONFIG.settings, **settings))
    solver = Solver(config, wrong=IDS[:wrong])

    def answer(prompt):
        found = solver(prompt)
        item = solver.references[prompt]
        return found | {"output_tokens": tokens + IDS.index(item.id)}

    responder = CallableResponder(answer, name=model or name)
    return run_model(responder, folder / name, config, name=name, attributes=attributes or {})


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    return [
        made(folder, "Small-1B", 9, 30),
        made(folder, "Small-7B", 4, 40),
        made(folder, "Small-7B-GPTQ-Int4", 6, 44, model="owner/Small-7B-GPTQ-Int4"),
        made(folder, "Small-7B capped", 8, 20, model="Small-7B", max_tokens=16),
        made(folder, "Plain", 3, 50, {"parameters": 14e9, "training": "instruct"}),
        made(folder, "Thinker", 5, 700, {"baseline": "Plain", "training": "CoT"}),
        made(folder, "Low", 3, 60, model="Dial", reasoning_effort="low"),
        made(folder, "High", 2, 300, model="Dial", reasoning_effort="high"),
    ]


class _OneCall(Responder):
    """Answers through another, and remembers how many groups each call had."""

    def __init__(self, inner):
        self.inner, self.calls = inner, []

    def respond(self, *groups):
        self.calls.append([len(group.requests) for group in groups])
        self.inner.respond(*groups)

    def describe(self):
        return self.inner.describe()


def test_the_runs_of_a_study_are_one_stream_and_each_is_as_alone(tmp_path):
    configs = {style: dataclasses.replace(CONFIG, style=style) for style in ("standard", "concise")}
    solvers = {style: Solver(config, wrong=IDS[:2]) for style, config in configs.items()}

    def answer(prompt):
        solver = next(each for each in solvers.values() if prompt in each.references)
        return solver(prompt) | {"output_tokens": len(prompt)}

    asking = _OneCall(CallableResponder(answer, name="m"))

    def figures(graded):
        return graded.id, graded.right, graded.tokens

    def study():
        said = {style: [] for style in configs}
        runs = [
            StudyRun(
                out=tmp_path / style,
                config=config,
                progress=Progress(lambda _, *counts, style=style: said[style].append(counts)),
            )
            for style, config in configs.items()
        ]
        return run_study(asking, runs), said

    runs, said = study()
    assert asking.calls == [[len(IDS), len(IDS)]]
    assert all(counts[-1] == (len(IDS), len(IDS)) for counts in said.values())
    for run, (style, config) in zip(runs, configs.items(), strict=True):
        alone = run_model(CallableResponder(answer, name="m"), tmp_path / f"{style}-alone", config)
        assert run.record.asked == alone.record.asked
        assert [figures(one) for one in run.graded] == [figures(one) for one in alone.graded]

    # It was stopped, and goes on: only what is missing is asked.
    path = tmp_path / "concise" / "responses.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-5]))
    asking.calls.clear()
    again, _ = study()
    assert asking.calls == [[5]]
    assert [len(run.graded) for run in again] == [len(IDS), len(IDS)]


@pytest.fixture(scope="module")
def comparison(runs):
    return compare_runs(runs, replicates=20)


@pytest.mark.parametrize(
    ("name", "family", "billions", "precision", "plain"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-Instruct", 7, "unquantised", "Qwen2.5-7B-Instruct"),
        (
            "Qwen2.5-0.5B-Instruct-GPTQ-Int8",
            "Qwen2.5-Instruct",
            0.5,
            "8-bit",
            "Qwen2.5-0.5B-Instruct",
        ),
        ("Llama-3.1-8B-Instruct-AWQ", "Llama-3.1-Instruct", 8, "4-bit", "Llama-3.1-8B-Instruct"),
        ("/models/SmolLM2-135M/", "SmolLM2", 0.135, "unquantised", "SmolLM2-135M"),
        ("Qwen3-235B-A22B-FP8", "Qwen3-A22B", 235, "8-bit", "Qwen3-235B-A22B"),
        ("gpt-4.1-mini", "gpt-4.1-mini", None, "unquantised", "gpt-4.1-mini"),
        ("Model-3B-4bit", "Model", 3, "4-bit", "Model-3B"),
    ],
)
def test_a_name_says_size_precision_and_family(runs, name, family, billions, precision, plain):
    record = dataclasses.replace(runs[0].record, models={"model": {"model": name}}, attributes={})
    found = variant_of(dataclasses.replace(runs[0], record=record))
    assert (found.family, found.billions, found.precision) == (family, billions, precision)
    assert found.plain == plain


def test_attributes_come_before_names(runs):
    record = dataclasses.replace(
        runs[0].record,
        attributes={"parameters": 3e9, "family": "F", "precision": "2-bit", "training": "none"},
    )
    found = variant_of(dataclasses.replace(runs[0], record=record))
    assert (found.family, found.billions, found.precision) == ("F", 3, "2-bit")


def test_studies_are_runs_that_differ_in_one_thing(runs):
    found = {study.kind: study for study in studies(runs)}
    assert set(found) == {"budget", "cap", "precision"}
    labels = {
        kind: {
            group: [(setting.label, run.name) for setting, run in pairs]
            for group, pairs in study.groups.items()
        }
        for kind, study in found.items()
    }
    assert labels["cap"] == {"Small-7B": [("no cap", "Small-7B"), ("16 tokens", "Small-7B capped")]}
    assert labels["precision"] == {
        "Small-7B": [("unquantised", "Small-7B"), ("4-bit", "Small-7B-GPTQ-Int4")]
    }
    assert labels["budget"] == {"Dial": [("low effort", "Low"), ("high effort", "High")]}
    assert {name: [size for size, _ in sizes] for name, sizes in families(runs).items()} == {
        "Small": [1, 7]
    }
    assert families(runs)["Small"][1][1].name == "Small-7B"
    assert [(base.name, [run.name for run in others]) for base, others in matched_pairs(runs)] == [
        ("Plain", ["Thinker"])
    ]


def test_algorithm_6_by_hand(comparison):
    run = comparison.runs[0]
    low, high = comparison.pool.ranges["sum"]
    scores = []
    for fold in (0, 1):
        by_task = []
        for task in CONFIG.tasks:
            rows = [row for row in run.graded if row.task == task and row.fold == fold]
            tokens = sum(row.tokens for row in rows) / len(rows)
            accuracy = sum(row.right for row in rows) / len(rows)
            by_task.append(overthinking_score(accuracy, token_efficiency(tokens, low, high)))
        scores.append(sum(by_task) / len(by_task))
    found = fold_scores(run, comparison.pool)
    assert found.mean == pytest.approx(statistics.mean(scores))
    assert found.variance == pytest.approx(statistics.variance(scores))
    single = dataclasses.replace(run, graded=tuple(r for r in run.graded if r.fold == 0))
    assert fold_scores(single, comparison.pool) is None


def test_tables_hold_what_the_papers_print(comparison):
    tables = {table.name: table for table in comparison_tables(comparison)}
    models = tables["models"].frame
    row = models.loc[("Plain", "Plain")]
    run = next(run for run in comparison.runs if run.name == "Plain")
    assert row["billions"] == 14
    assert row["accuracy"] == pytest.approx(100 * run.measures.overall.accuracy.mean)
    assert row["± boxed"] == pytest.approx(100 * run.measures.overall.following.std)
    assert {"words", "characters", "variance", "fold mean"} <= set(models.columns)
    categories = tables["categories"].frame
    scores = [comparison.scores[run.name].oscore["sum"] for run in comparison.runs]
    mean = categories.loc[("basic", "mean of models"), "O-Score"]
    assert mean == pytest.approx(sum(scores) / len(scores))
    pairs = tables["pairs"].frame.loc[("Plain", "Thinker")]
    tokens = [
        next(run for run in comparison.runs if run.name == name).measures.overall.tokens.mean
        for name in ("Thinker", "Plain")
    ]
    assert pairs["times the tokens"] == pytest.approx(tokens[0] / tokens[1])
    ratios = sorted((700 + at) / (50 + at) for at in range(len(IDS)))
    assert pairs["median of ratios"] == pytest.approx(statistics.median(ratios))
    cases = tables["cases"].frame
    assert cases["ratio"].tolist()[1::2] == pytest.approx(ratios[::-1][:6])
    assert tables["cases"].to_latex().count("Thinker") == 6


def test_no_note_speaks_of_what_a_table_has_not(runs, comparison):
    for table in [*comparison_tables(comparison), *map(summary_table, runs)]:
        there = {label for column in table.labels for label in column}
        there |= {str(name) for name in table.frame.index.names}
        there |= {str(value) for value in table.frame.index.to_flat_index()}
        if not any(label.startswith("±") for label in there):
            assert "±" not in table.note, table.name
        for terms in re.findall(r"(?:^|[;.] )([a-z±][\w ,-]*?): ", table.note):
            for term in terms.split(", "):
                assert any(term in label or label in term for label in there), (table.name, term)


@pytest.mark.slow
def test_views_are_those_that_runs_give(runs, comparison, tmp_path):
    stems = [view.stem for view in insights(comparison)]
    assert stems == [
        *("accuracy-tokens", "accuracy-efficiency", "oscore-accuracy", "following-accuracy"),
        *("accuracy-size", "scaling", "study-budget", "study-cap", "study-precision"),
    ]
    alone = compare_runs(runs[4:5], replicates=0)
    assert [view.stem for view in insights(alone)] == stems[:4]
    beside = {"Plain": {"gsm8k": 0.95}, "nobody": {"gsm8k": 0.5}}
    shown = insights(comparison, beside)[-1]
    assert shown.groups == ["Plain"]
    assert shown.series[0] == ("gsm8k", [0.95])
    page = write_comparison(comparison, comparison_tables(comparison), tmp_path, beside=beside)
    files = {path.name for path in (tmp_path / "figures").iterdir()}
    assert files == {f"{stem}.{form}" for stem in [*stems, "benchmarks"] for form in ("png", "pdf")}
    assert (tmp_path / "models.tex").read_text().startswith("\\begin{table}")
    text = page.read_text()
    assert all(view.title in text for view in insights(comparison, beside))


def test_contours_are_of_equal_score(runs, comparison):
    low, high = comparison.pool.ranges["sum"]
    traces = score_contours(comparison, 30, 700)
    assert traces
    for trace in traces:
        level = float(trace.name.removeprefix("O = "))
        for tokens, accuracy in zip(trace.x, trace.y, strict=True):
            score = overthinking_score(accuracy, token_efficiency(tokens, low, high))
            assert score == pytest.approx(level)
    per_task = compare_runs(runs, kind="per-task", replicates=0)
    assert score_contours(per_task, 30, 700) == []


@dataclasses.dataclass
class Counted:
    tokens: int | None


def test_pairs_are_sorted_by_ratio_with_unknown_ones_last():
    first = {
        key: Counted(tokens) for key, tokens in zip("abcde", (10, 0, 10, None, 5), strict=True)
    }
    second = {key: Counted(tokens) for key, tokens in zip("abcd", (20, 9, 90, 4), strict=True)}
    pairs = pair_responses(first, second)
    assert [(pair.key, pair.ratio) for pair in pairs] == [
        *(("c", 9.0), ("a", 2.0), ("b", None), ("d", None)),
    ]
    assert median_ratio(pairs) == 5.5
    assert median_ratio(pairs[2:]) is None


def test_runs_of_other_questions_have_no_pairs(runs, tmp_path):
    other = dataclasses.replace(CONFIG, seed=7)
    odd = run_model(CallableResponder(Solver(other), name="odd"), tmp_path / "odd", other)
    assert paired(runs[0], odd) == []
    assert pairs_table(compare_runs(runs[:2], replicates=0)) is None
    assert cases_table(compare_runs(runs[:2], replicates=0)) is None
    assert len(paired(runs[0], runs[1])) == len(IDS)
    assert models_table(compare_runs(runs[:1], replicates=0)).frame.shape[0] == 1


def shown(*arguments, code=0):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert (ended.value.code or 0) == code


def test_two_models_stand_side_by_side_in_the_terminal(runs, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "110")
    plain, thinker = (
        next(run for run in runs if run.name == name) for name in ("Plain", "Thinker")
    )
    shown("think", "show", plain.folder, "--against", thinker.folder, "--limit", 2)
    out = capsys.readouterr().out
    assert "14.00" in out.splitlines()[1]
    assert f"2 of {len(IDS)} questions" in out
    assert "ratio: tokens of Thinker over those of Plain" in out
    shown("think", "show", plain.folder, "--against", thinker.folder, "--cases", 1)
    out = capsys.readouterr().out
    assert re.search(r"Plain +Thinker", out)
    assert re.search(r"wrong, 50 tokens +wrong, 700 tokens", out)
    assert out.count("\\boxed{1234567}") == 2
    other = dataclasses.replace(CONFIG, seed=7)
    odd = run_model(CallableResponder(Solver(other), name="odd"), tmp_path / "odd", other)
    shown("think", "show", plain.folder, "--against", odd.folder, code=2)
    assert "same seed and sizes" in capsys.readouterr().err


def test_other_benchmarks_beside_need_a_graded_run(tmp_path):
    with pytest.raises(MisuseError, match="no run here"):
        accuracies_beside([str(tmp_path)])
