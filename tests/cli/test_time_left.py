"""The expected time left: near the truth, and without jumps."""

import itertools

import pytest

from stp.cli.progress import TimeLeft


def replay(units, *, size=64, step=1.0):
    """Yield (time, truth, shown) of a stage whose units take these seconds.

    Within a unit, as in a real one, half of the samples end in its first tenth.
    """
    left = TimeLeft(size * len(units), 0.0)
    whole, now, begin = sum(units), 0.0, 0.0
    for seconds in units:
        while now < begin + seconds:
            share = (now - begin) / seconds
            left.progressed(0, size, min(1.0, 5 * share if share < 0.1 else 0.5 + (share - 0.1) / 1.8))
            yield now, whole - now, left.seconds(now)
            now += step
        begin += seconds
        now = begin
        left.finished(0, size, now)


def test_units_of_equal_length_are_predicted_once_one_is_known():
    for now, truth, shown in replay([100.0] * 8):
        if now >= 200:
            assert shown == pytest.approx(truth, abs=0.25 * 800)
        if now >= 400:
            assert shown == pytest.approx(truth, rel=0.05, abs=5)


def test_what_is_shown_never_jumps():
    lengths = [90.0, 130.0, 60.0, 220.0, 100.0, 80.0]
    shown = [value for _, _, value in replay(lengths) if value is not None]
    assert max(abs(b - a) for a, b in itertools.pairwise(shown)) < 0.06 * sum(lengths)


def test_nothing_is_said_before_anything_is_known():
    left = TimeLeft(100, 0.0)
    assert left.seconds(5.0) is None
    left.progressed(0, 10, 0.05)
    assert left.seconds(6.0) is None
    left.progressed(0, 10, 0.2)
    assert left.seconds(8.0) == pytest.approx(8 * (100 - 2) / 2)


def test_the_end_is_zero_and_never_less():
    left = TimeLeft(10, 0.0)
    left.finished(0, 10, 5.0)
    assert left.seconds(6.0) == 0.0
