"""Tables and findings: numbers against direct computation, texts against hostile labels."""

import csv
import io
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from evaluator.analysis.bootstrap import bootstrap_curves
from evaluator.analysis.findings import describe, pair_differences, rank_correlation
from evaluator.analysis.frontiers import average_frontiers, cell_frontiers, savings
from evaluator.analysis.groups import common_questions, completeness, known_groups, pool_benchmarks
from evaluator.analysis.headline import make_headline
from evaluator.analysis.interval_tables import difference_table, frontier_table, interval_table
from evaluator.analysis.overthinking import per_trajectory, summarise
from evaluator.analysis.step_changes import changes_by_progress
from evaluator.analysis.tables import (
    baseline_table,
    overthinking_table,
    probed_accuracy_table,
    savings_table,
    zero_step_table,
)
from evaluator.present.table import Table
from evaluator.present.terminal import rich_table
from tests.evaluator.synthetic import make_curves


@pytest.fixture(scope="module")
def curves():
    return make_curves(models=3, benchmarks=2, questions=5, trajectories=4, seed=11)


@pytest.fixture(scope="module")
def summary(curves):
    return summarise(per_trajectory(curves))


def test_overthinking_table_holds_cells_and_both_averages(curves, summary):
    frame = overthinking_table(curves, summary).frame
    assert frame.index.tolist() == ["model0", "model1", "model2", "Average"]
    assert [g for g, _ in frame.columns] == ["bench0"] * 2 + ["bench1"] * 2 + ["Average"] * 2
    cell = summary.cells.loc[(1, 0)]
    assert frame.loc["model1", ("bench0", "OR")] == 100 * cell["overthinking_ratio"]
    models = [frame.loc[f"model{m}", ("Average", "AD")] for m in range(3)]
    assert frame.loc["Average", ("Average", "AD")] == pytest.approx(np.mean(models))
    benches = [frame.loc["Average", (b, "AD")] for b in ("bench0", "bench1")]
    assert frame.loc["Average", ("Average", "AD")] == pytest.approx(np.mean(benches))


def test_missing_cells_are_dashes_and_are_named(curves):
    part = curves.select((curves.model != 2) | (curves.benchmark == 0))
    table = overthinking_table(part, summarise(per_trajectory(part)))
    assert np.isnan(table.frame.loc["model2", ("bench1", "OR")])
    assert "| model2 |" in table.to_markdown()
    assert "\u2013" in table.to_markdown()
    assert "model2 has nothing on bench1." in table.note


def test_completeness_names_lacking_questions_and_unequal_counts(curves):
    assert completeness(curves).missing == ()
    keep = np.ones(curves.trajectories, bool)
    keep[(curves.model == 1) & (curves.question == 3)] = False
    keep[0] = False
    notes = completeness(curves.select(keep)).missing
    assert "model1 lacks 1 of 5 questions of bench0." in notes
    assert "Trajectories per model and question range from 3 to 4." in notes


def test_a_single_cell_has_no_averages():
    curves = make_curves(seed=1)
    frame = probed_accuracy_table(curves, summarise(per_trajectory(curves))).frame
    assert frame.index.tolist() == ["model0"]
    assert {group for group, _ in frame.columns} == {"bench0"}


def test_baselines_are_the_original_answers(curves, summary):
    frame = baseline_table(curves, summary).frame
    inside = (curves.model == 0) & (curves.benchmark == 1)
    assert frame.loc["model0", ("bench1", "Acc.")] == pytest.approx(
        100 * curves.original_correct[inside].mean()
    )
    assert frame.loc["model0", ("bench1", "Tokens")] == pytest.approx(
        curves.full_tokens_s[inside].mean()
    )


