"""Made-up curves and texts, for tests of what comes after probing."""

import numpy as np

from evaluator.report.data import AnswerCount, QuestionText, ReportData, TrajectoryText
from stp.curves import Curves


def make_curves(*, models=1, benchmarks=1, questions=4, trajectories=3, probes=4, seed=0):
    """Return curves of every model on every question; about a third of them flat or tied."""
    rng = np.random.default_rng(seed)
    tokens, correct, offsets, rows = [], [], [0], []
    for model in range(models):
        for benchmark in range(benchmarks):
            for question in range(questions):
                for _ in range(trajectories):
                    steps = int(rng.integers(0, 7))
                    tokens += [0, *np.cumsum(rng.integers(1, 30, steps)).tolist()]
                    level = rng.integers(0, probes + 1, steps + 1)
                    correct += (level if rng.random() < 0.7 else level * 0 + level[0]).tolist()
                    offsets.append(len(tokens))
                    rows.append((model, benchmark, benchmark * questions + question))
    model_s, benchmark_s, question_s = np.array(rows).T
    return Curves(
        tokens=np.array(tokens),
        correct=np.array(correct),
        trajectory_offsets=np.array(offsets),
        question=question_s,
        benchmark=benchmark_s,
        model=model_s,
        original_correct=rng.integers(0, 2, len(rows)),
        probes=probes,
        question_names=tuple(f"q{i}" for i in range(benchmarks * questions)),
        benchmark_names=tuple(f"bench{i}" for i in range(benchmarks)),
        model_names=tuple(f"model{i}" for i in range(models)),
    )


def make_report(curves, *, step_text="Step {k}.\n\n", reply="So \\boxed{{7}}.", **changes):
    """Return report data in which every trajectory has a text."""
    texts = []
    for s in range(curves.trajectories):
        part = slice(curves.trajectory_offsets[s], curves.trajectory_offsets[s + 1])
        right = curves.correct[part].tolist()
        texts.append(
            TrajectoryText(
                trajectory=s,
                steps=tuple(step_text.format(k=k) for k in range(1, len(right))),
                answers=tuple(
                    tuple(
                        AnswerCount(answer=answer, right=ok, count=count, reply=reply)
                        for answer, ok, count in (
                            ("7", True, c),
                            (None, False, curves.probes - c),
                        )
                        if count
                    )
                    for c in right
                ),
                final_reply=reply,
                final_answer="7",
            )
        )
    values = {
        "name": "made up",
        "curves": curves,
        "trajectories": tuple(texts),
        "questions": tuple(
            QuestionText(question=q, id=f"q{q}", prompt=f"Question {q}?", reference="7")
            for q in sorted(set(curves.question.tolist()))
        ),
        "selection_note": "All are shown.",
        "step_tokens": 16,
        "settings": (("Probes", str(curves.probes)),),
    }
    return ReportData(**(values | changes))
