r"""How well and how fast answers to the generated tasks are parsed and judged.

    python scripts/benchmarks/task_answers.py

Responses: tests/thinkbench/responses.py (made up in the style of models, over all fourteen tasks).
Long ones: a megabyte before the answer, of several kinds. CPU time of this process, one thread.
"""

import statistics
import time

from data.question import Question
from evaluator.answers.tasks import TaskJudge
from tests.thinkbench.responses import cases

MEGABYTE = 1_000_000
LONG = {
    "prose": "Let me add the next number, 17, to what I have so far, which is 105. ",
    "boxes": r"So it is \boxed{12}. Wait, no. ",
    "open braces": r"\boxed{",
    "one letter": "a",
    "spaces": " ",
    "signs": "answer is < ",
    "answer labels": "Answer: 12\n",
    "numbers": "1, 2, 3, ",
    "open thinking": "<think>",
    "stars": "*",
}


def judged(question: Question, response: str) -> tuple[bool, float]:
    judge = TaskJudge(question)
    started = time.process_time()
    answer = judge.extract(response)
    verdict = judge.quick(answer) if answer is not None else None
    return verdict is not None and verdict.right, time.process_time() - started


def main() -> None:
    given = list(cases())
    judged(given[0].question, given[0].response)
    outcomes = [(case, *judged(case.question, case.response)) for case in given]
    right = sum(found == case.right for case, found, _ in outcomes)
    accepted = sum(found and not case.right for case, found, _ in outcomes)
    times = sorted(seconds for _, _, seconds in outcomes)
    print(f"{len(given):,} responses: {100 * right / len(given):.2f} % judged right")
    print(f"wrong answers accepted: {accepted}")
    print(
        f"time per response: median {1e3 * statistics.median(times):.3f} ms, 99th percentile "
        f"{1e3 * times[len(times) * 99 // 100]:.3f} ms, most {1e3 * times[-1]:.3f} ms"
    )
    chosen = {case.question.answer_kind: case.question for case in given}
    for name, piece in LONG.items():
        text = piece * (MEGABYTE // len(piece)) + "\n\nThe answer is \\boxed{12}."
        slowest = max(
            min(judged(question, text)[1] for _ in range(3)) for question in chosen.values()
        )
        print(f"1 MB of {name}: {1e3 * slowest:.1f} ms (slowest task)")


if __name__ == "__main__":
    main()