def test_intervals_are_the_replicates_percentiles(curves):
    bootstrap = bootstrap_curves(curves, replicates=200, workers=1)
    table = interval_table(curves, bootstrap, "overthinking_ratio")
    place = bootstrap.statistics.index("overthinking_ratio")
    low, high = np.quantile(bootstrap.replicates[:, 1, 0, place], [0.025, 0.975])
    assert table.frame.loc["model1", ("bench0", "low")] == pytest.approx(100 * low)
    assert table.frame.loc["model1", ("bench0", "high")] == pytest.approx(100 * high)
    at = summarise(curves).cells.loc[(1, 0), "overthinking_ratio"]
    assert table.frame.loc["model1", ("bench0", "estimate")] == pytest.approx(100 * at)
    assert (
        table.frame.loc["Average", ("Average", "low")]
        < table.frame.loc["Average", ("Average", "high")]
    )
    assert "200 paired bootstrap replicates" in table.note
    assert "20260721" in table.note


def test_differences_are_of_paired_replicates(curves):
    bootstrap = bootstrap_curves(curves, replicates=200, workers=1)
    table = difference_table(curves, bootstrap, "full_tokens")
    pairs = [("model0", "model1"), ("model0", "model2"), ("model1", "model2")]
    benchmarks = ("bench0", "bench1", "Average")
    assert table.frame.index.tolist() == [(*pair, b) for pair in pairs for b in benchmarks]
    place = bootstrap.statistics.index("full_tokens")
    apart = bootstrap.replicates[:, 0, 1, place] - bootstrap.replicates[:, 2, 1, place]
    row = table.frame.loc[("model0", "model2", "bench1")]
    estimate = bootstrap.estimate[0, 1, place] - bootstrap.estimate[2, 1, place]
    assert row.tolist() == pytest.approx([estimate, *np.quantile(apart, [0.025, 0.975])])
    assert "+" in table.to_markdown() or "-" in table.to_markdown()


def test_the_frontier_table_is_on_the_papers_grid(curves):
    frontiers = average_frontiers(cell_frontiers(curves))
    frame = frontier_table(curves, frontiers).frame
    assert frame.index.tolist()[::500] == ["0.0%", "50.0%", "100.0%"]
    assert len(frame) == 1001
    assert (frame["Dynamic routing"] <= frame["Fixed budgets"] + 1e-9).all()
    assert (frame["Fixed budgets"] <= frame["Dynamic early exit"] + 1e-9).all()


def test_common_questions_are_those_of_all_models_of_a_benchmark(curves):
    keep = ~((curves.model == 1) & (curves.question == 3))
    keep &= ~((curves.model == 2) & (curves.benchmark == 1))
    shared = common_questions(curves.select(keep))
    first, second = (shared.benchmark == b for b in (0, 1))
    assert set(shared.question[first].tolist()) == {0, 1, 2, 4}
    assert set(shared.question[second].tolist()) == {5, 6, 7, 8, 9}
    assert set(shared.model[second].tolist()) == {0, 1}
    assert completeness(shared).missing == ("model2 has nothing on bench1.",)


def test_zero_step_beside_direct_answers(curves, summary):
    alone = zero_step_table(curves, summary).frame
    assert {label for _, label in alone.columns} == {"Zero-step"}
    direct = {(f"model{m}", f"bench{b}"): 0.1 * (m + b) for m in range(3) for b in range(2)}
    frame = zero_step_table(curves, summary, direct).frame
    assert frame.loc["model2", ("bench1", "Direct")] == pytest.approx(30)
    assert frame.loc["Average", ("Average", "Direct")] == pytest.approx(15)
    inside = (curves.model == 2) & (curves.benchmark == 1)
    assert frame.loc["model2", ("bench1", "Zero-step")] == pytest.approx(
        100 * curves.zero_correct_s[inside].mean() / curves.probes
    )
    assert "belong to no cell" not in zero_step_table(curves, summary, direct).note
    del direct["model1", "bench1"]
    partly = zero_step_table(curves, summary, direct)
    assert "No direct accuracy is known of model1 on bench1." in partly.note
    for place in (("model1", "bench1"), ("model1", "Average"), ("Average", "Average")):
        assert np.isnan(partly.frame.loc[place[0], (place[1], "Direct")])
        zero = partly.frame.loc[place[0], (place[1], "Zero-step")]
        assert zero == pytest.approx(alone.loc[place[0], (place[1], "Zero-step")])
    note = zero_step_table(curves, summary, {**direct, ("modell2", "bench1"): 0.5}).note
    assert "Direct accuracies that belong to no cell here: modell2 on bench1." in note


