"""Trees in, trees out: whatever is submitted when, each tree gets what it would get in one call."""

import random

import pytest

from data.errors import EngineError, MisuseError
from stp.engines.base import Branch, Completion, PromptTree, RequestError
from stp.engines.clock import ClockEngine, Pace
from tests.campaign.fakes import BatchEngine
from tests.engines.models import CONTEXT
from tests.engines.test_transformers_contract import tree_of
from tests.engines.test_transformers_signals import random_tree


def forest(draws, count=12):
    """Return trees of all shapes; some have branches without samples, or none at all."""
    trees = []
    for number in range(count):
        cuts = sorted(draws.sample(range(1, CONTEXT // 2), draws.randint(1, 4)))
        trees.append(
            PromptTree(
                trunk_ids=tuple(draws.randrange(40) for _ in range(CONTEXT // 2)),
                branches=tuple(
                    Branch(
                        cut=cut,
                        suffix_ids=tuple(draws.randrange(40) for _ in range(draws.randint(0, 3))),
                        seeds=tuple(100 * number + i for i in range(draws.randint(0, 3))),
                    )
                    for cut in cuts
                ),
                max_tokens=draws.randint(1, 9),
                stop_ids=frozenset(draws.sample(range(40), 3)),
            )
        )
    return trees


def streamed(engine, trees, draws, *, dropped=()):
    """Submit trees at random moments; return what became of each that was not dropped."""
    made, places, left = {}, {}, list(range(len(trees)))
    while left or engine.busy:
        for _ in range(draws.randint(0, 3)):
            if left:
                index = left.pop(0)
                places[engine.submit(trees[index])] = index
        progress = engine.step()
        for ticket, (samples, _) in progress.samples.items():
            assert samples > 0 and ticket in places
        for entry in progress.trees:
            assert entry.error is None
            made[places[entry.ticket]] = entry.made
        gone = [t for t, index in places.items() if index in dropped and draws.random() < 0.3]
        engine.drop(gone)
    return made


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rows", [3, 64])
def test_a_stream_gives_what_one_call_gives(seed, rows, engine_of):
    draws = random.Random(seed)
    engine = engine_of("qwen3", dtype="float64", max_rows=rows)
    trees = forest(draws)
    expected = engine.generate(trees)
    before = engine.usage.copy()
    made = streamed(engine, trees, draws)
    assert [made[index] for index in range(len(trees))] == expected
    used = engine.usage - before
    assert used.prefill_least_tokens == sum(tree.prefill_least_tokens for tree in trees)
    assert used.prefill_tokens <= 1.05 * used.prefill_least_tokens + 20 * rows


@pytest.mark.parametrize("seed", range(4))
def test_trees_that_are_dropped_change_nothing_for_the_others(seed, engine_of):
    draws = random.Random(seed)
    engine = engine_of("qwen3", dtype="float64", max_rows=5)
    trees = forest(draws)
    expected = engine.generate(trees)
    dropped = set(draws.sample(range(len(trees)), 4))
    made = streamed(engine, trees, draws, dropped=dropped)
    assert made.keys() >= set(range(len(trees))) - dropped
    assert all(made[index] == expected[index] for index in made)
    assert not engine.busy and engine.wants_more


def test_trees_are_read_beside_those_that_are_sampled(engine_of):
    engine = engine_of("qwen3", dtype="float64")
    reading, sampling = random_tree(3, layers=(0, 1)), forest(random.Random(5), 3)
    (expected,), samples = engine.signals([reading]), engine.generate(sampling)
    made = streamed(engine, [sampling[0], reading, *sampling[1:]], random.Random(1))
    assert [made[0], made[2], made[3]] == samples
    for name in ("end_logprob", "other_logprob", "entropy"):
        assert (getattr(made[1], name) == getattr(expected, name)).all()


@pytest.mark.parametrize("seed", range(3))
def test_an_idle_engine_knows_nothing_of_what_was_before(seed, engine_of):
    """On a CPU the same trees give the same tokens bit for bit, whatever ran or was dropped."""
    engine = engine_of("qwen3", max_rows=4)
    assert engine.repeats_exactly
    draws = random.Random(seed)
    trees = forest(draws, 6)
    first = engine.generate(trees)
    streamed(engine, forest(draws, 5), draws, dropped={1, 3})
    engine.submit(trees[0])
    engine.step()
    engine.drop()
    assert engine.generate(trees) == first


def test_what_is_wrong_is_said_when_it_is_submitted(engine_of):
    engine = engine_of("qwen3")
    with pytest.raises(MisuseError, match="leaves no room"):
        engine.submit(tree_of((CONTEXT,), trunk=CONTEXT))
    assert not engine.busy
    engine.submit(tree_of((3,)))
    with pytest.raises(MisuseError, match="trees in flight"):
        engine.generate([tree_of((3,))])
    engine.drop()
    assert engine.step().trees == []


class _Odd(BatchEngine):
    """Fails at trees whose first id is 0; dies at those whose first id is 1."""

    context_limit = 100

    def describe(self):
        return {}

    def work(self, trees):
        for index, tree in enumerate(trees):
            if tree.trunk_ids[0] == 0:
                raise RequestError("no", tree=index, branch=0)
            if tree.trunk_ids[0] == 1:
                raise EngineError("dead")
        sample = Completion(token_ids=(5,), finish="stop")
        return [tuple(tuple(sample for _ in b.seeds) for b in tree.branches) for tree in trees]


def one(first):
    branch = Branch(cut=1, suffix_ids=(), seeds=(1, 2))
    return PromptTree(trunk_ids=(first,), branches=(branch,), max_tokens=3)


def test_a_tree_that_fails_ends_alone():
    engine = _Odd()
    tickets = [engine.submit(one(first)) for first in (7, 0, 8)]
    ended = [entry for _ in range(2) for entry in engine.step().trees]
    by_ticket = {entry.ticket: entry for entry in ended}
    assert [by_ticket[ticket].error is None for ticket in tickets] == [True, False, True]
    assert by_ticket[tickets[0]].usage.generated_tokens == 2
    with pytest.raises(RequestError) as caught:
        engine.generate([one(7), one(0)])
    assert (caught.value.tree, caught.value.branch) == (1, 0)
    assert not engine.busy
    with pytest.raises(EngineError, match="dead"):
        engine.generate([one(7), one(1)])
    assert not engine.busy
    assert engine.generate([one(7)])


def naive_steps(rows, lengths):
    """Step by step: rows that are free are filled, every row gets a token, those that end leave."""
    waiting, running, steps, row_steps = list(lengths), [], 0, 0
    while waiting or running:
        while waiting and len(running) < rows:
            running.append(waiting.pop(0))
        steps, row_steps = steps + 1, row_steps + len(running)
        running = [left - 1 for left in running if left > 1]
    return steps, row_steps


@pytest.mark.parametrize("seed", range(20))
def test_the_clock_counts_the_steps_of_continuous_batching(seed):
    draws = random.Random(seed)
    rows, count = draws.randint(1, 7), draws.randint(1, 40)
    lengths = [draws.randint(1, 30) for _ in range(count)]
    engine = ClockEngine(rows=rows, length_of=lambda seed: lengths[seed])
    branch = Branch(cut=0, suffix_ids=(1,), seeds=tuple(range(count)))
    engine.generate([PromptTree(trunk_ids=(), branches=(branch,), max_tokens=1)])
    assert (engine.steps, engine.row_steps) == naive_steps(rows, lengths)
    assert engine.seconds == engine.steps


def test_a_pace_is_interpolated_and_grows_beyond_what_was_measured():
    pace = Pace((1, 5, 9), (1.0, 3.0, 4.0), 0.5)
    assert [pace.step(rows) for rows in (1, 3, 5, 7, 9, 18)] == [1.0, 2.0, 3.0, 3.5, 4.0, 8.0]
    assert pace.times(2).step(3) == 4.0
    for rows, seconds in (((), ()), ((1, 1), (1.0, 1.0)), ((0,), (1.0,)), ((1,), ())):
        with pytest.raises(MisuseError):
            Pace(rows, seconds)
