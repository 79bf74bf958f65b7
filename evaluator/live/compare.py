"""What a live run measured beside what its release predicts, and what it really saved.

Questions are the units: of each, the mean over its trajectories. Intervals draw questions with
replacement, the same draw for everything, so that differences are paired.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from baselines.signals import with_costs
from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.analysis.intervals import central_range
from evaluator.live.policy import make_policy, model_number
from evaluator.live.run import GRADED, KIND, TIMES
from evaluator.live.setup import FULL, METHOD
from evaluator.otbench.decide import decide
from evaluator.otbench.load import Release, load_release
from evaluator.otbench.release_tables import QuestionKey
from evaluator.present.numbers import Span
from evaluator.present.table import Table
from evaluator.runs.record import RunRecord, read_record
from stp.asking.store import ResponseStore
from stp.ragged import FloatArray
from stp.seeds import PAPER_SEED

REPLICATES: Final = 10_000
_MEASURES: Final = ("accuracy, %", "thinking tokens", "signal tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long an arm took: trajectories, seconds, and how many were under way at once."""

    batch: int
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveRun:
    """A finished live run.

    Attributes
    ----------
    record
        What was asked.
    rows
        With verdicts, by arm.
    times
        By arm.
    """

    record: RunRecord
    rows: dict[str, list[dict[str, Any]]]
    times: dict[str, list[Times]]


def read_live(folder: Path) -> LiveRun:
    """Read a finished live run.

    Raises
    ------
    data.errors.MisuseError
        If there is none, or it is not finished.
    """
    record = read_record(folder, KIND)
    if record.finished is None or not (folder / GRADED).exists():
        raise MisuseError(f"{folder}: the live run is not finished; the same command continues it")
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in ResponseStore(folder / GRADED).rows():
        rows.setdefault(row["arm"], []).append(row)
    times: dict[str, list[Times]] = {}
    for row in ResponseStore(folder / TIMES).rows():
        arm = row.pop("arm")
        times.setdefault(arm, []).append(Times(**row))
    return LiveRun(record=record, rows=rows, times=times)


def compare_live(
    folder: Path,
    release: Release | Path,
    *,
    replicates: int = REPLICATES,
    progress: Progress = NOBODY,
) -> Table:
    """Return predicted beside measured: accuracy, thinking tokens and signal tokens.

    Parameters
    ----------
    folder
        A finished live run.
    release
        The release that its method learnt from, or its folder.
    replicates
        Of the bootstrap over questions.
    progress
        Told of the stages.

    Raises
    ------
    data.errors.MisuseError
        If the run has no method, or was made with another release, or the release's steps are not
        causal.
    """
    run = read_live(folder)
    if METHOD not in run.rows:
        raise MisuseError(f"{folder}: full thinking alone was measured; name a --method")
    if not isinstance(release, Release):
        release = load_release(release, progress=progress)
    if run.record.asked["release"] != release.checksum:
        raise MisuseError(
            f"{release.folder}: the live run was not made with this release (--release); its "
            "predictions are of other limits, steps or weights"
        )
    if any(campaign.get("steps") != "causal" for campaign in release.manifest["campaigns"]):
        raise MisuseError(
            f"{release.folder}: its steps are merged, and a live method stops at causal ones; run "
            'the campaign with [probing] steps = "causal" and release it again'
        )
    predicted = _predicted(run, release, progress)
    measured = {arm: by_question(rows) for arm, rows in run.rows.items()}
    asked = sorted(measured[FULL].keys() & predicted[METHOD].keys())
    if not asked:
        raise MisuseError(f"{release.folder}: none of the run's questions is in its test split")
    shares = question_shares(len(asked), replicates)
    columns = {
        "predicted, full": predicted[FULL],
        "measured, full": measured[FULL],
        "predicted, method": predicted[METHOD],
        "measured, method": measured[METHOD],
    }
    values = {name: np.array([found[q] for q in asked]) for name, found in columns.items()}
    values["measured - predicted"] = values["measured, method"] - values["predicted, method"]
    values["method - full"] = values["measured, method"] - values["measured, full"]
    frame = pd.DataFrame(
        {name: [_span(column, shares) for column in each.T] for name, each in values.items()},
        index=pd.Index(_MEASURES, name="measure"),
    ).T
    frame.index.name = ""
    setting = run.record.asked["setting"]
    return Table(
        name="live",
        title=f"{run.record.asked['method']} at {setting}, live and as its release predicts",
        frame=frame,
        formats=dict.fromkeys(_MEASURES, ".1f"),
        note=f"{len(asked)} test questions; 95 % intervals over questions, paired. " + saved(run),
    )


