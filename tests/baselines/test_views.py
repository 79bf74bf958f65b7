"""A method sees the prefix and nothing else: not through numpy, not by undeclared names."""

import numpy as np
import pytest

from baselines.views import QuestionView
from data.errors import MisuseError
from tests.baselines.made import measurements, unfolded, view


def made(steps=20):
    return measurements(
        [np.arange(steps + 1) * 7 + (np.arange(steps + 1) > 0)],
        [[1] * (steps + 1)],
        entropy=[np.arange(steps + 1) + 1.0],
        hidden=[np.arange((steps + 1) * 6).reshape(steps + 1, 2, 3) + 1.0],
        question_prompt_hidden=np.ones((1, 2, 3)),
    )


def every_memory(array):
    """Yield an array and all that it is a view of."""
    while isinstance(array, np.ndarray):
        yield array
        array = array.base


def test_prefixes_are_handed_out_in_order_and_end_before_the_end():
    data = made(5)
    seen = list(unfolded(data))
    assert [prefix.k for prefix in seen] == [0, 1, 2, 3, 4]
    for k, prefix in enumerate(seen):
        assert prefix.tokens.tolist() == data.curves.tokens[: k + 1].tolist()
        assert prefix["entropy"].tolist() == [1.0 + i for i in range(k + 1)]
        assert prefix["hidden"].shape == (k + 1, 2, 3)
        assert prefix["hidden"][-1].tolist() == data["hidden"][k].tolist()


def test_no_memory_behind_a_prefix_holds_a_later_row_or_how_many_will_come():
    data, longer = made(20), made(5)
    for prefix, other in zip(unfolded(data), unfolded(longer), strict=False):
        for name, ahead in (("tokens", data.curves.tokens), ("entropy", data["entropy"])):
            shown = prefix.tokens if name == "tokens" else prefix[name]
            later = set(ahead[prefix.k + 1 :].tolist())
            for memory in every_memory(shown):
                assert not later & set(memory.reshape(-1).tolist())
                # The room is the same however long the trajectory will be.
            twin = other.tokens if name == "tokens" else other[name]
            assert [m.shape for m in every_memory(shown)] == [m.shape for m in every_memory(twin)]


def test_what_is_handed_out_cannot_be_written_to_and_verdicts_are_nowhere():
    prefix = next(unfolded(made()))
    with pytest.raises(ValueError, match="read-only"):
        prefix["entropy"][0] = 0.0
    assert not hasattr(prefix, "correct")
    assert not hasattr(prefix, "__dict__")


def test_question_view_is_a_copy():
    states = np.zeros((2, 3))
    shown = QuestionView(benchmark="b0", lot=0.25, signals={"prompt_hidden": states})
    assert (shown.benchmark, shown.lot) == ("b0", 0.25)
    assert not np.shares_memory(shown["prompt_hidden"], states)
    assert shown["prompt_hidden"].base is None
    with pytest.raises(ValueError, match="read-only"):
        shown["prompt_hidden"][0] = 0.0


def test_an_undeclared_signal_is_refused_by_name():
    prefix = next(unfolded(made().restricted(["entropy"])))
    with pytest.raises(MisuseError, match="signal 'hidden' is not among the method's needs"):
        prefix["hidden"]
    with pytest.raises(MisuseError, match="'prompt_hidden' is not among the method's needs"):
        view()["prompt_hidden"]
