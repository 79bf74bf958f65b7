r"""MATH by level (Hendrycks et al. 2021): the whole test set of 5,000, one benchmark a level.

One real record::

    {"problem": "How many vertical asymptotes does the graph of $y=\\frac{2}{x^2+x-6}$ have?",
     "level": "Level 3", "type": "Algebra",
     "solution": "The denominator of the rational function factors into ... $\\boxed{2}$ ..."}

Problems have no id and no answer of their own there: an id is the subject and the row's number
within it, the reference what the solution's last box holds.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from data.benchmark import MATH_INSTRUCTION, Benchmark
from data.errors import MisuseError
from data.files import RawRow, text_of
from data.public import PublicSource
from data.question import Question

LEVEL_COUNTS = {1: 437, 2: 894, 3: 1131, 4: 1214, 5: 1324}
"""Problems of the test set at each level; together 5,000."""

SUBJECTS = (
    "algebra",
    "counting_and_probability",
    "geometry",
    "intermediate_algebra",
    "number_theory",
    "prealgebra",
    "precalculus",
)

BOX_OPENINGS = ("\\boxed", "\\fbox")
"""The commands that mark an answer in a solution."""


def last_box(solution: str) -> str:
    r"""Return what the last box of a solution holds, or ``""`` if there is none.

    Examples
    --------
    >>> last_box(r"First $\boxed{1}$, then $\boxed{\frac{1}{2}}$.")
    '\\frac{1}{2}'
    >>> last_box(r"It is $\boxed 7$.")
    '7'
    """
    start = max(solution.rfind(opening) for opening in BOX_OPENINGS)
    if start < 0:
        return ""
    inside = solution[start:].split("boxed", 1)[-1].removeprefix("\\fbox").lstrip()
    if not inside.startswith("{"):
        # TeX takes a single token if there are no braces; these solutions mean a number.
        return inside.split("$")[0].split()[0].rstrip(".") if inside.split("$")[0].split() else ""
    depth = 0
    for place, sign in enumerate(inside):
        escaped = place > 0 and inside[place - 1] == "\\"
        depth += (sign == "{" and not escaped) - (sign == "}" and not escaped)
        if depth == 0:
            return inside[1:place].strip()
    return ""


def parse_level(level: int) -> Callable[[str, Sequence[RawRow], str], list[Question]]:
    """Return a parser that keeps the rows of one level."""

    def parse(benchmark: str, rows: Sequence[RawRow], where: str) -> list[Question]:
        rows_of_subject: Counter[str] = Counter()
        questions = []
        for number, row in enumerate(rows, start=1):
            place = f"{where}, row {number}"
            subject = text_of(row, "type", place).lower().replace(" & ", "_and_").replace(" ", "_")
            rows_of_subject[subject] += 1
            if text_of(row, "level", place) != f"Level {level}":
                continue
            reference = last_box(text_of(row, "solution", place))
            if not reference:
                raise MisuseError(f"{place}: the solution has no box")
            questions.append(
                Question(
                    id=f"{subject}/{rows_of_subject[subject]}",
                    prompt=text_of(row, "problem", place),
                    reference=reference,
                    answer_kind="math",
                )
            )
        return questions

    return parse


BENCHMARKS = tuple(
    Benchmark(
        name=f"math_level_{level}",
        group=f"MATH level {level}",
        instruction=MATH_INSTRUCTION,
        answer_kind="math",
        expected_count=count,
        source=PublicSource(
            repository="EleutherAI/hendrycks_math",
            revision="21a5633873b6a120296cce3e2df9d5550074f4a3",
            files=tuple(f"{subject}/test-00000-of-00001.parquet" for subject in SUBJECTS),
            licence="MIT",
            rows_expected=5000,
            local_names=("math", "math_test"),
            parse=parse_level(level),
        ),
    )
    for level, count in LEVEL_COUNTS.items()
)
