"""Where a row stops every test trajectory at its selected setting: ``decisions/LABEL.npz``."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from data.errors import StoreError
from evaluator.otbench.leaderboard import label_file
from evaluator.otbench.load import Release
from evaluator.otbench.row import Row
from evaluator.otbench.run import MethodResult, split_curves
from stp.files import write_durably

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
        content = io.BytesIO()
        np.savez_compressed(
            content,
            allow_pickle=False,
            digest=row.digest,
            model=np.array(curves.model_names)[curves.model],
            benchmark=keys[:, 0],
            question=keys[:, 1],
            trajectory=curves.sample,
            position=result.decided.stop[result.selected],
            last=np.diff(curves.trajectory_offsets) - 1,
            signal_tokens=result.decided.signal_tokens[result.selected],
        )
        write_durably(folder / DECISIONS_FOLDER / label_file(row.label), content.getvalue())


def decisions_of(row: Row) -> dict[tuple[str, str, str, int], tuple[int, int, int]]:
    """Return where a read row's selected setting stops: position, n and signal tokens of each.

    Keys are model, benchmark, question and trajectory. Empty where the decisions are not beside
    the row's file: they are of another row, or the row was made before they were kept.

    Raises
    ------
    data.errors.StoreError
        If their file is torn.
    """
    path = Path(row.file or "").parent / DECISIONS_FOLDER / label_file(row.label)
    if not path.is_file():
        return {}
    try:
        with np.load(path, allow_pickle=False) as stored:
            if str(stored["digest"]) != row.digest:
                return {}
            names = ("model", "benchmark", "question", "trajectory")
            keys = zip(*(stored[name].tolist() for name in names), strict=True)
            counts = zip(
                *(
                    stored[name].astype(int).tolist()
                    for name in ("position", "last", "signal_tokens")
                ),
                strict=True,
            )
            return dict(zip(keys, counts, strict=True))
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise StoreError(f"{path}: torn or changed; run {row.label} again") from error