def summary(run: LiveRun) -> Table:
    """Return what each arm gave: accuracy, tokens, seconds a trajectory, trajectories a minute."""
    frame = pd.DataFrame(
        {
            arm: {
                "accuracy, %": 100.0 * float(np.mean([row["right"] for row in rows])),
                "thinking tokens": float(np.mean([row["tokens"] for row in rows])),
                "signal tokens": float(np.mean([row["signal_tokens"] for row in rows])),
                "answers a minute": _a_minute(run.times.get(arm, ())),
            }
            for arm, rows in run.rows.items()
        }
    ).T
    frame.index.name = ""
    return Table(
        name="live",
        title=run.record.name,
        frame=frame,
        formats=dict.fromkeys(frame.columns, ".1f"),
        note=saved(run) if METHOD in run.rows else "",
    )


def _a_minute(times: Sequence[Times]) -> float:
    seconds = sum(entry.seconds for entry in times)
    return 60.0 * sum(entry.rows for entry in times) / seconds if seconds else float("nan")


def by_question(rows: Sequence[Mapping[str, Any]]) -> dict[QuestionKey, FloatArray]:
    """Return of every question the means over its trajectories: percent right, tokens, signals."""
    found: dict[QuestionKey, list[tuple[float, float, float]]] = {}
    for row in rows:
        values = (100.0 * row["right"], float(row["tokens"]), float(row["signal_tokens"]))
        found.setdefault((row["benchmark"], row["question"]), []).append(values)
    return {question: np.mean(values, axis=0) for question, values in found.items()}


def saved(run: LiveRun) -> str:
    """Say in words what the method saved: tokens, signals included, and time."""
    full, own = (run.rows[arm] for arm in (FULL, METHOD))
    tokens = [sum(row["tokens"] + row["signal_tokens"] for row in rows) for rows in (full, own)]
    parts = [f"Tokens with signals: {_change(tokens[1], tokens[0])}"]
    for batch in sorted({entry.batch for entry in run.times[METHOD]}):
        pace = [_seconds_a_row(run.times.get(arm, []), batch) for arm in (FULL, METHOD)]
        if None not in pace and pace[0] and pace[1]:
            text = f"time at batch {batch}: {_change(pace[1], pace[0])}"
            if pace[1] > pace[0]:
                text += ", its signals cost more time than it saves"
            parts.append(text)
    return "; ".join(parts) + "."


def _change(now: float, before: float) -> str:
    if not before:
        return "none to save"
    share = 100.0 * (1.0 - now / before)
    return f"{share:.0f} % saved" if share >= 0 else f"{-share:.0f} % more"


def _seconds_a_row(times: Sequence[Times], batch: int) -> float | None:
    some = [entry for entry in times if entry.batch == batch]
    rows = sum(entry.rows for entry in some)
    return sum(entry.seconds for entry in some) / rows if rows else None


def _predicted(
    run: LiveRun, release: Release, progress: Progress
) -> dict[str, dict[QuestionKey, FloatArray]]:
    """Return by arm and test question what replay says of the trajectories that the run made."""
    name = str(run.record.models["model"]["name"])
    setting = run.record.asked["setting"]
    text = str(tuple(setting) if isinstance(setting, list) else setting)
    policy = make_policy(run.record.asked["method"], text, release, name)
    number = model_number(release, name)
    test = release.measurements(number, "test", with_costs(policy.description.needs))
    progress.stage("predicting")
    decisions = decide(policy.start, policy.description, test, release.lot_q, progress=progress)
    place = policy.place_of(None)
    curves = test.curves
    full = np.diff(curves.trajectory_offsets) - 1
    stops = {
        FULL: (full, np.zeros_like(full)),
        METHOD: (decisions.stop[place], decisions.signal_tokens[place]),
    }
    policy.close()
    found: dict[str, dict[QuestionKey, FloatArray]] = {}
    for arm, (stop, signal_tokens) in stops.items():
        # Seeds are the campaign's, so that a live trajectory has its own in the release: a
        # prediction from others would add their differences to the comparison.
        lived = {(row["benchmark"], row["question"], row["trajectory"]) for row in run.rows[arm]}
        rows = curves.trajectory_offsets[:-1] + stop
        values = np.stack(
            [100.0 * curves.correct[rows] / curves.probes, curves.tokens[rows], signal_tokens],
            axis=1,
        )
        of_question: dict[QuestionKey, list[FloatArray]] = {}
        for q, sample, value in zip(curves.question, curves.sample, values, strict=True):
            question = release.question_ids[q]
            if (*question, int(sample)) in lived:
                of_question.setdefault(question, []).append(value)
        found[arm] = {question: np.mean(each, axis=0) for question, each in of_question.items()}
    return found


def question_shares(questions: int, replicates: int) -> FloatArray:
    """Return the share of every question in every replicate, ``(replicates, questions)``."""
    rng = np.random.default_rng(PAPER_SEED)
    return rng.multinomial(questions, np.full(questions, 1 / questions), replicates) / questions


def _span(values_q: FloatArray, shares: FloatArray) -> Span:
    low, high = central_range(shares @ values_q).tolist()
    return Span(float(values_q.mean()), low, high)
