"""The expected time left: near the truth, and without jumps."""

import itertools
import random

import pytest

from stp.cli.stages import TimeLeft


def replay(units, *, size=64, step=1.0):
    """Yield (time, truth, shown) of a stage whose units take these seconds.

    Within a unit, as in a real one, half of the samples end in its first tenth.
    """
    left = TimeLeft(size * len(units), 0.0)
    whole, now, begin = sum(units), 0.0, 0.0
    for seconds in units:
        while now < begin + seconds:
            share = (now - begin) / seconds
            left.progressed(
                0, size, min(1.0, 5 * share if share < 0.1 else 0.5 + (share - 0.1) / 1.8)
            )
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


@pytest.mark.parametrize("under_way", [4, 12])
def test_units_under_way_together_count_with_what_is_done_of_them(under_way):
    """Sixty units of all lengths, so many at once, the next in the place of one that ends."""
    size, draws = 16, random.Random(3)
    waiting = [draws.uniform(40.0, 200.0) for _ in range(60)]
    end = sum(waiting) / under_way
    left = TimeLeft(size * len(waiting), 0.0)
    running: dict[int, list[float]] = {}
    now, number = 0.0, 0
    while waiting or running:
        while waiting and len(running) < under_way:
            running[number] = [0.0, waiting.pop()]
            number += 1
        now += 1.0
        for unit, times in list(running.items()):
            times[0] += 1.0
            if times[0] >= times[1]:
                del running[unit]
                left.finished(unit, size, now)
            else:
                left.progressed(unit, size, times[0] / times[1])
        shown = left.seconds(now)
        if 0.1 * end < now < end:
            assert shown == pytest.approx(end - now, abs=(0.1 if now > end / 2 else 0.25) * end)
