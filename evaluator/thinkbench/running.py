"""One run: ask what has no response yet, grade, and write what came out."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from data.progress import NOBODY, Progress
from evaluator.runs.asking import Missing, ask_missing, opened_once
from evaluator.runs.folder import locked_folder
from evaluator.runs.graded import write_graded
from evaluator.runs.plain import to_plain
from evaluator.runs.record import RunRecord, begin_run, check_folder, finish_run
from evaluator.thinkbench.config import ThinkConfig
from evaluator.thinkbench.grading import grade_responses
from evaluator.thinkbench.questions import TaskQuestion, make_request, plan_questions
from evaluator.thinkbench.stored import (
    KIND,
    QUESTIONS,
    RESPONSES,
    ThinkRun,
    graded_source,
    make_run,
    read_asked,
    read_responses,
)
from evaluator.thinkbench.tables import run_table
from stp.asking import ModelSpec, Responder, ResponseStore
from stp.asking.base import Description
from stp.files import json_bytes, json_lines, write_durably

MEASURES: Final = "measures.json"
TASKS: Final = "tasks.csv"


def run(
    model: str | ModelSpec | Responder,
    out: str | Path,
    config: ThinkConfig | None = None,
    *,
    name: str | None = None,
    attributes: Mapping[str, float | str] | None = None,
    progress: Progress = NOBODY,
) -> ThinkRun:
    r"""Run LLMThinkBench on a model, or continue a run that was interrupted.

    Parameters
    ----------
    model
        What :func:`stp.asking.open_responder` opens, or a responder.
    out
        The run's folder.
    config
        What to ask; by default the fourteen tasks with paper 000's sizes and sampling.
    name
        What the model is called in tables; by default as it is described.
    attributes
        Facts about the model for correlations, such as ``{"parameters": 14e9}``.
    progress
        Told how far it is.

    Returns
    -------
    ThinkRun
        With ``failed`` naming the questions that nobody answered; the same call asks them again.

    Raises
    ------
    data.errors.StoreMismatchError
        If the folder holds a run with another configuration or another model.
    data.errors.MisuseError
        If it holds something else; nothing is written there.
    data.errors.EngineError
        If the model fails on many requests in a row; what was answered is kept.

    Examples
    --------
    >>> import tempfile
    >>> from stp.asking import CallableResponder
    >>> config = ThinkConfig(tasks=("sum",), samples=2, folds=1, sizes=(8,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(CallableResponder(lambda prompt: r"It is \boxed{1}."), folder, config)
    >>> done.measures.overall.responses, done.measures.overall.accuracy.mean
    (2, 0.0)
    """
    (done,) = run_study(
        model,
        [StudyRun(out=out, config=config or ThinkConfig(), name=name, progress=progress)],
        attributes=attributes,
    )
    return done


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun:
    """One run of a study; each field as :func:`run` has it."""

    out: str | Path
    config: ThinkConfig
    name: str | None = None
    progress: Progress = NOBODY


def run_study(
    model: str | ModelSpec | Responder,
    runs: Sequence[StudyRun],
    *,
    attributes: Mapping[str, float | str] | None = None,
) -> list[ThinkRun]:
    """Run LLMThinkBench on a model in several ways, in one stream of requests.

    The first requests of a run are asked while the last ones of the run before are answered, so
    that the model never waits between them.

    Parameters
    ----------
    model, attributes
        As :func:`run`.
    runs
        In their order; folders differ.

    Returns
    -------
    list of ThinkRun
        In the same order.

    Raises
    ------
    data.errors.StpError
        As :func:`run`.
    """
    for one in runs:
        check_folder(Path(one.out).expanduser(), KIND)
    with contextlib.ExitStack() as stack:
        responder = stack.enter_context(opened_once())(model)
        for one in runs:
            stack.enter_context(locked_folder(Path(one.out).expanduser()))
        begun = [_Begun(one, responder.describe(), attributes or {}) for one in runs]
        ask_missing(responder, *(one.missing() for one in begun))
        return [
            _finish(one.folder, one.config, finish_run(one.folder, one.record), one.items)
            for one in begun
        ]


class _Begun:
    """A run whose folder says what is asked, and is ready for responses."""

    def __init__(
        self, run: StudyRun, description: Description, attributes: Mapping[str, float | str]
    ) -> None:
        self.config = run.config
        self.folder = folder = Path(run.out).expanduser()
        self.items = plan_questions(run.config)
        self.record = begin_run(
            folder,
            RunRecord(
                kind=KIND,
                name=run.name or str(description.get("model") or "model"),
                asked=to_plain(run.config),
                models={"model": description},
                attributes=attributes,
            ),
            replies=[folder / RESPONSES],
            # Instances and their seeds do not depend on how many there are.
            growing=("samples", "folds"),
        )
        self._progress = run.progress
        write_durably(folder / QUESTIONS, json_lines(map(_question_row, self.items)))

    def missing(self) -> Missing:
        """Return what has no response yet."""
        requests = [make_request(item, self.config) for item in self.items]
        store = ResponseStore(self.folder / RESPONSES)
        return Missing(
            store=store,
            requests=store.missing(requests),
            settings=self.config.settings,
            total=len(requests),
            progress=self._progress,
        )


def grade(folder: str | Path) -> ThinkRun:
    """Grade a run's stored responses again and write what comes out; needs no model.

    Raises
    ------
    data.errors.MisuseError
        If there is no run in the folder.
    data.errors.StoreError
        If the responses are gone, or another process works in the folder.
    """
    path = Path(folder).expanduser()
    record, config = read_asked(path)
    with locked_folder(path):
        return _finish(path, config, record, plan_questions(config))


def _finish(
    folder: Path, config: ThinkConfig, record: RunRecord, items: Sequence[TaskQuestion]
) -> ThinkRun:
    responses = read_responses(folder)
    graded = grade_responses(items, responses, record.models.get("model"))
    write_graded(graded_source(folder, config), map(asdict, graded))
    made = make_run(folder, config, record, graded, items, responses)
    write_durably(folder / MEASURES, json_bytes(made.measures.to_json(), indent=2))
    write_durably(folder / TASKS, run_table(made).to_csv().encode())
    return made


def _question_row(item: TaskQuestion) -> Mapping[str, str | int]:
    return {
        "id": item.id,
        "task": item.task,
        "fold": item.fold,
        "size": item.size,
        "prompt": item.question.prompt,
        "reference": item.question.reference,
    }
