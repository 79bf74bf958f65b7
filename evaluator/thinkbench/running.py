"""One run: ask what has no response yet, grade, and write what came out."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
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
    folder = Path(out).expanduser()
    check_folder(folder, KIND)
    config = config or ThinkConfig()
    items = plan_questions(config)
    with contextlib.ExitStack() as stack:
        responder = stack.enter_context(opened_once())(model)
        stack.enter_context(locked_folder(folder))
        description = responder.describe()
        record = begin_run(
            folder,
            RunRecord(
                kind=KIND,
                name=name or str(description.get("model") or "model"),
                asked=to_plain(config),
                models={"model": description},
                attributes=attributes or {},
            ),
            replies=[folder / RESPONSES],
            # Instances and their seeds do not depend on how many there are.
            growing=("samples", "folds"),
        )
        write_durably(folder / QUESTIONS, json_lines(map(_question_row, items)))
        requests = [make_request(item, config) for item in items]
        store = ResponseStore(folder / RESPONSES)
        missing = Missing(
            store=store,
            requests=store.missing(requests),
            settings=config.settings,
            total=len(requests),
            progress=progress,
        )
        ask_missing(responder, missing)
        return _finish(folder, config, finish_run(folder, record), items)


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
