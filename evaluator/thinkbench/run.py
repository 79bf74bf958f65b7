"""One run: ask what has no response yet, grade, and write what came out.

A run's folder::

    run.json           what was asked of whom: seeds, settings, model, versions, times
    questions.jsonl    the questions with their references
    responses.jsonl    raw responses, appended as they come
    graded.jsonl       parsed answers, verdicts, counts, kinds of error, patterns
    grading.json       what that was made from, so that it is seen where it no longer fits
    tasks.csv          a row per task, category and overall
    measures.json      the same, and folds

Only ``responses.jsonl`` costs anything; the rest is made again whenever a run ends.
"""

import contextlib
import logging
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from data.errors import ConfigError, MisuseError, StoreError, StoreMismatchError
from evaluator.answers import CHECKER_VERSION
from evaluator.runs.folder import check_free, locked_folder
from evaluator.thinkbench.config import ThinkConfig, differences
from evaluator.thinkbench.grade import Graded, grade
from evaluator.thinkbench.graded_file import read_graded, write_graded
from evaluator.thinkbench.measures import Measures, measure
from evaluator.thinkbench.questions import TaskQuestion, make_request, plan_questions
from stp.asking import (
    EngineResponder,
    ModelSpec,
    Responder,
    Response,
    ResponseStore,
    open_responder,
)
from stp.asking.base import identity
from stp.files import json_bytes, read_json, write_durably

_LOG = logging.getLogger(__name__)

RUN: Final = "run.json"
QUESTIONS: Final = "questions.jsonl"
RESPONSES: Final = "responses.jsonl"
MEASURES: Final = "measures.json"
TASKS: Final = "tasks.csv"
SCHEMA: Final = 1

OnProgress = Callable[[int, int], None]
"""Called with the responses there are and those there will be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as it is on disk.

    Attributes
    ----------
    folder
        Where it is.
    name
        What the model is called in tables.
    config
        What was asked.
    record
        All of ``run.json``.
    graded
        Graded responses, in the order of the questions.
    measures
        What they come to.
    failed
        Questions without a response, and why.
    """

    folder: Path
    name: str
    config: ThinkConfig
    record: Mapping[str, Any]
    graded: tuple[Graded, ...]
    measures: Measures
    failed: Mapping[str, str]

    @property
    def complete(self) -> bool:
        """Whether every question has a response."""
        return not self.failed


def evaluate(
    model: str | ModelSpec | Responder,
    out: str | Path,
    config: ThinkConfig | None = None,
    *,
    name: str | None = None,
    attributes: Mapping[str, float | str] | None = None,
    on_progress: OnProgress | None = None,
) -> Run:
    r"""Run LLMThinkBench on a model, or go on with a run that was interrupted.

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
    on_progress
        Told how far it is.

    Returns
    -------
    Run
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
    ...     run = evaluate(CallableResponder(lambda prompt: r"It is \boxed{1}."), folder, config)
    >>> run.measures.overall.responses, run.measures.overall.accuracy.mean
    (2, 0.0)
    """
    folder = Path(out).expanduser()
    _check_folder(folder)
    config = config or ThinkConfig()
    items = plan_questions(config)
    with contextlib.ExitStack() as stack:
        if isinstance(model, Responder):
            responder = model
        else:
            responder = stack.enter_context(open_responder(model))
        description = responder.describe()
        label = name or str(description.get("model") or "model")
        stack.enter_context(locked_folder(folder))
        record = _record(folder, config, description, label, attributes or {})
        store = stack.enter_context(ResponseStore(folder / RESPONSES))
        _write_questions(folder, items)
        _ask(responder, items, config, store, on_progress)
        record["finished"] = _now()
        write_durably(folder / RUN, json_bytes(record, indent=2))
        return _finish(folder, config, record, items)


def grade_run(folder: str | Path) -> Run:
    """Grade a run's stored responses again and write what comes out; needs no model.

    Raises
    ------
    data.errors.MisuseError
        If there is no run in the folder.
    """
    path = Path(folder).expanduser()
    record = _read_record(path)
    config = _config_of(path, record)
    with locked_folder(path):
        _responses(path)
        return _finish(path, config, record, plan_questions(config))


def load_run(folder: str | Path) -> Run:
    """Return a run from its folder.

    The verdicts are those of ``graded.jsonl`` only if it is as it was written, from the responses
    that are there, by this parser. Otherwise they are made anew, and a warning says so: no number
    comes from a file that was changed, or is older than its responses.

    Raises
    ------
    data.errors.MisuseError
        If there is no run in the folder, or it was never graded.
    data.errors.StoreError
        If a file of it cannot be read, or the responses are gone.
    """
    path = Path(folder).expanduser()
    record = _read_record(path)
    config = _config_of(path, record)
    items = plan_questions(config)
    graded = read_graded(path, path / RESPONSES, config)
    responses = _responses(path)
    if graded is None:
        graded = grade(items, responses)
    return _run(path, config, record, graded, items, responses)


def _responses(folder: Path) -> Mapping[str, Response]:
    if not (folder / RESPONSES).exists():
        raise StoreError(f"{folder / RESPONSES}: is not there, and all else is made from it")
    return ResponseStore(folder / RESPONSES).read()


