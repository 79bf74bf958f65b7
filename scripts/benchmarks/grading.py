r"""How fast and how right is grading? Ours against public graders called on each response.

    python scripts/benchmarks/grading.py speed      one million probe answers, some minutes
    python scripts/benchmarks/grading.py quality    precision and recall on our sets of responses

The speed run makes answers as probes of reasoning models look: 100 questions (integers, fractions,
roots, intervals, expressions), a few hundred distinct answers per question with a skewed
distribution, each inside text of 100 to 1,500 characters. math-verify is timed on a sample of the
same responses in the same run, and its time is extrapolated to all of them on two cores.
"""

import argparse
import json
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from math_verify import (
    ExprExtractionConfig,
    LatexExtractionConfig,
    StringExtractionConfig,
    parse,
    verify,
)
from mathruler.grader import extract_boxed_content, grade_answer

from data.question import Question
from evaluator.answers import Checker
from evaluator.answers.verdict import FALLBACK

ANSWERS = 1_000_000
QUESTIONS = 100
DISTINCT = 300
SAMPLE = 1_000
CHUNK = 50_000
CORES = 2
TABLES = Path(__file__).resolve().parents[2] / "tests" / "answers"
PROSE = (
    "We continue from the factorisation above and simplify both sides. ",
    "Let $x = \\frac{a+b}{2}$ and note that $x > 0$. ",
    "Substituting back gives $n^2 - 5n + 6 = 0$, so the cases are as listed. ",
    "By symmetry the other case gives the same value. ",
    "**Step 3:** Count the remaining pairs.\n\n",
    "Adding these up, we get the total. ",
)
ENDINGS = (
    "**Final Answer**\n\\boxed{%s}",
    "Thus, the answer is $\\boxed{%s}$.",
    "\\[\n\\boxed{%s}\n\\]",
    "The final answer is $\\boxed{%s}$",
    "Therefore the value is \\(\\boxed{%s}\\).",
)


def reference(number: int, source: random.Random) -> str:
    """Make a reference of one of the usual kinds."""
    value = source.randrange(2, 1000)
    return (
        str(value),
        rf"\frac{{{value}}}{{{value + 2 + value % 2}}}",
        str(value),
        rf"{value % 17 + 2}\sqrt{{{value % 29 + 30}}}",
        str(value),
        rf"[{value % 11}, {value % 11 + 5})",
        str(value),
        rf"{value % 7 + 2}x + {value % 13 + 1}",
        str(value),
        rf"{value % 19 + 2}\pi",
    )[number % 10]


def wrong_answers(gold: str, source: random.Random) -> list[str]:
    """Make answers that differ from a reference in their numbers, as wrong answers do."""
    wrong: dict[str, None] = {}
    for _ in range(4 * DISTINCT):
        parts = []
        digits = ""
        for character in gold + " ":
            if character.isdigit():
                digits += character
                continue
            if digits:
                parts.append(str(max(1, int(digits) + source.randrange(-400, 401))))
                digits = ""
            parts.append(character)
        answer = "".join(parts).strip()
        if answer != gold:
            wrong[answer] = None
        if len(wrong) >= DISTINCT:
            break
    return list(wrong)


