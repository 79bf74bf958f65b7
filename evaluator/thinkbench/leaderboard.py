"""The leaderboard file: runs with their pool and their metadata, so that rows can be made again."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from data.errors import MisuseError, StoreError
from evaluator.runs.record import RECORD
from evaluator.thinkbench.comparison import Comparison
from evaluator.thinkbench.stored import ThinkRun, load_run
from stp.files import json_bytes, read_json, write_durably

LEADERBOARD: Final = "leaderboard"
_METADATA: Final = ("attributes", "versions", "checker", "started", "finished")


def aggregate_runs(comparison: Comparison, beside: str | Path | None = None) -> dict[str, Any]:
    """Return a comparison as a leaderboard: the pool, and for each run scores and metadata.

    Parameters
    ----------
    comparison
        Runs in one pool.
    beside
        The folder that the runs' folders are named from, so that all can be moved together; by
        default they are named in full.

    Returns
    -------
    dict
        Plain values; what is unknown is None, and no number is NaN.
    """
    return {
        "kind": LEADERBOARD,
        "schema": 1,
        "made_by": f"stp-engine {version('stp-engine')}",
        "pool": comparison.pool.to_json(),
        "pareto": list(comparison.pareto),
        "rows": [_row(run, comparison, beside) for run in comparison.runs],
        "tests": [asdict(test) for test in comparison.tests],
        "stability": None if comparison.stability is None else asdict(comparison.stability),
        "correlations": [asdict(found) for found in comparison.correlations],
    }


def _row(run: ThinkRun, comparison: Comparison, beside: str | Path | None) -> dict[str, Any]:
    score = comparison.scores[run.name]
    interval = comparison.intervals.get(run.name)
    fit = comparison.lengths[run.name]
    return {
        "name": run.name,
        "folder": _folder(run, beside),
        "scores": asdict(score),
        "oscore_interval": None if interval is None else list(interval),
        "measures": run.measures.to_json(),
        "lengths": None if fit is None else asdict(fit),
        "failed": len(run.failed),
        "metadata": {
            "config": run.record.asked,
            "questions_hash": run.config.questions_hash(),
            "fold_seeds": run.config.fold_seeds(),
            "model": run.record.models["model"],
            **{key: getattr(run.record, key) for key in _METADATA},
        },
    }


def _folder(run: ThinkRun, beside: str | Path | None) -> str:
    folder = run.folder.resolve()
    if beside is not None:
        # Another drive has no relative path.
        with contextlib.suppress(ValueError):
            return Path(os.path.relpath(folder, Path(beside).resolve())).as_posix()
    return str(folder)


def write_leaderboard(comparison: Comparison, path: str | Path) -> Path:
    """Write a leaderboard file as strict JSON; returns where it is.

    Runs' folders are named from the file's own folder: file and runs can be moved together.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written there; what was there before is untouched.
    """
    target = Path(path).expanduser()
    board = aggregate_runs(comparison, target.parent)
    write_durably(target, json_bytes(board, indent=2) + b"\n")
    return target


def read_leaderboard(path: str | Path) -> Mapping[str, Any]:
    """Return a leaderboard's content.

    Raises
    ------
    data.errors.MisuseError
        If the file cannot be read or is not a leaderboard.
    """
    source = Path(path).expanduser()
    try:
        content = read_json(source)
    except FileNotFoundError as error:
        raise MisuseError(f"{source}: no such leaderboard") from error
    except StoreError as error:
        raise MisuseError(f"{error}; a leaderboard is made with stp think aggregate") from error
    if content.get("kind") != LEADERBOARD:
        raise MisuseError(f"{source}: it is not a leaderboard; make one with stp think aggregate")
    return content


def _listed(path: Path) -> list[Path]:
    """Return the folders of a leaderboard's runs."""
    try:
        named = [path.parent / row["folder"] for row in read_leaderboard(path)["rows"]]
    except (KeyError, TypeError) as error:
        raise MisuseError(
            f"{path}: names no folders of runs; make it again with stp think aggregate"
        ) from error
    for folder in named:
        if not (folder / RECORD).is_file():
            raise MisuseError(
                f"{path}: its run {folder} is not there; move a leaderboard together with its "
                "runs, or name their folders"
            )
    return named


def find_runs(places: Sequence[str | Path]) -> list[ThinkRun]:
    """Return the graded runs of :func:`run_folders`.

    Raises
    ------
    data.errors.MisuseError
        If there is no run in one of the places, or one that is not graded.
    data.errors.StoreError
        If a file of a run cannot be read.
    """
    return [load_run(folder) for folder in run_folders(places)]


def run_folders(places: Sequence[str | Path]) -> list[Path]:
    """Return the folders of runs: a place is a run, holds runs below it, or is a leaderboard.

    Raises
    ------
    data.errors.MisuseError
        If there is no run in one of them.
    """
    runs: list[Path] = []
    for place in places:
        path = Path(place).expanduser()
        if path.is_file():
            folders = _listed(path)
        elif (path / RECORD).is_file():
            folders = [path]
        else:
            folders = sorted(found.parent for found in path.rglob(RECORD))
        if not folders:
            raise MisuseError(f"{place}: no run here; start one with stp think run MODEL --out DIR")
        runs += folders
    # A run that is named twice, once with its parent, is one.
    return list({folder.resolve(): folder for folder in reversed(runs)}.values())[::-1]
