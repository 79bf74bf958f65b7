"""A live run: full thinking and the method on the same questions, side by side in one folder.

The two take turns of some trajectories each, so that other work on the machine affects both
alike. Rows are written as trajectories end; a run that was stopped continues where it was.
"""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from data.errors import StoreMismatchError
from data.progress import NOBODY, Progress
from evaluator.answers import Checker
from evaluator.live.crew import Crew
from evaluator.live.setup import FULL, METHOD, Ready, arms_of, asked_record
from evaluator.live.thinking import LiveTask, Outcome, Plan, live_trajectory
from evaluator.runs.folder import locked_folder
from evaluator.runs.record import RunRecord, check_folder, finish_run, write_record
from stp.asking.store import ResponseStore
from stp.engines.base import Engine
from stp.files import json_lines, write_durably
from stp.records import differences

KIND: Final = "stp live"
ROWS: Final = "rows.jsonl"
TIMES: Final = "times.jsonl"
GRADED: Final = "graded.jsonl"
_TURN: Final = 4
"""Batches in a turn of one arm."""

RowKey = tuple[str, str, str, int]
"""Arm, benchmark, question, trajectory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveResult:
    """What a run gave.

    Attributes
    ----------
    made
        Trajectories made this time.
    finished
        Whether all are there.
    rows
        All rows, with verdicts; none while the run is not finished.
    """

    made: int
    finished: bool
    rows: tuple[dict[str, Any], ...]


def run_live(
    ready: Ready,
    tasks: Sequence[LiveTask],
    folder: Path,
    *,
    batch: int = 32,
    progress: Progress = NOBODY,
    stop: threading.Event | None = None,
) -> LiveResult:
    """Make all trajectories that are missing, then grade.

    Parameters
    ----------
    ready, tasks
        The model and the method, and what is asked.
    folder
        Where rows go.
    batch
        Trajectories under way at once.
    progress
        Told how many are there.
    stop
        Set by whoever wants it to end; what is under way is lost, and made again next time.

    Raises
    ------
    data.errors.StpError
        If the folder holds another run, or the engine fails; rows that were written are kept.
    """
    stop = stop or threading.Event()
    with locked_folder(folder):
        record = _begin(ready, tasks, folder)
        store = ResponseStore(folder / ROWS)
        done = {_key(row) for row in store.rows()}
        turns = list(_turns(ready, tasks, done, batch))
        total = len(tasks) * len(list(arms_of(ready)))
        made = 0
        if turns:
            progress.stage("loading the model")
            engine, plan = ready.open()
            with closing(engine), store as rows, ResponseStore(folder / TIMES) as times:
                shown = progress.stage("thinking")
                for arm, some in turns:
                    policy = plan.policy if arm == METHOD else None
                    began, before = time.monotonic(), made
                    for task, outcome in make(
                        engine, replace(plan, policy=policy), some, batch, stop
                    ):
                        rows.append_row(_row(arm, task, outcome))
                        made += 1
                        shown(len(done) + made, total)
                    seconds = time.monotonic() - began
                    if made - before == len(some):
                        times.append_row(
                            {"arm": arm, "batch": batch, "rows": len(some), "seconds": seconds}
                        )
                    if stop.is_set():
                        break
        if len(done) + made < total:
            return LiveResult(made=made, finished=False, rows=())
        progress.stage("grading")
        graded = _graded(store.rows(), tasks, ready.plan)
        write_durably(folder / GRADED, json_lines(graded))
        finish_run(folder, record)
        return LiveResult(made=made, finished=True, rows=tuple(graded))


def make(
    engine: Engine, plan: Plan, tasks: Iterable[LiveTask], batch: int, stop: threading.Event
) -> Iterable[tuple[LiveTask, Outcome]]:
    """Make trajectories, ``batch`` at once; yield each as it ends.

    Raises
    ------
    data.errors.EngineError
        If the engine or one of its requests fails.
    """
    crew: Crew[Outcome] = Crew(engine)
    waiting = iter(tasks)
    seats: dict[int, ExitStack] = {}
    under_way: dict[int, LiveTask] = {}
    try:
        while not stop.is_set():
            while len(crew) < batch and (task := next(waiting, None)) is not None:
                seats[task.session] = ExitStack()
                seat = None
                if plan.policy is not None:
                    seat = seats[task.session].enter_context(plan.policy.seat())
                under_way[task.session] = task
                crew.add(task.session, live_trajectory(task, plan, seat))
            if not len(crew):
                return
            for ended in crew.step():
                task = under_way.pop(int(str(ended.key)))
                engine.end_session(task.session)
                seats.pop(task.session).close()
                if ended.error is not None:
                    raise ended.error
                assert ended.result is not None
                yield task, ended.result
    finally:
        crew.close()
        for session in under_way:
            engine.end_session(session)
            seats[session].close()


def _begin(ready: Ready, tasks: Sequence[LiveTask], folder: Path) -> RunRecord:
    """Write down what is asked, or see that it is what was asked before."""
    policy = ready.plan.policy
    label = FULL if policy is None else policy.label
    record = RunRecord(
        kind=KIND,
        name=f"{ready.model.name}, {label}",
        asked=asked_record(ready, tasks),
        models={"model": {"name": ready.model.name, "family": ready.model.family.name}},
    )
    found = check_folder(folder, KIND)
    if found is None:
        write_record(folder, record)
        return record
    different = differences(found.asked, record.asked)
    if different:
        raise StoreMismatchError(
            f"{folder}: holds a live run of something else: {'; '.join(different[:3])}; give this "
            "one a folder of its own"
        )
    return found


def _turns(
    ready: Ready, tasks: Sequence[LiveTask], done: set[RowKey], batch: int
) -> Iterable[tuple[str, list[LiveTask]]]:
    """Yield what is missing: an arm's trajectories, then the other arm's of the same questions."""
    size = _TURN * batch
    for number, start in enumerate(range(0, len(tasks), size)):
        some = tasks[start : start + size]
        arms = list(arms_of(ready))
        # Who goes first alternates.
        for arm in arms if number % 2 == 0 else reversed(arms):
            missing = [task for task in some if _key_of(arm, task) not in done]
            if missing:
                yield arm, missing


def _key_of(arm: str, task: LiveTask) -> RowKey:
    return arm, task.benchmark, task.question.id, task.trajectory


def _key(row: Mapping[str, Any]) -> RowKey:
    return row["arm"], row["benchmark"], row["question"], row["trajectory"]


def _row(arm: str, task: LiveTask, outcome: Outcome) -> dict[str, Any]:
    values = asdict(outcome)
    values["decisions"] = [
        # JSON has no infinity.
        {**entry, "score": entry["score"] if _finite(entry["score"]) else str(entry["score"])}
        for entry in values["decisions"]
    ]
    return {
        "arm": arm,
        "benchmark": task.benchmark,
        "question": task.question.id,
        "trajectory": task.trajectory,
        **values,
    }


def _finite(score: float | None) -> bool:
    return score is None or abs(score) < float("inf")


def _graded(
    rows: Iterable[Mapping[str, Any]], tasks: Sequence[LiveTask], plan: Plan
) -> list[dict[str, Any]]:
    """Return the rows with text and verdict of their answers, in the order of the tasks."""
    questions = {(task.benchmark, task.question.id): task.question for task in tasks}
    order = {(t.benchmark, t.question.id, t.trajectory): n for n, t in enumerate(tasks)}
    found = {_key(row): dict(row) for row in rows}
    graded = sorted(found.values(), key=lambda row: (row["arm"], order[_key(row)[1:]]))
    for row in graded:
        row["answer"] = plan.subject.format.answer_text(row["answer_ids"])
    with Checker() as checker:
        verdicts = checker.check_many(
            [(questions[row["benchmark"], row["question"]], row["answer"]) for row in graded]
        )
    for row, verdict in zip(graded, verdicts, strict=True):
        given = row["answer_finish"] != "none"
        row["right"] = verdict.right and given
        row["verdict"] = verdict.reason if given else f"wrong: no answer ({row['reason']})"
    return graded
