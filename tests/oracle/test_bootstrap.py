"""Bootstrap replicates against cells resampled row by row."""

import numpy as np
import pytest

import oracle
from oracle.resampling import raw_numbers
from stp.curves import Curves
from tests.oracle import twins
from tests.requirements import require_module


def several_cells(rng, *, models=2, questions=(3, 4), trajectories=3, steps=4, step=40):
    """Curves of models x benchmarks whose questions are the same for all models."""
    parts = []
    for model in range(models):
        first = 0
        for benchmark, count in enumerate(questions):
            cell = twins.random_curves(
                rng, questions=count, trajectories=trajectories, steps=steps, step=step
            )
            parts.append((model, benchmark, first, cell))
            first += count
    starts = np.cumsum([0] + [cell.positions for *_, cell in parts])
    return Curves(
        tokens=np.concatenate([cell.tokens for *_, cell in parts]),
        correct=np.concatenate([cell.correct for *_, cell in parts]),
        trajectory_offsets=np.concatenate(
            [[0]]
            + [c.trajectory_offsets[1:] + s for (*_, c), s in zip(parts, starts[:-1], strict=True)]
        ),
        question=np.concatenate([first + cell.question for _, _, first, cell in parts]),
        model=np.concatenate([np.full(c.trajectories, m) for m, _, _, c in parts]),
        benchmark=np.concatenate([np.full(c.trajectories, b) for _, b, _, c in parts]),
        probes=parts[0][3].probes,
    )


def resampled_cell(curves, model, benchmark, seed, replicate):
    """The replicate's curves written out: every occurrence a question of its own."""
    numbers = np.unique(curves.question[curves.benchmark == benchmark])
    drawn = [
        int(x % numbers.size) for x in raw_numbers(seed, replicate, benchmark, 0, numbers.size)
    ]
    rows, question = [], []
    members = [
        [
            s
            for s in range(curves.trajectories)
            if curves.model[s] == model and curves.question[s] == numbers[q]
        ]
        for q in drawn
    ]
    raw = iter(
        raw_numbers(seed, replicate, benchmark, model + 1, sum(len(m) for m in members)).tolist()
    )
    for occurrence, own in enumerate(members):
        for _ in own:
            rows.append(own[next(raw) % len(own)])
            question.append(occurrence)
    picked = curves.select(rows)
    return Curves(
        tokens=picked.tokens,
        correct=picked.correct,
        trajectory_offsets=picked.trajectory_offsets,
        question=np.array(question),
        probes=curves.probes,
    )