def test_savings_table_keeps_the_cells_numbers(curves):
    cells = cell_frontiers(curves)
    frame = savings_table(curves, cells).frame
    rows = savings(cells)
    row = rows[(rows["model"] == 2) & (rows["benchmark"] == 0) & (rows["strategy"] == "early_exit")]
    got = frame.loc[("model2", "bench0"), ("Dynamic early exit", "Tokens")]
    assert got == pytest.approx(100 * row["equal_tokens_fraction"].item())
    assert frame.index.tolist()[-1] == ("Averaged frontiers", "")


@pytest.mark.parametrize("seed", range(5))
def test_pair_differences_equal_all_pairs(seed):
    curves = make_curves(models=2, benchmarks=2, questions=3, trajectories=5, seed=seed)
    frame = per_trajectory(curves)
    got = pair_differences(frame)
    for column in ("overthinking_ratio", "accuracy_degradation"):
        models = []
        for m in range(2):
            benchmarks = []
            for b in range(2):
                cell = frame[(frame["model"] == m) & (frame["benchmark"] == b)]
                questions = [
                    np.mean([abs(x - y) for x, y in combinations(part[column], 2)])
                    for _, part in cell.groupby("question")
                ]
                benchmarks.append(np.mean(questions))
                assert got.loc[(m, b), column] == pytest.approx(benchmarks[-1])
            models.append(np.mean(benchmarks))
        assert got.loc[(-1, -1), column] == pytest.approx(np.mean(models))


def test_a_lone_trajectory_has_no_pair():
    curves = make_curves(questions=3, trajectories=3, seed=2)
    rows = np.flatnonzero((curves.question != 1) | (curves.sample == 0))
    frame = per_trajectory(curves.select(rows))
    both = frame[frame["question"] != 1]
    pd.testing.assert_frame_equal(pair_differences(frame), pair_differences(both))
    single = frame[frame["sample"] == 0]
    assert pair_differences(single).isna().all(axis=None)


def test_rank_correlation_is_pearsons_of_ranks(summary):
    cells = summary.cells
    ranks = [rankdata(cells[c]) for c in ("overthinking_ratio", "accuracy_degradation")]
    assert rank_correlation(summary) == pytest.approx(np.corrcoef(ranks)[0, 1])
    lone = make_curves()
    assert np.isnan(rank_correlation(summarise(per_trajectory(lone))))


def test_findings_say_the_numbers(curves, summary):
    headline = make_headline(curves, summary, cell_frontiers(curves))
    found = describe(curves, summary, headline, changes_by_progress(curves, 20))
    text = found.to_markdown()
    assert text.count("\n- ") == len(found.sentences) - 1
    assert f"{100 * summary.models['overthinking_ratio'].max():.1f}%" in text
    assert f"correlation of OR and AD is {rank_correlation(summary):.3f}" in text
    spread = pair_differences(summary.trajectories).loc[(-1, -1), "overthinking_ratio"]
    assert f"differ by {100 * spread:.1f} points of OR" in text
    lone = make_curves(questions=1, trajectories=1, seed=4)
    short = describe(
        lone,
        summarise(per_trajectory(lone)),
        make_headline(lone, summarise(per_trajectory(lone)), cell_frontiers(lone)),
        changes_by_progress(lone, 10_000),
    )
    assert "nan" not in short.to_markdown()


