"""The demo model's questions: arithmetic that it has not seen in training. Nothing to download."""

from collections.abc import Sequence

from data.benchmark import Benchmark, GeneratedSource
from data.demo import INSTRUCTION, demo_questions
from data.question import Question
from data.seeds import PAPER_SEED

COUNT = 200


def make(count: int) -> Sequence[Question]:
    """Return the first ``count`` held-out questions."""
    return demo_questions(count, PAPER_SEED)


BENCHMARK = Benchmark(
    name="demo",
    group="demo",
    instruction=INSTRUCTION,
    answer_kind="math",
    expected_count=COUNT,
    source=GeneratedSource(make=make, count=COUNT, description="generated (data.demo)"),
)
