"""The tables of papers 000 and 003: models, categories, studies, matched pairs, case studies.

A column that no run has anything for is left out, and no note speaks of it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from evaluator.present.names import visible
from evaluator.present.table import Table
from evaluator.runs.pairs import Pair, median_ratio, pair_responses
from evaluator.thinkbench.comparison import Comparison
from evaluator.thinkbench.folds import fold_scores
from evaluator.thinkbench.grading import Graded
from evaluator.thinkbench.measures import Estimate
from evaluator.thinkbench.stored import ThinkRun
from evaluator.thinkbench.variants import Study, matched_pairs, studies, variant_of

CASES: Final = 6
"""Questions of a matched pair in the table of case studies (paper 000, Table 8)."""
_FORMATS: Final = {
    "billions": "g",
    **dict.fromkeys(("accuracy", "± accuracy", "boxed", "± boxed"), ".2f"),
    **dict.fromkeys(("O-Score", "fold mean"), ".3f"),
    "variance": ".6f",
    **dict.fromkeys(("tokens", "± tokens", "words", "± words"), ",.1f"),
    **dict.fromkeys(("characters", "± characters"), ",.1f"),
    "change": "+.2f",
    **dict.fromkeys(("times the tokens", "median of ratios", "ratio"), ".1f"),
}
_MEANINGS: Final = {
    "billions": "parameters in billions, given or from the name",
    "accuracy": "right among all responses, in %",
    "boxed": "answers in a box as asked (instruction following), in %",
    "fold mean": "mean over folds of the O-Score of each",
    "variance": "of the folds' O-Scores (k - 1)",
    "change": "of the accuracy, in points, from the first row of its group",
    "times the tokens": "mean tokens over those of the first row of its group",
    "median of ratios": "tokens over those of the baseline, question by question",
}


def _name(text: str) -> str:
    return visible(text, limit=60)


def _table(
    name: str,
    title: str,
    rows: Sequence[Mapping[str, Any]],
    index: Sequence[tuple[str, ...]],
    names: Sequence[str],
    *,
    before: str = "",
    after: str = "",
    grouped: bool = False,
    whole: bool = False,
) -> Table:
    """Return a table of the columns that any row has, and a note on these alone."""
    frame = pd.DataFrame(rows, dtype=object).dropna(axis="columns", how="all")
    frame.index = (
        pd.MultiIndex.from_tuples(list(index), names=list(names))
        if len(names) > 1
        else pd.Index([each[0] for each in index], name=names[0])
    )
    meanings = [f"{key}: {text}" for key, text in _MEANINGS.items() if key in frame]
    if any(str(column).startswith("±") for column in frame):
        meanings.append("±: standard deviation over folds")
    note = " ".join(
        part for part in (before, f"{'; '.join(meanings)}." * bool(meanings), after) if part
    )
    formats = {key: spec for key, spec in _FORMATS.items() if key in frame}
    if whole:
        formats["tokens"] = ","
    return Table(name=name, title=title, frame=frame, formats=formats, note=note, grouped=grouped)


def _spread(value: Estimate, times: float = 1.0) -> float | None:
    return None if value.std is None else times * value.std


def _rates(run: ThinkRun, comparison: Comparison) -> dict[str, Any]:
    overall = run.measures.overall
    return {
        "accuracy": 100 * overall.accuracy.mean,
        "± accuracy": _spread(overall.accuracy, 100),
        "boxed": 100 * overall.following.mean,
        "± boxed": _spread(overall.following, 100),
        "O-Score": comparison.scores[run.name].mean_oscore,
    }


def models_table(comparison: Comparison) -> Table:
    """Return all runs by family (paper 000, Table 2; paper 003, Table 3), with Algorithm 6."""
    rows, index = [], []
    variants = {run.name: variant_of(run) for run in comparison.runs}
    order = sorted(
        comparison.runs,
        key=lambda run: (variants[run.name].family, variants[run.name].billions or 0.0),
    )
    for run in order:
        overall, folds = run.measures.overall, fold_scores(run, comparison.pool)
        rows.append(
            {
                "billions": variants[run.name].billions,
                **_rates(run, comparison),
                "fold mean": folds.mean if folds else None,
                "variance": folds.variance if folds else None,
                "tokens": overall.tokens.mean,
                "words": overall.words.mean,
                "characters": overall.characters.mean,
            }
        )
        index.append((_name(variants[run.name].family), _name(run.name)))
    return _table(
        "models",
        "Models by family",
        rows,
        index,
        ("family", "model"),
        before=f"{comparison.pool.describe()}.",
        grouped=True,
    )


def categories_table(comparison: Comparison) -> Table:
    """Return accuracy, tokens and O-Score by category (paper 000, Table 6), models below means."""
    rows, index = [], []
    for category in comparison.runs[0].measures.categories:
        own = []
        for run in comparison.runs:
            group = run.measures.categories[category]
            scores = comparison.scores[run.name].oscore
            own.append(
                {
                    "accuracy": 100 * group.accuracy.mean,
                    "tokens": group.tokens.mean,
                    "O-Score": sum(scores[task] for task in group.tasks) / len(group.tasks),
                }
            )
        mean = {key: sum(row[key] for row in own) / len(own) for key in own[0]}
        rows += [mean, *own] if len(own) > 1 else own
        names = ["mean of models"] * (len(own) > 1) + [_name(run.name) for run in comparison.runs]
        index += [(category, name) for name in names]
    return _table(
        "categories",
        "By category of task",
        rows,
        index,
        ("category", "model"),
        before=f"{comparison.pool.describe()}.",
        after="O-Score: mean over the tasks of the category; models count the same.",
        grouped=True,
    )


def study_table(study: Study, comparison: Comparison) -> Table:
    """Return runs that differ in one thing (paper 000, Tables 9, 10, 11, 14, 15)."""
    rows, index = [], []
    for group, pairs in study.groups.items():
        first = pairs[0][1].measures.overall
        for setting, run in pairs:
            overall = run.measures.overall
            rows.append(
                {
                    "billions": variant_of(run).billions,
                    **_rates(run, comparison),
                    "tokens": overall.tokens.mean,
                    "± tokens": _spread(overall.tokens),
                    "words": overall.words.mean,
                    "± words": _spread(overall.words),
                    "characters": overall.characters.mean,
                    "± characters": _spread(overall.characters),
                    "change": 100 * (overall.accuracy.mean - first.accuracy.mean),
                    "times the tokens": _times(overall.tokens.mean, first.tokens.mean),
                }
            )
            index.append((_name(group), setting.label))
    return _table(
        f"study-{study.kind}",
        f"Runs that differ in nothing but the {study.title}",
        rows,
        index,
        ("model", study.title),
        before=f"{comparison.pool.describe()}.",
        grouped=True,
    )


def _times(tokens: float, of: float) -> float | None:
    return tokens / of if of else None


def pairs_table(comparison: Comparison) -> Table | None:
    """Return matched pairs with their ratio of tokens (paper 000, Table 13); None without one."""
    rows, index = [], []
    for baseline, others in matched_pairs(comparison.runs):
        first = baseline.measures.overall
        for run in (baseline, *others):
            overall = run.measures.overall
            pairs = paired(baseline, run) if run is not baseline else []
            rows.append(
                {
                    "training": _name(variant_of(run).training) or None,
                    "accuracy": 100 * overall.accuracy.mean,
                    "± accuracy": _spread(overall.accuracy, 100),
                    "O-Score": comparison.scores[run.name].mean_oscore,
                    "tokens": overall.tokens.mean,
                    "change": 100 * (overall.accuracy.mean - first.accuracy.mean),
                    "times the tokens": _times(overall.tokens.mean, first.tokens.mean),
                    "median of ratios": median_ratio(pairs),
                }
            )
            index.append((_name(baseline.name), _name(run.name)))
    if not rows:
        return None
    return _table(
        "pairs",
        "Matched pairs",
        rows,
        index,
        ("baseline", "model"),
        before=f"{comparison.pool.describe()}.",
        grouped=True,
    )


def paired(first: ThinkRun, second: ThinkRun) -> list[Pair[Graded]]:
    """Return the graded responses of two runs to the same questions, by falling ratio of tokens.

    Runs whose questions are not the same have none in common.
    """
    if first.config.questions_hash() != second.config.questions_hash():
        return []
    return pair_responses(
        {row.id: row for row in first.graded}, {row.id: row for row in second.graded}
    )


def cases_table(comparison: Comparison) -> Table | None:
    """Return the questions of matched pairs with the largest ratio of tokens (Tables 3 and 8)."""
    rows, index = [], []
    for baseline, others in matched_pairs(comparison.runs):
        for run in others:
            for pair in paired(baseline, run)[:CASES]:
                for name, row in ((baseline.name, pair.first), (run.name, pair.second)):
                    rows.append(
                        {
                            "verdict": "right" if row.right else "wrong",
                            "tokens": row.tokens,
                            "ratio": 1.0 if row is pair.first else pair.ratio,
                            "pattern": row.pattern,
                        }
                    )
                    index.append((pair.key, _name(name)))
    if not rows:
        return None
    patterns = " Patterns are found by rules." * any(row["pattern"] for row in rows)
    return _table(
        "cases",
        "Questions with the largest ratio of tokens",
        rows,
        index,
        ("question", "model"),
        after=f"The first {CASES} of each matched pair; ratio: tokens over those of the "
        f"baseline.{patterns}",
        grouped=True,
        whole=True,
    )


def published_tables(comparison: Comparison) -> list[Table]:
    """Return the tables of this module that a comparison has anything for."""
    tables = [models_table(comparison), categories_table(comparison)]
    tables += [study_table(study, comparison) for study in studies(comparison.runs)]
    tables += [
        table for table in (pairs_table(comparison), cases_table(comparison)) if table is not None
    ]
    return tables
