"""Made-up measurements of one model, with whatever signals a test wants."""

import numpy as np

from baselines.measurements import Measurements
from baselines.views import QuestionView, Unfolding
from stp.curves import Curves


def measurements(tokens, correct, *, questions=None, probes=4, benchmark=None, **signals):
    """Return measurements from a list of lists; signals of positions by name, lists of lists.

    Names that begin with ``question_`` are question signals without that prefix.
    """
    lengths = [len(row) for row in tokens]
    by_question = {k[9:]: np.asarray(v) for k, v in signals.items() if k.startswith("question_")}
    by_position = {
        k: np.concatenate([np.asarray(row) for row in v])
        for k, v in signals.items()
        if not k.startswith("question_")
    }
    hidden = by_position.get("hidden")
    prompt = by_question.get("prompt_hidden")
    return Measurements(
        curves=Curves(
            tokens=np.concatenate([np.asarray(row) for row in tokens]),
            correct=np.concatenate([np.asarray(row) for row in correct]),
            trajectory_offsets=np.concatenate([[0], np.cumsum(lengths)]),
            question=list(range(len(tokens))) if questions is None else questions,
            probes=probes,
            benchmark=np.zeros(len(tokens), int) if benchmark is None else benchmark,
            benchmark_names=("b0", "b1"),
            model_names=("m",),
        ),
        position_signals=by_position,
        question_signals=by_question,
        layers=tuple(range(hidden.shape[1])) if hidden is not None else (),
        prompt_layers=tuple(range(prompt.shape[1])) if prompt is not None else (),
    )


def view(**signals):
    return QuestionView(
        benchmark="b0", lot=0.5, signals={k: np.asarray(v) for k, v in signals.items()}
    )


def unfolded(made, trajectory=0, question=None):
    """Yield a trajectory's prefixes at k = 0..n - 1."""
    unfolding = Unfolding(view() if question is None else question)
    first, last = made.curves.trajectory_offsets[trajectory : trajectory + 2]
    for row in range(first, last - 1):
        signals = {name: values[row] for name, values in made.position_signals.items()}
        yield unfolding.reveal(int(made.curves.tokens[row]), signals)


def scores(method, made, trajectory=0):
    """Return a method's scores over all prefixes of a trajectory."""
    method.start(view())
    return [method.score(prefix) for prefix in unfolded(made, trajectory)]


def stop_at(method, made, setting, trajectory=0):
    """Return where a method stops, the obvious way."""
    method.start(view())
    for prefix in unfolded(made, trajectory):
        if method.stops(method.score(prefix), setting):
            return prefix.k
    offsets = made.curves.trajectory_offsets
    return int(offsets[trajectory + 1] - offsets[trajectory] - 1)


def learnable(count, *, seed, first=0, width=12, layers=2, steps=6):
    """Return questions whose hidden states tell the truth at layer 1, and nothing at layer 0.

    A question's difficulty d in 0..1 is written into its prompt state; a question with d above a
    half needs thinking, and is right from position round(d * steps) on. At layer 1 a boundary's
    state says whether the answer is right by then.
    """
    rng = np.random.default_rng(seed)
    direction = np.random.default_rng(7).normal(size=width)
    d = rng.random(count)
    prompt = rng.normal(size=(count, layers, width))
    prompt[:, 1] = 0.1 * prompt[:, 1] + np.outer(d - 0.5, direction) * 2
    tokens, correct, hidden, questions = [], [], [], []
    for q in range(count):
        for _ in range(2):
            needed = round(float(d[q]) * steps)
            right = np.arange(steps + 1) >= needed
            tokens.append(np.arange(steps + 1) * 10)
            correct.append(np.where(right, 4, 0))
            states = rng.normal(size=(steps + 1, layers, width))
            states[:, 1] = 0.1 * states[:, 1] + np.outer(np.where(right, 1.0, -1.0), direction)
            hidden.append(states.astype(np.float16))
            questions.append(first + q)
    return measurements(
        tokens,
        correct,
        questions=questions,
        hidden=hidden,
        question_prompt_hidden=prompt.astype(np.float16),
    ), d
