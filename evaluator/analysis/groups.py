"""Reporting groups: several benchmarks that are reported as one, as AIME 2024 to 2026 are.

Question numbers stay what they are, so a group is the pool of its benchmarks' questions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from data import benchmark_names, get_benchmark
from evaluator.analysis.nesting import make_nesting
from evaluator.present.names import benchmark_name, model_name
from stp.campaign.store import Store
from stp.curves import Curves


def known_groups(benchmarks: tuple[str, ...]) -> dict[str, str]:
    """Return the reporting group of every registered benchmark among the names.

    A benchmark that is not registered (a user's own) is left out: it is its own group.
    """
    registered = set(benchmark_names())
    return {name: get_benchmark(name).group for name in benchmarks if name in registered}


def recorded_groups(campaigns: Iterable[str | Path]) -> dict[str, str]:
    """Return the reporting group of every benchmark of campaigns, as their manifests have it.

    This is how a user's own benchmark, which is not registered, keeps the group of its file.

    Raises
    ------
    data.errors.StpError
        If a folder is not a campaign or cannot be read.
    """
    cells = [cell for url in campaigns for cell in Store(url).read_manifest().cells]
    unrecorded = tuple(cell.benchmark for cell in cells if not cell.group)
    return {
        **known_groups(unrecorded),
        **{cell.benchmark: cell.group for cell in cells if cell.group},
    }


def pool_benchmarks(curves: Curves, groups: Mapping[str, str] | None = None) -> Curves:
    """Return the curves with benchmarks replaced by their reporting groups.

    Parameters
    ----------
    curves
        Measured curves, with benchmark names.
    groups
        The group of a benchmark's name; a name that is not in it is its own group. Left out:
        :func:`known_groups`.

    Returns
    -------
    Curves
        The same trajectories in the same order; ``benchmark`` and ``benchmark_names`` are those
        of the groups, in order of first appearance.
    """
    if not curves.benchmark_names:
        return curves
    mapping = known_groups(curves.benchmark_names) if groups is None else groups
    named = [mapping.get(name, name) for name in curves.benchmark_names]
    names = tuple(dict.fromkeys(named))
    number = np.array([names.index(name) for name in named], np.int32)
    return replace(curves, benchmark=number[curves.benchmark], benchmark_names=names)


def common_questions(curves: Curves) -> Curves:
    """Return the trajectories of questions that all models of their benchmark have.

    A model without trajectories on a benchmark does not count for that benchmark.
    """
    nesting = make_nesting(model=curves.model, benchmark=curves.benchmark, question=curves.question)
    there = nesting.pair_sizes > 0
    shared = np.zeros(nesting.questions.size, np.bool_)
    for start, stop in pairwise(nesting.question_offsets.tolist()):
        part = there[:, start:stop]
        shared[start:stop] = part[part.any(axis=1)].all(axis=0)
    return curves.select(np.isin(curves.question, nesting.questions[shared]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """Whether every model has the same trajectories of every question.

    Attributes
    ----------
    missing
        Sentences that say what is not there; empty if nothing is missing.
    """

    missing: tuple[str, ...]

    @property
    def note(self) -> str:
        """The sentences together, for the foot of a table."""
        return " ".join(self.missing)


def completeness(curves: Curves) -> Completeness:
    """Look for missing cells, missing questions and unequal numbers of trajectories."""
    missing = []
    models = np.unique(curves.model)
    for benchmark in np.unique(curves.benchmark).tolist():
        inside = curves.benchmark == benchmark
        name = benchmark_name(curves, benchmark)
        questions = np.unique(curves.question[inside])
        for model in models.tolist():
            own = curves.question[inside & (curves.model == model)]
            who = model_name(curves, model)
            if own.size == 0:
                missing.append(f"{who} has nothing on {name}.")
            elif np.unique(own).size < questions.size:
                lacking = questions.size - np.unique(own).size
                missing.append(f"{who} lacks {lacking} of {questions.size} questions of {name}.")
    # One number a pair: sorting rows of two takes ten times as long.
    numbers, place = np.unique(curves.question, return_inverse=True)
    pairs = curves.model.astype(np.int64) * numbers.size + place
    counts = np.unique(pairs, return_counts=True)[1]
    if counts.size and counts.min() != counts.max():
        missing.append(
            f"Trajectories per model and question range from {counts.min()} to {counts.max()}."
        )
    return Completeness(missing=tuple(missing))
