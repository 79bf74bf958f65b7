"""A run of LLMThinkBench on disk, read back.

A run's folder::

    run.json           what was asked of whom; see :mod:`evaluator.runs.record`
    questions.jsonl    the questions with their references
    responses.jsonl    raw responses, appended as they come
    graded.jsonl       parsed answers, verdicts, counts, kinds of error, patterns
    grading.json       what that was made from, so that it is seen where it no longer fits
    tasks.csv          a row per task, category and overall
    measures.json      the same, and folds

Only ``responses.jsonl`` costs anything; the rest is made again whenever a run ends.
"""

import logging
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from data.errors import StoreError
from evaluator.runs.graded import GradedFrom, StaleGradesError, read_graded
from evaluator.runs.plain import from_plain
from evaluator.runs.record import RECORD, RunRecord, read_record
from evaluator.thinkbench.config import ThinkConfig
from evaluator.thinkbench.grading import Graded, grade_responses
from evaluator.thinkbench.measures import Measures, measure
from evaluator.thinkbench.questions import TaskQuestion, plan_questions
from stp.asking import Response, ResponseStore

_LOG = logging.getLogger(__name__)

KIND: Final = "stp think run"
QUESTIONS: Final = "questions.jsonl"
RESPONSES: Final = "responses.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkRun:
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
        What ``run.json`` says.
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
    record: RunRecord
    graded: tuple[Graded, ...]
    measures: Measures
    failed: Mapping[str, str]

    @property
    def complete(self) -> bool:
        """Whether every question has a response."""
        return not self.failed


def load_run(folder: str | Path) -> ThinkRun:
    """Return a run from its folder.

    The verdicts are those of ``graded.jsonl`` only if it is as it was written, from the responses
    that are there, by this parser. Otherwise they are made again, and a warning says so: no number
    comes from a file that was changed, or is older than its responses.

    Raises
    ------
    data.errors.MisuseError
        If there is no run in the folder, or it was never graded.
    data.errors.StoreError
        If a file of it cannot be read, or the responses are gone.
    """
    path = Path(folder).expanduser()
    record, config = read_asked(path)
    items, responses = plan_questions(config), read_responses(path)
    try:
        rows, _ = read_graded(graded_source(path, config))
        graded = [Graded(**row) for row in rows]
    except StaleGradesError as error:
        _LOG.warning("%s; graded again in memory for now", error)
        graded = grade_responses(items, responses, record.models.get("model"))
    return make_run(path, config, record, graded, items, responses)


def read_asked(folder: Path) -> tuple[RunRecord, ThinkConfig]:
    """Return the record of a run, and what it asked.

    Raises
    ------
    data.errors.MisuseError
        If there is no run in the folder, or not one of this version.
    """
    record = read_record(folder, KIND)
    return record, from_plain(ThinkConfig, record.asked, str(folder / RECORD))


def read_responses(folder: Path) -> Mapping[str, Response]:
    """Return the responses of a run, by question id.

    Raises
    ------
    data.errors.StoreError
        If they cannot be read, or are gone.
    """
    path = folder / RESPONSES
    if not path.exists():
        raise StoreError(f"{path}: is not there, and all else is made from it")
    return ResponseStore(path).read()


def graded_source(folder: Path, config: ThinkConfig) -> GradedFrom:
    """Return what the graded rows of a run are made from."""
    return GradedFrom(
        folder=folder,
        # Rows of another shape are made again, not read.
        asked={"questions": config.questions_hash(), "rows": 3},
        files=(RESPONSES,),
        again=f"stp think grade {shlex.quote(str(folder))}",
    )


def make_run(
    folder: Path,
    config: ThinkConfig,
    record: RunRecord,
    graded: Sequence[Graded],
    items: Sequence[TaskQuestion],
    responses: Mapping[str, Response],
) -> ThinkRun:
    """Put a run together; what failed is what has no grade."""
    known = {row.id for row in graded}
    failed = {
        item.id: (responses[item.id].error or "not graded")
        if item.id in responses
        else "not asked yet"
        for item in items
        if item.id not in known
    }
    return ThinkRun(
        folder=folder,
        name=record.name,
        config=config,
        record=record,
        graded=tuple(graded),
        measures=measure(graded),
        failed=failed,
    )