@pytest.mark.parametrize("steps", [0, 4, 9])
def test_replicates_equal_cells_written_out(steps):
    rng = np.random.default_rng(61)
    curves = several_cells(rng, steps=steps, trajectories=4)
    found = oracle.bootstrap_frontiers(curves, replicates=6, seed=99, steps=100)
    for replicate in range(6):
        for cell, (model, benchmark) in enumerate(
            zip(found.model.tolist(), found.benchmark.tolist(), strict=True)
        ):
            explicit = resampled_cell(curves, model, benchmark, 99, replicate)
            full = int(explicit.full_tokens_s.sum())
            assert found.full_cost[replicate, cell] == full
            assert found.probes[replicate, cell] == explicit.trajectories * explicit.probes
            assert found.full_reward[replicate, cell] == explicit.full_correct_s.sum()
            assert found.zero_reward[replicate, cell] == explicit.zero_correct_s.sum()
            for index, strategy in enumerate(oracle.STRATEGIES):
                frontier = oracle.exact_frontier(explicit, strategy)
                expected = frontier.reward_within([j * full // 100 for j in range(101)])
                assert np.array_equal(found.reward[replicate, cell, index], expected)


def test_large_cells_use_the_core_and_agree(monkeypatch):
    from oracle import grid

    monkeypatch.setattr(grid, "SMALL_WORK", 0)
    monkeypatch.setattr(grid, "SMALL_WORK_SINGLE", 0)
    rng = np.random.default_rng(67)
    curves = several_cells(rng, models=1, questions=(40,), trajectories=8, steps=12, step=300)
    found = oracle.bootstrap_frontiers(curves, replicates=3, seed=5)
    for replicate in range(3):
        explicit = resampled_cell(curves, 0, 0, 5, replicate)
        for index, strategy in enumerate(oracle.STRATEGIES):
            frontier = oracle.exact_frontier(explicit, strategy)
            budgets = oracle.grid_budgets(frontier.full_cost)
            assert np.array_equal(
                found.reward[replicate, 0, index], frontier.reward_within(budgets)
            )


def test_what_the_core_gives_up_is_settled_and_counted(monkeypatch):
    from oracle import grid

    rng = np.random.default_rng(71)
    curves = several_cells(rng, models=1, questions=(30,), trajectories=6, steps=9)
    usual = oracle.bootstrap_frontiers(curves, replicates=4, seed=1)
    monkeypatch.setattr(grid, "SMALL_WORK", 0)
    monkeypatch.setattr(grid, "SMALL_WORK_SINGLE", 0)
    monkeypatch.setattr(grid, "LEAST_WORK", -(10**12))
    starved = oracle.bootstrap_frontiers(curves, replicates=4, seed=1)
    assert starved.fallbacks.sum() > 50
    assert np.array_equal(usual.reward, starved.reward)


def test_same_bits_for_any_number_of_workers_and_any_split():
    curves = several_cells(np.random.default_rng(73))
    seen = []
    one = oracle.bootstrap_frontiers(
        curves,
        replicates=60,
        seed=3,
        workers=1,
        progress=lambda done, all_: seen.append((done, all_)),
    )
    three = oracle.bootstrap_frontiers(curves, replicates=60, seed=3, workers=3)
    assert np.array_equal(one.reward, three.reward)
    assert seen == [(25, 60), (50, 60), (60, 60)]
    late = oracle.FrontierBootstrap(curves, seed=3).block(41, 2)
    assert np.array_equal(one.reward[41:43], late.reward)
    other = oracle.bootstrap_frontiers(curves, replicates=60, seed=4)
    assert not np.array_equal(one.reward, other.reward)


def test_a_subset_of_cells_draws_what_the_whole_does():
    curves = several_cells(np.random.default_rng(79))
    whole = oracle.bootstrap_frontiers(curves, replicates=5, seed=3)
    part = oracle.bootstrap_frontiers(curves.cell(model=1, benchmark=1), replicates=5, seed=3)
    assert np.array_equal(whole.reward[:, 3], part.reward[:, 0])


def test_the_stream_is_fixed():
    raw = raw_numbers(20260721, 7, 2, 1, 3)
    again = np.random.Philox(
        key=np.array([20260721, 7], np.uint64), counter=np.array([0, 0, 2, 1], np.uint64)
    ).random_raw(3)
    assert np.array_equal(raw, again)
    assert not np.array_equal(raw, raw_numbers(20260721, 7, 1, 2, 3))


def test_macro_accuracy_averages_benchmarks_then_models():
    curves = several_cells(np.random.default_rng(83))
    found = oracle.bootstrap_frontiers(curves, replicates=6, seed=3)
    for strategy in oracle.STRATEGIES:
        by_hand = np.mean(
            [
                np.mean(
                    [
                        found.accuracy(model=model, benchmark=benchmark, strategy=strategy)
                        for benchmark in (0, 1)
                    ],
                    axis=0,
                )
                for model in (0, 1)
            ],
            axis=0,
        )
        assert np.allclose(found.macro_accuracy(strategy), by_hand, rtol=0, atol=1e-15)
        interval = oracle.percentile_interval(found.macro_accuracy(strategy))
        assert interval.shape == (2, 101)
        assert np.all(interval[0] <= interval[1])


def test_misuse_is_refused():
    curves = several_cells(np.random.default_rng(89))
    lacking = curves.select((curves.model == 0) | (curves.question != 2))
    with pytest.raises(ValueError, match="different questions of benchmark 0"):
        oracle.bootstrap_frontiers(lacking, replicates=1)
    with pytest.raises(ValueError, match="replicates must be positive"):
        oracle.bootstrap_frontiers(curves, replicates=0)
    with pytest.raises(ValueError, match="unknown strategy"):
        oracle.bootstrap_frontiers(curves, strategies=["all"], replicates=1)


def test_an_interrupt_drops_the_blocks_that_wait(monkeypatch):
    curves = several_cells(np.random.default_rng(101))
    computed = []
    block = oracle.FrontierBootstrap.block

    def counted(self, first, count):
        computed.append(first)
        return block(self, first, count)

    monkeypatch.setattr(oracle.FrontierBootstrap, "block", counted)

    def interrupt(done, wanted):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        oracle.bootstrap_frontiers(curves, replicates=25_000, workers=2, progress=interrupt)
    assert len(computed) < 500


@pytest.mark.slow
def test_ray_gives_the_same_bits():
    require_module("ray")
    curves = several_cells(np.random.default_rng(97))
    here = oracle.bootstrap_frontiers(curves, replicates=60, seed=3)
    there = oracle.bootstrap_frontiers_on_ray(curves, replicates=60, seed=3, workers=2)
    for name in ("reward", "probes", "full_cost", "full_reward", "zero_reward", "fallbacks"):
        assert np.array_equal(getattr(here, name), getattr(there, name))
    with pytest.raises(ValueError, match="workers must be positive"):
        oracle.bootstrap_frontiers_on_ray(curves, replicates=60, workers=0)
