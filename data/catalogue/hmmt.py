r"""HMMT February 2025: 30 problems of the Harvard-MIT Mathematics Tournament, from MathArena.

One real record::

    {"problem_idx": 10, "answer": "\\frac{-1+\\sqrt{17}}{2}, \\frac{-1-\\sqrt{17}}{2}", ...}

Problem 10 asks for all values of an expression: both must be given, in any order.
"""

from data.benchmark import MATH_INSTRUCTION, Benchmark
from data.contests import parse_contest
from data.public import PublicSource

BENCHMARK = Benchmark(
    name="hmmt_feb_2025",
    group="HMMT",
    instruction=MATH_INSTRUCTION,
    answer_kind="math",
    expected_count=30,
    source=PublicSource(
        repository="MathArena/hmmt_feb_2025",
        revision="6fdc4277120810ff75aa22d2d5489b91f7a262a1",
        files=("data/train-00000-of-00001.parquet",),
        licence="CC-BY-NC-SA-4.0",
        rows_expected=30,
        local_names=("hmmt_feb_2025",),
        parse=parse_contest,
    ),
)
