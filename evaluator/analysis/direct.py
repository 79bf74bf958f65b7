"""Accuracies of direct answers, to set beside P(0) (paper 002, B.3 and Table 7).

A direct answer comes from a prompt that asks for no reasoning. It is another condition than k = 0,
which keeps the prompt that asks for reasoning and ends the thinking before it begins. Accuracies
come from a campaign that answered directly, from curves of one, or from a CSV file.
"""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from data.errors import MisuseError
from evaluator.analysis.groups import pool_benchmarks, recorded_groups
from evaluator.analysis.nesting import nesting_of
from evaluator.analysis.overthinking import per_trajectory
from evaluator.analysis.table_labels import benchmark_label, model_label
from stp.campaign.curves import load_curves
from stp.curves import Curves

Accuracies = dict[tuple[str, str], float]
"""By (model name, reporting group), a fraction."""


def direct_accuracies(
    sources: Sequence[str | Path], *, allow_incomplete: bool = False
) -> Accuracies:
    """Return the accuracies of direct answers of every cell of some sources.

    Parameters
    ----------
    sources
        Folders or URLs of campaigns whose models answered directly, usually one a model, and CSV
        files as :func:`read_direct_accuracies` takes them.
    allow_incomplete
        Take the answers that are graded.

    Raises
    ------
    data.errors.MisuseError
        If a source is neither, its trajectories think, or a cell is in two of them.
    data.errors.StoreError
        If the campaign is incomplete (unless allowed) or damaged.
    """
    found: Accuracies = {}
    for source in sources:
        if str(source).endswith(".csv"):
            accuracies = read_direct_accuracies(Path(source))
        else:
            curves = load_curves(source, allow_incomplete=allow_incomplete)
            accuracies = accuracies_of_answers(pool_benchmarks(curves, recorded_groups([source])))
        for model, benchmark in found.keys() & accuracies.keys():
            raise MisuseError(f"{source}: {model} on {benchmark} has direct answers elsewhere too")
        found |= accuracies
    return found


def accuracies_of_answers(curves: Curves) -> Accuracies:
    """Return the accuracy of the original answers of trajectories that do not think.

    Parameters
    ----------
    curves
        Of a model that answered directly: every L(n) is 0. Averages go trajectories -> question ->
        cell.

    Raises
    ------
    data.errors.MisuseError
        If a trajectory thinks, or an answer is not graded.
    """
    thinking = int((curves.full_tokens_s > 0).sum())
    if thinking:
        raise MisuseError(
            f"{thinking:,} of {curves.trajectories:,} trajectories think, so their answers are not "
            "direct; give a campaign that was generated in direct mode, or a CSV file"
        )
    if (curves.original_correct < 0).any():
        raise MisuseError("some direct answers are not graded; run `stp grade` on their campaign")
    frame = per_trajectory(curves)
    nesting = nesting_of(frame)
    means = nesting.cell_means(frame[["original_accuracy"]].to_numpy(float))
    return {
        (model_label(curves, model), benchmark_label(curves, benchmark)): float(means[m, b, 0])
        for m, model in enumerate(nesting.models.tolist())
        for b, benchmark in enumerate(nesting.benchmarks.tolist())
        if not math.isnan(means[m, b, 0])
    }


def read_direct_accuracies(path: Path) -> Accuracies:
    """Read accuracies of direct answers from a CSV file.

    Parameters
    ----------
    path
        With the columns ``model``, ``benchmark`` (a reporting group) and ``accuracy`` (a fraction).

    Raises
    ------
    data.errors.MisuseError
        If the file, a column or a number is missing or wrong.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"{path}: cannot be read: {error}") from error
    accuracies = {}
    for number, row in enumerate(rows, start=2):
        try:
            value = float(row["accuracy"])
            accuracies[row["model"], row["benchmark"]] = value
        except (KeyError, TypeError, ValueError) as error:
            raise MisuseError(
                f"{path}, line {number}: needs the columns model, benchmark and accuracy, the last "
                "a number between 0 and 1"
            ) from error
        if not 0 <= value <= 1:
            raise MisuseError(f"{path}, line {number}: accuracy {value} is not between 0 and 1")
    return accuracies