def responses(questions: list[Question], seed: int) -> Iterator[tuple[Question, str]]:
    """Yield all responses, question by question."""
    source = random.Random(seed)
    for question in questions:
        answers = [question.reference, *wrong_answers(question.reference, source)]
        wrong_weights = [1 / rank for rank in range(1, len(answers))]
        weights = [sum(wrong_weights), *wrong_weights]  # half of the answers are right
        drawn = source.choices(answers, weights, k=ANSWERS // QUESTIONS)
        for answer in drawn:
            prose = "".join(source.choices(PROSE, k=source.randrange(1, 24)))
            yield question, prose + source.choice(ENDINGS) % answer


def speed() -> None:
    """Grade all answers with ours, a sample with math-verify."""
    source = random.Random(1)
    questions = [
        Question(id=str(n), prompt="", reference=reference(n, source), answer_kind="math")
        for n in range(QUESTIONS)
    ]
    sampled: list[tuple[tuple[Question, str], bool]] = []
    pick = random.Random(2)
    graded = characters = 0
    ours_seconds = ours_cpu_seconds = theirs_cpu_seconds = 0.0
    distinct: set[tuple[str, str | None]] = set()
    chunk: list[tuple[Question, str]] = []
    with Checker(workers=CORES) as checker:
        for pair in responses(questions, seed=3):
            chunk.append(pair)
            if len(chunk) < CHUNK and graded + len(chunk) < ANSWERS:
                continue
            start, start_cpu = time.perf_counter(), time.process_time()
            verdicts = checker.check_many(chunk)
            ours_seconds += time.perf_counter() - start
            ours_cpu_seconds += time.process_time() - start_cpu
            graded += len(chunk)
            characters += sum(len(response) for _, response in chunk)
            distinct.update(
                (question.id, verdict.answer)
                for (question, _), verdict in zip(chunk, verdicts, strict=True)
            )
            chosen = pick.sample(range(len(chunk)), SAMPLE * CHUNK // ANSWERS)
            sampled += [(chunk[index], verdicts[index].right) for index in chosen]
            chunk = []
    theirs_seconds = 0.0
    differing = []
    for (question, response), right in sampled:
        start, start_cpu = time.perf_counter(), time.process_time()
        theirs = math_verify_says(question, response)
        theirs_seconds += time.perf_counter() - start
        theirs_cpu_seconds += time.process_time() - start_cpu
        if theirs != right:
            differing.append((question.reference, response[-60:], right, theirs))
    all_theirs_cpu = theirs_cpu_seconds / len(sampled) * graded
    all_theirs = theirs_seconds / len(sampled) * graded / CORES
    rows = (
        ("answers", f"{graded:,}, {characters / graded:.0f} characters on average"),
        ("distinct answers", f"{len(distinct):,}, {len(distinct) / QUESTIONS:.0f} a question"),
        ("ours", f"{ours_seconds:.1f} s, {ours_cpu_seconds:.1f} s of them CPU time"),
        ("ours, one answer", f"{ours_cpu_seconds / graded * 1e6:.1f} us of CPU time"),
        (
            "math-verify on each",
            f"{all_theirs:.0f} s on {CORES} cores, from {len(sampled)} answers",
        ),
        (
            "math-verify, one answer",
            f"{theirs_cpu_seconds / len(sampled) * 1e3:.1f} ms of CPU time",
        ),
        ("times faster", f"{all_theirs / ours_seconds:.0f}"),
        ("times faster by CPU time", f"{all_theirs_cpu / CORES / ours_cpu_seconds:.0f}"),
        ("differing verdicts", f"{len(differing)} of {len(sampled)}"),
    )
    for name, value in rows:
        print(f"{name:26} {value}")
    for row in differing[:20]:
        print("   ", row)


def math_verify_says(question: Question, response: str) -> bool:
    """Call math-verify as its documentation shows."""
    if question.answer_kind == "choice":
        letters = tuple("ABCDEFGHIJ"[: len(question.choices)])
        config = [StringExtractionConfig(strings=letters)]
        gold, config_used = [question.reference.lower()], config
    else:
        config_used = [LatexExtractionConfig(), ExprExtractionConfig()]
        gold = parse(f"${question.reference}$", config_used)
    return bool(verify(gold, parse(response, config_used)))


def table(kind: str) -> Iterator[tuple[Question, str, bool]]:
    """Read one of the tables of responses with their right verdicts."""
    for line in (TABLES / f"cases_{kind}.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        if not line or line.startswith("# "):
            continue
        right, gold, response, _, *more = line.split("\t")
        choices: tuple[str, ...] = ()
        if kind == "choice":
            choices = tuple((more[0] if more else "12 m/s|15 m/s|18 m/s|21 m/s").split("|"))
        answer_kind = more[0] if kind == "task" else kind
        question = Question(
            id=line, prompt="", reference=gold, answer_kind=answer_kind, choices=choices
        )
        yield question, response.replace("⏎", "\n"), right == "yes"


def written_set() -> Iterator[tuple[Question, str, bool]]:
    """Read the responses written by somebody who had not seen the rules."""
    for path in sorted(TABLES.glob("set_*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            row = json.loads(line)
            question = Question(
                id=f"{path.stem}-{number}",
                prompt=row.get("question") or "",
                reference=row["reference"],
                answer_kind=row["kind"],
                choices=tuple(row.get("choices") or ()),
                language=row.get("language") or "",
            )
            if row["kind"] in ("math", "choice"):
                yield question, row["response"], row["right"]


def mathruler_says(question: Question, response: str) -> bool:
    """Call mathruler as its documentation shows: the box's content against the reference."""
    return bool(grade_answer(extract_boxed_content(response), question.reference))


def quality() -> None:
    """Print precision and recall of ours and of two public graders on all sets."""
    sets = {
        **{f"table of {kind}": list(table(kind)) for kind in ("math", "choice", "task")},
        "written by others": list(written_set()),
    }
    for name, rows in sets.items():
        wanted = [right for _, _, right in rows]
        print(f"{name}: {len(rows)} responses, {sum(wanted)} right")
        with Checker() as checker:
            verdicts = checker.check_many([(q, r) for q, r, _ in rows])
        ours = [verdict.right for verdict in verdicts]
        fallen_back = Counter(
            (verdict.right, right)
            for verdict, right in zip(verdicts, wanted, strict=True)
            if verdict.reason.endswith(FALLBACK)
        )
        print(
            f"  by fallback: {sum(fallen_back.values())} responses; right ones accepted "
            f"{fallen_back[True, True]}, wrong ones accepted {fallen_back[True, False]}"
        )
        verdicts_of = {
            "ours": ours,
            "math-verify": [math_verify_says(question, response) for question, response, _ in rows],
            "mathruler": [mathruler_says(question, response) for question, response, _ in rows],
        }
        for grader, says in verdicts_of.items():
            counts = Counter(zip(says, wanted, strict=True))
            true = counts[True, True]
            precision = true / max(1, true + counts[True, False])
            recall = true / max(1, true + counts[False, True])
            agrees = (true + counts[False, False]) / max(1, len(rows))
            print(
                f"  {grader:12} right verdicts {100 * agrees:5.1f} %  precision {precision:.3f}  "
                f"recall {recall:.3f}  wrong accepted {counts[True, False]}  "
                f"right refused {counts[False, True]}"
            )


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("what", choices=("speed", "quality"))
    logging.disable(logging.CRITICAL)
    sys.setrecursionlimit(5000)
    {"speed": speed, "quality": quality}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
