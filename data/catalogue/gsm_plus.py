r"""GSM-Plus: GSM8K's test questions, each varied in eight ways (Li et al. 2024, arXiv 2402.19255).

One real kind of record::

    {"question": "...", "solution": "...", "answer": "9.0",
     "perturbation_type": "numerical substitution", "seed_question": "...", "seed_solution": "...",
     "seed_answer": "18"}

The eighth variation, ``critical thinking``, takes out what is needed for an answer; its reference
is ``None``. Whether a response says that there is no answer is not decided by comparing
mathematics, so these questions are left out: seven eighths stay. Paper 000 sets GSM-Plus beside
its own tasks (Figure 2).
"""

from collections.abc import Sequence
from typing import Final

from data.benchmark import MATH_INSTRUCTION, Benchmark
from data.errors import MisuseError
from data.files import RawRow, text_of
from data.public import PublicSource
from data.question import Question

UNANSWERABLE: Final = "critical thinking"
VARIATIONS: Final = 8


def parse(benchmark: str, rows: Sequence[RawRow], where: str) -> list[Question]:
    """Return one question a row that has an answer; ids count all rows."""
    questions = []
    for number, row in enumerate(rows, start=1):
        place = f"{where}, row {number}"
        if text_of(row, "perturbation_type", place).strip().lower() == UNANSWERABLE:
            continue
        answer = text_of(row, "answer", place).strip().replace(",", "")
        if not answer or answer == "None":
            raise MisuseError(f"{place}: no answer, and it is not of the kind {UNANSWERABLE!r}")
        questions.append(
            Question(
                id=f"{benchmark}-{number}",
                prompt=text_of(row, "question", place),
                reference=answer,
                answer_kind="math",
            )
        )
    return questions


def _benchmark(name: str, split: str, seeds: int) -> Benchmark:
    return Benchmark(
        name=name,
        group="GSM-Plus",
        instruction=MATH_INSTRUCTION,
        answer_kind="math",
        expected_count=seeds * (VARIATIONS - 1),
        source=PublicSource(
            repository="qintongli/GSM-Plus",
            revision="806edb85c803b279a1c34efb3934acd35e7645a5",
            files=(f"default/{split}/0000.parquet",),
            licence="CC-BY-SA-4.0",
            rows_expected=seeds * VARIATIONS,
            local_names=(name, f"gsm_plus_{split}", f"{split}-00000-of-00001"),
            parse=parse,
        ),
    )


BENCHMARKS = (
    _benchmark("gsm_plus", "test", 1319),
    _benchmark("gsm_plus_mini", "testmini", 300),
)
