"""Near names: one home, whatever the case of what was typed."""

import doctest

import pytest

from data import hints
from data.hints import did_you_mean, nearest


def test_examples_hold():
    assert doctest.testmod(hints) == doctest.TestResults(failed=0, attempted=3)


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("vlm", ("transformers", "vllm", "server"), "vllm"),
        ("VLLM", ("transformers", "vllm"), "vllm"),
        ("history", ("Geography", "History"), "History"),
        ("x", ("transformers", "vllm"), None),
        ("", ("vllm",), None),
        ("vllm", (), None),
    ],
)
def test_the_nearest_name(name, known, near):
    assert nearest(name, known) == near
    assert did_you_mean(name, known) == ("" if near is None else f"; did you mean {near!r}?")
