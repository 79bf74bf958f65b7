"""Where a row stops every test trajectory at its selected setting: ``decisions/LABEL.npz``."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evaluator.otbench.beside import opened_beside, write_beside
from evaluator.otbench.load import Release
from evaluator.otbench.row import Row
from evaluator.otbench.run import MethodResult, split_curves

DECISIONS_FOLDER = "decisions"


def write_decisions(
    folder: Path, release: Release, rows: Sequence[Row], results: Sequence[MethodResult]
) -> None:
    """Write where the selected setting of each row stops every test trajectory.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written.
    """
    curves = split_curves(release, "test")
    keys = np.array([release.question_ids[q] for q in curves.question.tolist()])
    for row, result in zip(rows, results, strict=True):
        arrays = {
            "model": np.array(curves.model_names)[curves.model],
            "benchmark": keys[:, 0],
            "question": keys[:, 1],
            "trajectory": curves.sample,
            "position": result.decided.stop[result.selected],
            "last": np.diff(curves.trajectory_offsets) - 1,
            "signal_tokens": result.decided.signal_tokens[result.selected],
        }
        write_beside(folder, DECISIONS_FOLDER, row, arrays)


def decisions_of(row: Row) -> dict[tuple[str, str, str, int], tuple[int, int, int]]:
    """Return where a read row's selected setting stops: position, n and signal tokens of each.

    Keys are model, benchmark, question and trajectory. Empty if the decisions are not beside
    the row's file: they are of another row, or the row was made before they were kept.

    Raises
    ------
    data.errors.StoreError
        If their file is torn.
    """
    with opened_beside(row, DECISIONS_FOLDER) as stored:
        if stored is None:
            return {}
        names = ("model", "benchmark", "question", "trajectory")
        keys = zip(*(stored[name].tolist() for name in names), strict=True)
        counted = ("position", "last", "signal_tokens")
        counts = zip(*(stored[name].astype(int).tolist() for name in counted), strict=True)
        return dict(zip(keys, counts, strict=True))
