"""Graded rows on disk, and whether they are still what the responses come to.

Beside the rows stands, in ``judging.json``, what they were made from: this version's checker, what
the plan asks, and a digest of the rows, the questions and every file of responses. Rows that were
changed, or are older than what they are from, are not scored.
"""

import hashlib
import io
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from data.errors import MisuseError, StoreError
from evaluator.answers import CHECKER_VERSION
from evaluator.optimal.judge import Agreement
from evaluator.optimal.methods import MODES
from evaluator.optimal.plan import PLAN_FILE, Plan, read_plan
from evaluator.optimal.running import QUESTIONS_FILE, response_file, route_file
from evaluator.runs.freshness import difference, file_digest
from stp.files import json_bytes, read_json, write_durably

GRADED_FILE = "graded.parquet"
JUDGING_FILE = "judging.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """How the rows of a run got their verdicts.

    Attributes
    ----------
    responses
        Verdicts there are, over all modes.
    by_rule, by_judge, undecided
        How many were decided by rule, by the judge, and not at all.
    agreement
        How repeated judgements agree.
    judge
        Which model judged; ``""`` where none was needed.
    unrouted
        Questions that the router model did not sort; they are thought about.
    """

    responses: int
    by_rule: int
    by_judge: int
    undecided: int
    agreement: Agreement
    judge: str = ""
    unrouted: int = 0


def write_graded(folder: Path, plan: Plan, rows: pd.DataFrame, judging: Judging) -> pd.DataFrame:
    """Write a run's graded rows, and what they were made from; return them as they are read.

    Raises
    ------
    data.errors.StoreError
        If they cannot be written, or a file that they are from cannot be read.
    """
    rows = _typed(rows)
    content = io.BytesIO()
    rows.to_parquet(content, index=False)
    write_durably(folder / GRADED_FILE, content.getvalue())
    values = {**asdict(judging), "made_from": _made_from(folder, plan)}
    write_durably(folder / JUDGING_FILE, json_bytes(values, indent=1) + b"\n")
    return rows


def _made_from(folder: Path, plan: Plan) -> dict[str, str | None]:
    files = [folder / name for name in (GRADED_FILE, QUESTIONS_FILE)]
    files += [response_file(folder, mode) for mode in MODES]
    files.append(route_file(folder))
    named = {path.relative_to(folder).as_posix(): file_digest(path) for path in files}
    return {"checker": CHECKER_VERSION, **named, PLAN_FILE: _plan_digest(plan)}


def _plan_digest(plan: Plan) -> str:
    """Return the digest of what a plan asks; by whom and from where changes no row."""
    values = plan.as_json()
    for key in ("model", "router", "data_dir"):
        del values[key]
    return hashlib.sha256(json_bytes(values)).hexdigest()


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    types = {
        "right": "boolean",
        "thinking_tokens": "Int64",
        "output_tokens": "Int64",
        "credit": "Float64",
        "size": "Float64",
        "answer": "string",
    }
    return frame.astype(types)


def read_graded(folder: Path) -> tuple[pd.DataFrame, Judging]:
    """Read the graded rows of a run.

    Returns
    -------
    rows : pandas.DataFrame
        One row for each response under each method: ``model``, ``method``, ``subset``, ``side``
        (``"ovt"`` or ``"ut"``), ``benchmark``, ``question`` (a key), ``sample``, ``right``
        (missing where undecided), ``thinking_tokens`` and ``output_tokens`` (missing where
        unknown), ``credit`` (Reasoning Gym's own, missing elsewhere), ``answer``, ``reason``,
        ``by_judge``, ``finish``, ``domain``, ``discipline``, ``answer_type``, ``options``,
        ``size``.
    judging : Judging
        How the verdicts came about.

    Raises
    ------
    data.errors.MisuseError
        If the run is not graded yet, or its rows are no longer what its responses come to.
    data.errors.StoreError
        If a file cannot be read.
    """
    again = f"`stp optimal score {shlex.quote(str(folder))}`"
    if not (folder / GRADED_FILE).exists():
        raise MisuseError(f"{folder}: is not graded; {again} does it")
    path = folder / JUDGING_FILE
    try:
        values = read_json(path)
        then = values.pop("made_from", None)
        values["agreement"] = Agreement(**values["agreement"])
        judging = Judging(**values)
    except FileNotFoundError as error:
        raise MisuseError(f"{path}: is not there; {again} makes it") from error
    except (TypeError, KeyError) as error:
        raise StoreError(f"{path}: cannot be read ({error!r}); {again} makes it anew") from error
    stale = _why_stale(then, _made_from(folder, read_plan(folder)))
    if stale is not None:
        raise MisuseError(f"{folder}/{stale}; {again} grades it again")
    path = folder / GRADED_FILE
    try:
        return _typed(pd.read_parquet(path)), judging
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"{path}: cannot be read ({error}); {again} makes it anew") from error


def _why_stale(then: object, now: Mapping[str, str | None]) -> str | None:
    """Return what is no longer as it was when a run was graded, and how; None if all is."""
    if not isinstance(then, dict) or then.keys() != now.keys():
        return f"{JUDGING_FILE}: does not say what this version's rows are made from"
    key = difference(then, now)
    if key == "checker":
        return f"{GRADED_FILE}: another version of the answer checker made it"
    return None if key is None else f"{key}: has changed since the run was graded"
