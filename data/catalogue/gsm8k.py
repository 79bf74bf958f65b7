r"""GSM8K: grade school word problems (Cobbe et al. 2021), the test split of 1,319.

One real record::

    {"question": "A robe takes 2 bolts of blue fiber and half that much white fiber. ...",
     "answer": "It takes 2/2=<<2/2=1>>1 bolt of white fiber\n...\n#### 3"}
"""

from collections.abc import Sequence

from data.benchmark import MATH_INSTRUCTION, Benchmark
from data.errors import MisuseError
from data.files import RawRow, text_of
from data.public import PublicSource
from data.question import Question


def parse(benchmark: str, rows: Sequence[RawRow], where: str) -> list[Question]:
    """Return one question a row; the reference is the number after ``####``, without commas."""
    questions = []
    for number, row in enumerate(rows, start=1):
        place = f"{where}, row {number}"
        _, marker, final = text_of(row, "answer", place).rpartition("####")
        if not marker:
            raise MisuseError(f"{place}: no '#### answer' at the end of the solution")
        questions.append(
            Question(
                id=f"{benchmark}-{number}",
                prompt=text_of(row, "question", place),
                reference=final.strip().replace(",", ""),
                answer_kind="math",
            )
        )
    return questions


BENCHMARK = Benchmark(
    name="gsm8k",
    group="GSM8K",
    instruction=MATH_INSTRUCTION,
    answer_kind="math",
    expected_count=1319,
    source=PublicSource(
        repository="openai/gsm8k",
        revision="740312add88f781978c0658806c59bc2815b9866",
        files=("main/test-00000-of-00001.parquet",),
        licence="MIT",
        rows_expected=1319,
        local_names=("gsm8k", "gsm8k_test"),
        parse=parse,
    ),
)
