"""Made-up curves and texts, for tests of what comes after probing."""

from contextlib import contextmanager

import numpy as np
import pytest

from evaluator.report.data import ReportData
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


def make_report(curves, **changes):
    """Return report data of curves."""
    values = {
        "name": "made up",
        "curves": curves,
        "campaign": "some-campaign",
        "step_tokens": 16,
        "settings": (("Probes", str(curves.probes)),),
    }
    return ReportData(**(values | changes))


@contextmanager
def undrawn():
    """Let figures be written as empty files: for tests of pages, of which drawing is the most."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("evaluator.present.figure_style._drawn", lambda figure, form: b"")
        yield