def _ask(
    responder: Responder,
    items: list[TaskQuestion],
    config: ThinkConfig,
    store: ResponseStore,
    on_progress: OnProgress | None,
) -> None:
    requests = [make_request(item, config) for item in items]
    missing = store.missing(requests)
    done = shown = len(requests) - len(missing)
    ended = 0

    def tell() -> None:
        nonlocal shown
        # Never backwards: a request that takes several passes ends several times.
        shown = max(shown, min(done + ended, len(requests)))
        if on_progress is not None:
            on_progress(shown, len(requests))

    def keep(response: Response) -> None:
        nonlocal done, ended
        store.append(response)
        done, ended = done + 1, max(0, ended - 1)
        tell()

    def count(samples: int) -> None:
        nonlocal ended
        ended += samples
        tell()

    tell()
    if not missing:
        return
    if isinstance(responder, EngineResponder):
        responder.on_ended = count
    try:
        responder.respond(missing, config.settings, keep)
    finally:
        if isinstance(responder, EngineResponder):
            responder.on_ended = None


def _finish(
    folder: Path, config: ThinkConfig, record: Mapping[str, Any], items: list[TaskQuestion]
) -> Run:
    from evaluator.thinkbench.tables import run_table

    responses = ResponseStore(folder / RESPONSES).read()
    graded = grade(items, responses)
    write_graded(folder, graded, folder / RESPONSES, config)
    run = _run(folder, config, record, graded, items, responses)
    write_durably(folder / MEASURES, json_bytes(run.measures.to_json(), indent=2))
    write_durably(folder / TASKS, run_table(run).to_csv().encode())
    return run


def _run(
    folder: Path,
    config: ThinkConfig,
    record: Mapping[str, Any],
    graded: list[Graded],
    items: list[TaskQuestion],
    responses: Mapping[str, Response],
) -> Run:
    """Put a run together; what failed is what has no grade."""
    known = {row.id for row in graded}
    failed = {
        item.id: (responses[item.id].error or "not graded")
        if item.id in responses
        else "not asked yet"
        for item in items
        if item.id not in known
    }
    return Run(
        folder=folder,
        name=str(record["name"]),
        config=config,
        record=record,
        graded=tuple(graded),
        measures=measure(graded),
        failed=failed,
    )


def _record(
    folder: Path,
    config: ThinkConfig,
    description: Mapping[str, Any],
    name: str,
    attributes: Mapping[str, float | str],
) -> dict[str, Any]:
    """Return what ``run.json`` says, new or of a run that is gone on with."""
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "name": name,
        "config": config.to_json(),
        "questions_hash": config.questions_hash(),
        "fold_seeds": config.fold_seeds(),
        "model": dict(description),
        "attributes": dict(attributes),
        "versions": _versions(),
        "checker": CHECKER_VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "started": _now(),
        "finished": None,
    }
    # Nothing answered is nothing to mix up: an address or a name is corrected in its folder.
    if not (folder / RUN).exists() or not _answered(folder):
        write_durably(folder / RUN, json_bytes(values, indent=2))
        return values
    old = _read_record(folder)
    other = differences(old["config"], values["config"])
    other += differences(_identity(old["model"]), _identity(description), "model.")
    if other:
        raise StoreMismatchError(
            f"{folder} holds a run with another configuration ({'; '.join(other[:3])}); choose "
            "another folder, or ask as before to go on"
        )
    return {**old, "name": name, "attributes": {**old["attributes"], **values["attributes"]}}


def _check_folder(folder: Path) -> None:
    """Refuse a folder of something else before anything is opened or written."""
    if (folder / RUN).exists():
        _read_record(folder)
    else:
        check_free(folder, "run of LLMThinkBench")


def _answered(folder: Path) -> bool:
    return any(each.error is None for each in ResponseStore(folder / RESPONSES).read().values())


def _identity(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return what makes a model the same one; here also where it is served."""
    address = description.get("base_url")
    return identity(description) | ({} if address is None else {"base_url": address})


def _config_of(folder: Path, record: Mapping[str, Any]) -> ThinkConfig:
    try:
        return ThinkConfig.from_json(record["config"])
    except MisuseError as error:
        raise ConfigError(f"{folder / RUN}: {error}") from error


def _read_record(folder: Path) -> dict[str, Any]:
    try:
        record = read_json(folder / RUN)
    except FileNotFoundError as error:
        raise MisuseError(
            f"{folder}: no run here (no {RUN}); start one with stp think run MODEL --out FOLDER"
        ) from error
    kinds = {"name": str, "config": dict, "model": dict, "attributes": dict}
    if record.get("schema") != SCHEMA or not all(
        isinstance(record.get(key), kind) for key, kind in kinds.items()
    ):
        raise ConfigError(f"{folder / RUN}: it is no record of a run that this version reads")
    return record


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for package in ("stp-engine", "transformers", "torch", "vllm", "inspect_ai", "reasoning-gym"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _write_questions(folder: Path, items: list[TaskQuestion]) -> None:
    rows = [
        {
            "id": item.id,
            "task": item.task,
            "fold": item.fold,
            "size": item.size,
            "prompt": item.question.prompt,
            "reference": item.question.reference,
        }
        for item in items
    ]
    write_durably(folder / QUESTIONS, b"".join(json_bytes(row) + b"\n" for row in rows))