def test_pooling_keeps_trajectories_and_counts_questions_once(curves):
    pooled = pool_benchmarks(curves, {"bench0": "both", "bench1": "both"})
    assert pooled.benchmark_names == ("both",)
    assert set(pooled.benchmark.tolist()) == {0}
    np.testing.assert_array_equal(pooled.tokens, curves.tokens)
    summary = summarise(per_trajectory(pooled))
    assert summary.cells["questions"].tolist() == [10, 10, 10]
    assert pool_benchmarks(curves, {}).benchmark_names == curves.benchmark_names
    years = replace(curves, benchmark_names=("aime2024", "aime2025"))
    assert len(set(known_groups(years.benchmark_names).values())) == 1
    assert pool_benchmarks(years).benchmark_names == tuple(
        set(known_groups(years.benchmark_names).values())
    )


HOSTILE = 'a|b & 50% $x_1$ {z} ~^ \\ "q", \n line'


def test_texts_survive_hostile_labels():
    frame = pd.DataFrame(
        [[1.5, np.nan], [1234.5678, 2.0]],
        index=pd.Index([HOSTILE, "plain"], name="Model"),
        columns=pd.MultiIndex.from_tuples([(HOSTILE, "OR"), (HOSTILE, "AD")]),
    )
    table = Table(name="t", title=HOSTILE, frame=frame, formats={"OR": ",.1f"}, note=HOSTILE)
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert rows[1] == [HOSTILE, "1.5", ""]
    assert rows[2] == ["plain", "1234.5678", "2.0"]
    lines = [line for line in table.to_markdown().splitlines() if line.startswith("| ")]
    assert len(lines) == 4
    assert all(line.replace("\\|", "").count("|") == 4 for line in lines)
    latex = table.to_latex()
    body = latex[latex.index(r"\midrule") : latex.index(r"\bottomrule")]
    assert r"a|b \& 50\% \$x\_1\$ \{z\} \textasciitilde{}\textasciicircum{} " in body
    assert "1,234.6 & 2.00" in body
    assert r"& -- \\" in body.replace(" --", " --")
    assert r"\cmidrule(lr){2-3}" in latex
    assert latex.count("{") == latex.count("}")


@pytest.mark.parametrize("width", [50, 80, 100, 200])
@pytest.mark.parametrize("name", ["m", "Qwen3-30B-A3B-Thinking-2507", "x" * 60])
def test_no_number_is_cut_on_a_terminal(width, name):
    from rich.console import Console

    values = np.random.default_rng(0).random((3, 10)) * 1e5
    groups = ["AIME", "MATH-500", "GPQA-Diamond", "LiveCodeBench", "Average"]
    frame = pd.DataFrame(
        values,
        index=pd.Index([f"{name}{i}" for i in range(3)], name="Model"),
        columns=pd.MultiIndex.from_product([groups, ["low", "high"]]),
    )
    console = Console(width=width, file=io.StringIO())
    console.print(rich_table(Table(name="t", title="T", frame=frame), width))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for value in values.ravel():
        assert words.count(f"{value:.2f}") == 1
    parts = sum("low" in line for line in lines)
    assert (parts == 1) == (width == 200)


def test_a_long_table_is_a_longtable_in_latex():
    short, long = (
        Table(name="t", title="T", frame=pd.DataFrame({"x": range(n)})).to_latex() for n in (50, 51)
    )
    assert r"\begin{longtable}" not in short
    assert long.startswith(r"\begin{longtable}")
    assert long.index(r"\endhead") < long.index(r"50 & 50 \\")


def test_a_long_table_is_thinned_on_a_terminal_only():
    from rich.console import Console

    table = Table(name="t", title="T", frame=pd.DataFrame({"x": range(1000, 1101)}))
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(rich_table(table))
    text = console.export_text()
    assert "Every 5th row" in text
    assert "1,005" in text
    assert "1,006" not in text
    assert len(table.to_csv().splitlines()) == 102


def test_terminal_table_is_printed_without_markup():
    from rich.console import Console

    frame = pd.DataFrame({"[red]x": [1]}, index=pd.Index(["[bold]m"], name="Model"))
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(rich_table(Table(name="t", title="[i]T", frame=frame)))
    text = console.export_text()
    for label in ("[red]x", "[bold]m", "[i]T"):
        assert label in text
