"""Signals as plain arrays: what is refused, and selection beside the curves."""

import numpy as np
import pytest

from stp.curves import Curves
from stp.signals import Signals

LENGTHS = (1, 4, 2, 3)


def random_signals(seed: int = 0, **others) -> Signals:
    draws = np.random.default_rng(seed)
    positions = sum(LENGTHS)
    values = {
        "trajectory_offsets": np.concatenate([[0], np.cumsum(LENGTHS)]),
        "end_logprob": -draws.random(positions, np.float32),
        "other_logprob": -draws.random(positions, np.float32),
        "other_id": draws.integers(100, size=positions),
        "entropy": draws.random(positions, np.float32),
        "trial_tokens": draws.integers(20, size=positions),
        "end_exact": draws.random(positions) < 0.5,
        "hidden": {3: draws.normal(size=(positions, 5)), 0: draws.normal(size=(positions, 2))},
        "prompt_model": [0, 0, 1],
        "prompt_question": [4, 7, 4],
        "prompt_hidden": {3: draws.normal(size=(3, 5))},
        **others,
    }
    return Signals(**values)


def curves_of(model, question, lengths=LENGTHS) -> Curves:
    tokens = np.concatenate([np.arange(n) for n in lengths])
    return Curves(
        tokens=tokens,
        correct=np.zeros(tokens.size, np.int32),
        trajectory_offsets=np.concatenate([[0], np.cumsum(lengths)]),
        question=question,
        model=model,
        probes=1,
    )


def test_selection_takes_whole_trajectories_in_the_order_asked():
    signals = random_signals()
    offsets = signals.trajectory_offsets
    rows = [2, 1, 2]
    chosen = signals.select(rows)
    pieces = [np.arange(offsets[row], offsets[row + 1]) for row in rows]
    gather = np.concatenate(pieces)
    assert np.diff(chosen.trajectory_offsets).tolist() == [len(piece) for piece in pieces]
    for name in ("end_logprob", "other_logprob", "other_id", "entropy", "trial_tokens", "margin"):
        assert np.array_equal(getattr(chosen, name), getattr(signals, name)[gather])
    assert np.array_equal(chosen.end_exact, signals.end_exact[gather])
    assert chosen.hidden.keys() == signals.hidden.keys()
    for layer in (0, 3):
        assert np.array_equal(chosen.hidden[layer], signals.hidden[layer][gather])
    assert np.array_equal(chosen.prompt_hidden[3], signals.prompt_hidden[3])
    mask = np.array([True, False, False, True])
    assert np.array_equal(signals.select(mask).entropy, signals.select([0, 3]).entropy)


def test_selection_goes_with_that_of_curves():
    curves = curves_of([0, 0, 1, 0], [4, 7, 4, 4])
    chosen = random_signals().select([3, 1])
    assert np.array_equal(chosen.trajectory_offsets, curves.select([3, 1]).trajectory_offsets)


def test_what_is_left_out_was_not_measured():
    signals = random_signals()
    assert np.isnan(signals.answer_entropy).all() and np.isnan(signals.trial_logprob).all()
    bare = Signals(
        trajectory_offsets=[0, 1],
        end_logprob=[-1],
        other_logprob=[-0.5],
        other_id=[1],
        entropy=[0.5],
    )
    assert bare.end_exact.all() and bare.trial_tokens.tolist() == [0] and not bare.hidden


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"entropy": np.zeros(3)}, "entropy has shape"),
        ({"entropy": np.full(10, -0.1)}, "entropy below 0"),
        ({"end_logprob": np.full(10, 0.1)}, "log-probability above 0"),
        ({"other_logprob": np.full(10, np.nan)}, "not numbers"),
        ({"other_id": np.zeros(10)}, "integers"),
        ({"trajectory_offsets": [0, 0, 10]}, "rise"),
        ({"hidden": {1: np.zeros((3, 4))}}, r"hidden\[1\] has shape"),
        ({"hidden": {1: np.zeros((10, 4), np.int64)}}, "floating-point"),
        ({"prompt_question": [4, 7, 7], "prompt_model": [0, 1, 1]}, "more than one row"),
        ({"prompt_question": [4, 7]}, "prompt_question has 2"),
    ],
)
def test_impossible_signals_are_refused(others, message):
    with pytest.raises(ValueError, match=message):
        random_signals(**others)
