"""OvT-General (paper 004) as four benchmarks, one for each answer type, so that it can be probed.

The questions are those of a data set that ``stp optimal build`` wrote (``data_dir`` is its folder),
of a file ``ovt_general.jsonl`` there, or the published data set. Numbers and choices are judged by
rule; words by rule where they are the reference's own, and otherwise by a model
(``stp optimal grade CAMPAIGN --judge MODEL``).
"""

import os
from dataclasses import dataclass
from pathlib import Path

from data.benchmark import Benchmark
from data.errors import MisuseError
from data.files import SUFFIXES
from data.optimal import prompt_text
from data.optimal.general import (
    ANSWER_TYPES,
    JUDGED,
    PUBLISHED,
    QUESTIONS_FILE,
    AnswerType,
    load_general,
)
from data.public import DATA_DIR_VARIABLE
from data.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralSource:
    """The questions of one answer type."""

    answer_type: AnswerType
    licence: str = "as its makers state it"

    def describe(self) -> str:
        """Return where they come from."""
        return f"OvT-General, {self.answer_type}"

    def available(self, data_dir: Path | None) -> str:
        """Return the local file, or ``""``."""
        return str(self._file(data_dir) or "")

    def questions(self, benchmark: str, data_dir: Path | None, limit: int | None) -> list[Question]:
        """Return all questions of the type.

        Raises
        ------
        data.errors.MisuseError
            If a folder was named and has no such file, or nothing can be read.
        """
        file = self._file(data_dir)
        if file is None and (data_dir or os.environ.get(DATA_DIR_VARIABLE)):
            raise MisuseError(
                f"{benchmark}: neither {QUESTIONS_FILE} nor ovt_general.jsonl is in "
                f"{data_dir or os.environ[DATA_DIR_VARIABLE]}; make it with `stp optimal build`"
            )
        found = load_general(PUBLISHED if file is None else str(file))
        return [each.as_question() for each in found if each.answer_type == self.answer_type]

    def _file(self, data_dir: Path | None) -> Path | None:
        named = os.environ.get(DATA_DIR_VARIABLE)
        folder = data_dir or (Path(named) if named else None)
        if folder is None:
            return None
        names = (QUESTIONS_FILE, *(f"ovt_general{suffix}" for suffix in SUFFIXES))
        return next((folder / name for name in names if (folder / name).is_file()), None)


_KINDS = {"numeric": "math", "choice": "choice", "short": JUDGED, "open": JUDGED}

BENCHMARKS = tuple(
    Benchmark(
        name=f"ovt-general-{answer_type}",
        group="OvT-General",
        instruction=prompt_text("answer"),
        answer_kind=_KINDS[answer_type],
        expected_count=None,
        source=GeneralSource(answer_type=answer_type),
    )
    for answer_type in ANSWER_TYPES
)
