"""AIME 2024, 2025 and 2026: 30 problems each, integer answers from 0 to 999, one group of 90.

One real record::

    {"problem_idx": 1, "answer": 70,
     "problem": "Find the sum of all integer bases $b>9$ for which $17_{b}$ is a divisor of ..."}

The problems are the Mathematical Association of America's.
"""

from data.benchmark import MATH_INSTRUCTION, Benchmark
from data.contests import parse_integer_contest
from data.public import PublicSource

REPOSITORIES = {
    2024: (
        "HuggingFaceH4/aime_2024",
        "2fe88a2f1091d5048c0f36abc874fb997b3dd99a",
        "none stated (problems: MAA)",
    ),
    2025: (
        "MathArena/aime_2025",
        "c94da77eb22bbd6439e62a323bec18493a421302",
        "CC-BY-NC-SA-4.0 (problems: MAA)",
    ),
    2026: (
        "MathArena/aime_2026",
        "d2de22f3c656b4f56cf8981212186377d1e23bc3",
        "CC-BY-NC-SA-4.0 (problems: MAA)",
    ),
}
"""Year to repository, revision and licence."""

BENCHMARKS = tuple(
    Benchmark(
        name=f"aime{year}",
        group="AIME",
        instruction=MATH_INSTRUCTION,
        answer_kind="math",
        expected_count=30,
        source=PublicSource(
            repository=repository,
            revision=revision,
            files=("data/train-00000-of-00001.parquet",),
            licence=licence,
            rows_expected=30,
            local_names=(f"aime{year}", f"aime_{year}"),
            parse=parse_integer_contest,
        ),
    )
    for year, (repository, revision, licence) in REPOSITORIES.items()
)
