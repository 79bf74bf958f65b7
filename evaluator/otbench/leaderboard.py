"""Leaderboard rows: a method on a release, with all that is needed to make the row again.

A row is one line of JSON. Its ``digest`` covers everything but when and how long it ran, so two
runs of the same method, settings and release on one machine give the same digest; on another
machine the last digits of trained weights may differ.

The replicates behind a row's intervals lie beside it (``replicates/LABEL.npz``), so that rows made
in different runs can be compared with paired differences: replicate i of the same release and seed
is the same draw of questions and trajectories.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import ValidationError

from baselines.registry import BUILT_IN, MethodDescription, locate
from data.errors import MisuseError
from evaluator.analysis.intervals import central_range
from evaluator.otbench.apart import isolation_of
from evaluator.otbench.asked import AskedMethod, ask
from evaluator.otbench.beside import file_beside, opened_beside, write_beside
from evaluator.otbench.integrity import first_error
from evaluator.otbench.intervals import POINT_COLUMNS, Replicates
from evaluator.otbench.load import Release
from evaluator.otbench.row import Resampling, Row
from evaluator.otbench.run import MethodResult
from evaluator.otbench.summary import SUMMARIES, gaps, shares
from stp.files import write_durably
from stp.records import package_versions

ROWS = "leaderboard.jsonl"
POINTS = "points.csv"
REPLICATES_FOLDER = "replicates"
SCHEMA_VERSION = 1
_PACKAGES = ("stp-engine", "numpy", "scikit-learn", "torch")


def make_row(
    release: Release, result: MethodResult, resampling: Resampling, replicates: Replicates | None
) -> Row:
    """Return the row of a method on a release."""
    method = result.asked.description
    row: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "label": result.label,
        "method": {
            "name": method.name,
            "spec": method.spec,
            "origin": method.origin,
            "strategy": result.strategy,
            "given": _plain(result.asked.hyperparameters),
            "hyperparameters": _plain(result.hyperparameters),
            "needs": list(method.needs),
            "control": method.control,
            "citation": method.citation,
            "trivial": method.trivial,
        },
        "release": {
            "name": release.name,
            "checksum": release.checksum,
            "models": list(release.curves.model_names),
            "groups": list(release.curves.benchmark_names),
            "questions": release.manifest["questions"],
        },
        "resampling": {"replicates": resampling.replicates, "seed": resampling.seed},
        "full_accuracy": result.points.full_accuracy,
        "zero_accuracy": result.points.zero_accuracy,
        "selected": {
            "index": result.selected,
            "setting": _plain(result.settings[result.selected]),
            "rule": "validation: fewest tokens that keep full thinking's accuracy, else the best",
        },
        "summary": _summary(result.summary, replicates),
        "points": _points(result, replicates),
        "cells": _cells(release, result),
        "versions": versions(),
    }
    row["digest"] = digest_of(row)
    row["run"] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "isolation": isolation_of(result.asked.source),
        "fit_seconds": round(result.fit_seconds, 3),
        "decide_seconds": round(result.decide_seconds, 3),
    }
    return Row.model_validate(row)


def versions() -> dict[str, str]:
    """Return the versions of the packages that a row depends on."""
    return {**dict.fromkeys(_PACKAGES, "(not installed)"), **package_versions(_PACKAGES)}


def digest_of(row: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a row, when and how long it ran left out."""
    lasting = {key: value for key, value in row.items() if key not in ("digest", "run")}
    return hashlib.sha256(_json(lasting).encode()).hexdigest()


def asked_in(row: Row, release: Release | None = None) -> AskedMethod:
    """Return the method that a row is about, found and configured again.

    Raises
    ------
    data.errors.MisuseError
        If there is no such method here, or its file is not what it was.
    """
    given = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in row.method.given.items()
    }
    spec, then = row.method.spec, row.method.origin
    now = "stp-engine" if spec in BUILT_IN else locate(spec).origin
    if now != then:
        raise MisuseError(f"method {spec}: the row was made with {then}, and here is {now}")
    return ask(spec, given, release)


def _summary(
    summary: Mapping[str, float], replicates: Replicates | None
) -> dict[str, dict[str, float | None]]:
    out = {}
    for key in SUMMARIES:
        entry = {"value": _number(summary[key])}
        if replicates is not None:
            low, high = central_range(replicates.summaries[key])
            entry |= {"low": _number(low), "high": _number(high)}
        out[key] = entry
    return out


def _points(result: MethodResult, replicates: Replicates | None) -> list[dict[str, Any]]:
    points = result.points
    columns = {
        "tokens_fraction": points.tokens_fraction,
        "accuracy": points.accuracy,
        "frontier_accuracy": points.frontier_accuracy,
        "gap": gaps(points),
        "share": shares(points),
        "common_gap": points.common_frontier_accuracy - points.accuracy,
        "signal_fraction": points.signal_fraction,
    }
    rows = []
    for i, setting in enumerate(result.settings):
        row: dict[str, Any] = {"setting": _plain(setting)}
        row |= {name: _number(values[i]) for name, values in columns.items()}
        row["on_curve"] = bool(points.on_curve[i])
        if replicates is not None:
            row["intervals"] = {
                name: [_number(end) for end in central_range(replicates.points[name][:, i])]
                for name in POINT_COLUMNS
            }
        rows.append(row)
    return rows


