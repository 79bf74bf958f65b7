"""The simulator: the driver's own stream over engines with a clock, and what it predicts."""

from collections import Counter

import numpy as np
import pytest

from data.errors import MisuseError
from stp.campaign.pace import calibrated, measured_pace, whole_lengths
from stp.campaign.simulation import Load, handed_over, predict, simulate
from stp.engines.base import Branch, PromptTree
from stp.engines.clock import ClockEngine, Pace

DRAWS = np.random.default_rng(20_260_721)


def lengths(mean, spread, limit):
    drawn = DRAWS.lognormal(np.log(mean) - spread**2 / 2, spread, 5_000)
    return np.clip(drawn, 1, limit).astype(np.int64)


def load(**others):
    values = {
        "units": 12,
        "questions": 1,
        "trajectories": 16,
        "thinking_tokens": lengths(4_000, 0.8, 32_768),
        "answer_tokens": lengths(400, 0.6, 4_096),
        "probe_tokens": lengths(250, 0.8, 4_096),
        "step_tokens": 1_024,
        "probes": 2,
        **others,
    }
    return Load(**values)


@pytest.mark.parametrize("questions", [1, 4])
@pytest.mark.parametrize("rows", [8, 64, 256])
@pytest.mark.parametrize("engines", [1, 2])
def test_units_that_flow_take_no_more_steps_than_all_at_once(questions, rows, engines):
    asked = load(questions=questions, units=12 if questions == 1 else 10)
    once = handed_over(asked, rows=rows, engines=engines)
    flowing = simulate(asked, rows=rows, engines=engines)
    alone = simulate(asked, rows=rows, engines=engines, units_in_flight=1)
    assert flowing.tokens == once.tokens == alone.tokens
    # A step takes a second: until the last engine is done, its waits included.
    assert flowing.seconds <= 1.03 * once.seconds
    assert flowing.seconds < alone.seconds
    # What is begun is bounded: trajectories for eight times the rows, or three units.
    window = max(3, -(-8 * rows // (16 * questions)))
    assert flowing.most_units <= engines * window
    assert alone.most_units <= engines


def test_one_unit_at_a_time_is_the_sum_of_units_alone():
    asked = load(units=6)
    alone = simulate(asked, rows=64, units_in_flight=1)
    exactly = simulate(asked, rows=64, repeats_exactly=True)
    assert alone == exactly
    first = simulate(load(units=1, **{}), rows=64)
    assert first.steps < alone.steps / 3


def test_what_is_generated_is_what_was_asked_for():
    thinking = np.array([100, 200], np.int64)
    asked = load(
        units=3,
        thinking_tokens=thinking,
        answer_tokens=np.array([10]),
        probe_tokens=np.array([5]),
        step_tokens=100,
        probes=4,
    )
    run = simulate(asked, rows=7)
    # Each trajectory: its thinking, 10, and 4 samples of 5 at 1 + thinking // 100 positions.
    trajectories = 3 * 16
    short, rest = divmod(run.tokens - trajectories * (100 + 10 + 2 * 20), 100 + 20)
    assert rest == 0 and 0 <= short <= trajectories
    assert run.steps >= run.tokens / 7
    assert run.mean_rows == pytest.approx(run.tokens / run.steps)


def test_answers_alone_are_one_phase():
    nothing = np.zeros(1, np.int64)
    asked = load(thinking_tokens=nothing, probe_tokens=np.zeros(0, np.int64), units=5)
    run = simulate(asked, rows=1_000)
    assert run.tokens >= 5 * 16
    assert run.steps <= asked.answer_tokens.max()


@pytest.mark.parametrize("engines", [1, 3])
def test_a_large_campaign_is_predicted_from_its_beginning_and_end(engines):
    asked = load(units=90)
    pace = Pace((1, 64), (0.01, 0.02), 1e-5)
    whole = simulate(asked, rows=64, pace=pace, engines=engines)
    part = predict(asked, rows=64, pace=pace, engines=engines, most_samples=9_000)
    assert part.seconds == pytest.approx(whole.seconds, rel=0.1)
    assert part.tokens == pytest.approx(whole.tokens, rel=0.1)
    assert predict(asked, rows=64, pace=pace, engines=engines, most_samples=10**9) == whole


def test_more_engines_take_less_time_and_lose_more_to_the_end():
    asked = load(units=40)
    runs = [simulate(asked, rows=64, engines=engines) for engines in (1, 2, 4, 8)]
    seconds = [run.seconds for run in runs]
    assert seconds == sorted(seconds, reverse=True)
    shares = [run.tail_seconds / run.seconds for run in runs]
    assert shares == sorted(shares)


def test_nothing_to_simulate_is_said():
    with pytest.raises(MisuseError, match="at least one unit"):
        simulate(load(units=0), rows=3)


class _Timed:
    """An engine that takes known times: a step grows with its rows, a prompt token costs too."""

    context_limit = 4_096
    rows = 64

    def __init__(self):
        self.now = 0.0
        self.times = Counter()

    def generate(self, trees):
        for tree in trees:
            (branch,) = tree.branches
            samples = len(branch.seeds)
            self.times[samples] += 1
            self.now += 1e-4 * branch.cut + tree.max_tokens * (0.01 + 0.001 * samples)


def test_a_pace_is_measured_at_few_batch_sizes():
    engine = _Timed()
    pace = measured_pace(engine, (1, 2, 3, 4), clock=lambda: engine.now)
    assert pace.rows == (1, 4, 16, 64)
    assert pace.step(1) == pytest.approx(0.011, rel=0.01)
    assert pace.step(40) == pytest.approx(0.05, rel=0.01)
    assert pace.prefill_seconds == pytest.approx(1e-4, rel=0.05)
    # Seven times each; 64 rows take 1.8 seconds, and three times are enough.
    assert engine.times == {1: 1 + 7 + 7, 4: 7, 16: 7, 64: 3}


def test_a_warm_up_says_how_far_a_pace_holds():
    pace = Pace((1, 8), (1.0, 2.0), 0.5)
    lengths = [3, 9, 4, 1]
    branch = Branch(cut=2, suffix_ids=(), seeds=(0, 1, 2, 3))
    tree = PromptTree(trunk_ids=(0, 0), branches=(branch,), max_tokens=1)
    clock = ClockEngine(rows=3, length_of=lengths.__getitem__, pace=pace)
    clock.run([tree])
    factor = calibrated(pace, clock, [([tree], lengths)], 3 * clock.seconds)
    assert factor == pytest.approx(3.0)
    assert calibrated(pace, clock, [], 5.0) == 1.0


def test_lengths_that_were_cut_go_on():
    generator = np.random.default_rng(5)
    lengths = np.ceil(generator.exponential(500.0, size=4_000)).astype(np.int64)
    cut = lengths > 250
    whole = whole_lengths(np.minimum(lengths, 250), cut, 2_000.0)
    assert whole.mean() == pytest.approx(np.minimum(lengths, 2_000).mean(), rel=0.05)
    assert whole.max() <= 2_000
    assert (whole_lengths(lengths[:3], np.ones(3, bool), 700.0) == 700).all()
    assert not len(whole_lengths(lengths[:0], cut[:0], 700.0))
