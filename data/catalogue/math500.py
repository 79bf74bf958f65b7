r"""MATH-500 (Lightman et al. 2023): 500 problems of the MATH test set, whole and by level.

One real record::

    {"problem": "Convert the point $(0,3)$ in rectangular coordinates to polar coordinates. ...",
     "solution": "We have that ...", "answer": "\\left( 3, \\frac{\\pi}{2} \\right)",
     "subject": "Precalculus", "level": 2, "unique_id": "test/precalculus/807.json"}

The problems of levels 1 and 2 (43 and 90) are OvT-Math of OptimalThinkingBench (paper 004).
"""

from collections.abc import Callable, Sequence

from data.benchmark import MATH_INSTRUCTION, Benchmark
from data.files import RawRow, text_of
from data.public import PublicSource
from data.question import Question

LEVEL_COUNTS = {1: 43, 2: 90, 3: 105, 4: 128, 5: 134}
"""Problems at each level; together 500."""


def parse(benchmark: str, rows: Sequence[RawRow], where: str) -> list[Question]:
    """Return one question a row, under the problem's place in the MATH test set."""
    questions = []
    for number, row in enumerate(rows, start=1):
        place = f"{where}, row {number}"
        questions.append(
            Question(
                id=text_of(row, "unique_id", place).removeprefix("test/").removesuffix(".json"),
                prompt=text_of(row, "problem", place),
                reference=text_of(row, "answer", place),
                answer_kind="math",
            )
        )
    return questions


def parse_level(level: int) -> Callable[[str, Sequence[RawRow], str], list[Question]]:
    """Return a parser that keeps the rows of one level."""

    def parse_rows(benchmark: str, rows: Sequence[RawRow], where: str) -> list[Question]:
        kept = [
            row
            for number, row in enumerate(rows, start=1)
            if text_of(row, "level", f"{where}, row {number}") == str(level)
        ]
        return parse(benchmark, kept, f"{where} (level {level})")

    return parse_rows


def _source(parser: Callable[[str, Sequence[RawRow], str], list[Question]]) -> PublicSource:
    return PublicSource(
        repository="HuggingFaceH4/MATH-500",
        revision="6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
        files=("test.jsonl",),
        licence="MIT",
        rows_expected=500,
        local_names=("math500", "math_500"),
        parse=parser,
    )


BENCHMARKS = (
    Benchmark(
        name="math500",
        group="MATH",
        instruction=MATH_INSTRUCTION,
        answer_kind="math",
        expected_count=500,
        source=_source(parse),
    ),
    *(
        Benchmark(
            name=f"math500_level_{level}",
            group=f"MATH-500 level {level}",
            instruction=MATH_INSTRUCTION,
            answer_kind="math",
            expected_count=count,
            source=_source(parse_level(level)),
        )
        for level, count in LEVEL_COUNTS.items()
    ),
)