def _cells(release: Release, result: MethodResult) -> list[dict[str, Any]]:
    """Return the integers behind the points: tokens and right probes of every setting and cell."""
    totals = result.totals
    return [
        {
            "model": release.curves.model_names[int(totals.model[cell])],
            "group": release.curves.benchmark_names[int(totals.benchmark[cell])],
            "tokens": totals.cost[:, cell].tolist(),
            "right": totals.reward[:, cell].tolist(),
            "signal_tokens": totals.signal_tokens[:, cell].tolist(),
            "full_tokens": int(totals.full_cost[cell]),
            "full_right": int(totals.full_reward[cell]),
            "zero_right": int(totals.zero_reward[cell]),
            "probes": int(totals.probes[cell]),
        }
        for cell in range(totals.model.size)
    ]


# -- files ---------------------------------------------------------------------------------------


def check_replaceable(
    folder: Path, release: Release, methods: Iterable[tuple[str, MethodDescription]]
) -> None:
    """Refuse to write rows where rows of another release, or of other methods, would be lost.

    Parameters
    ----------
    folder
        Where rows are to go.
    release
        What they will be measured on.
    methods
        Their labels and methods.

    Raises
    ------
    data.errors.MisuseError
        Names the row that is in the way.
    """
    if not (folder / ROWS).exists():
        return
    there = {row.label: row for row in read_rows([folder])}
    for row in there.values():
        if row.release.checksum != release.checksum:
            raise MisuseError(
                f"{folder / ROWS}: holds rows of another release ({row.release.name}); "
                "choose another folder"
            )
    for label, method in methods:
        old = there[label].method if label in there else None
        if old and _whose(old.spec, old.origin) != _whose(method.spec, method.origin):
            raise MisuseError(
                f"{folder / ROWS}: holds a row {label!r} of another method ({old.spec}); give "
                "the new one another name, or choose another --out"
            )


def _whose(spec: str, origin: str) -> tuple[str, str]:
    """Return what stays the same of a method whose file or package is edited or moved."""
    if "sha256:" in origin:
        return origin.partition(" sha256:")[0], spec.rpartition(":")[2]
    return origin.partition(" ")[0], spec


def write_rows(folder: Path, rows: Sequence[Row], replicates: Mapping[str, Replicates]) -> Path:
    """Write rows and their replicates into a folder; rows of other labels there are kept.

    What they would replace is checked before they are made: :func:`check_replaceable`.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written.
    """
    path = folder / ROWS
    labels = {row.label for row in rows}
    kept = [row for row in read_rows([path]) if row.label not in labels] if path.exists() else []
    for row in rows:
        if row.label in replicates:
            write_beside(folder, REPLICATES_FOLDER, row, replicates[row.label].summaries)
        else:
            # Those of the row before would not be this row's.
            file_beside(folder, REPLICATES_FOLDER, row.label).unlink(missing_ok=True)
    lines = "".join(f"{_json(row.plain())}\n" for row in [*kept, *rows])
    write_durably(path, lines.encode())
    points = points_frame([*kept, *rows]).to_csv(index=False)
    write_durably(folder / POINTS, points.encode())
    return path


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """Read rows from files or from folders that hold one.

    Raises
    ------
    data.errors.MisuseError
        If a file is missing, or a line is not a row, or was changed.
    """
    rows = []
    for path in paths:
        file = path / ROWS if path.is_dir() else path
        try:
            # Not splitlines(): U+2028 and its kind may stand in a name.
            lines = file.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "no text"
            raise MisuseError(
                f"{file}: no leaderboard file ({why}); `stp otbench run RELEASE --out FOLDER` "
                "makes one"
            ) from error
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                values = json.loads(line)
                known = values["schema_version"] == SCHEMA_VERSION
                same = values["digest"] == digest_of(values)
                # Where its replicates are; no part of the row itself.
                row = Row.model_validate({**values, "file": str(file)}) if known and same else None
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                why = f": {first_error(error)}" if isinstance(error, ValidationError) else ""
                raise MisuseError(f"{file}, line {number}: no leaderboard row{why}") from error
            if row is None:
                raise MisuseError(
                    f"{file}, line {number}: changed since it was written (its digest does not fit)"
                )
            rows.append(row)
    return rows


def points_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return all operating points of rows, one a line, for whoever draws their own figures."""
    return pd.DataFrame(
        [
            {
                "label": row.label,
                "strategy": row.method.strategy,
                "setting": str(point.setting),
                "selected": i == row.selected.index,
                **point.model_dump(exclude={"setting", "intervals", "on_curve"}),
                "on_curve": point.on_curve,
            }
            for row in rows
            for i, point in enumerate(row.points)
        ]
    )


def replicates_of(row: Row) -> dict[str, npt.NDArray[np.float64]] | None:
    """Return a read row's replicates by summary, or None if they are not beside its file.

    Raises
    ------
    data.errors.StoreError
        If their file is torn.
    """
    with opened_beside(row, REPLICATES_FOLDER, options=" with --replicates") as stored:
        if stored is None:
            return None
        found = {name: stored[name] for name in SUMMARIES}
        count = row.resampling.replicates
        if any(each.shape != (count,) or each.dtype != np.float64 for each in found.values()):
            raise ValueError
        return found


def _plain(value: Any) -> Any:
    """Return a setting or hyperparameters as JSON values."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return repr(value)


def _number(value: Any) -> float | None:
    number = float(value)
    return None if math.isnan(number) else number


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
