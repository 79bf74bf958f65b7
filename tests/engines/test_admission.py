"""Admission: what is in flight is expected to fit, and nothing waits for ever."""

import math
import random

import pytest

from stp.engines.admission import Admission, Gathering
from stp.engines.base import Branch, PromptTree
from stp.engines.requests import SampleRequest, sample_requests


def tree(cut=100, samples=4, limit=50) -> PromptTree:
    branch = Branch(cut=cut, suffix_ids=(1, 2), seeds=tuple(range(samples)))
    return PromptTree(trunk_ids=(1,) * cut, branches=(branch,), max_tokens=limit)


def admission(capacity, most=1000) -> Admission:
    return Admission(capacity_tokens=capacity, block_tokens=16, most=most)


def requests_of(trees) -> list[SampleRequest]:
    """Return the samples of trees, tree after tree."""
    return [request for i, one in enumerate(trees) for request in sample_requests(one, ticket=i)]


def start_all(admission, trees) -> list[SampleRequest]:
    """Start requests in order while they are admitted."""
    started = []
    for request in requests_of(trees):
        if not admission.admits(request, trees[request.tree]):
            break
        admission.start(request, trees[request.tree])
        started.append(request)
    return started


def test_one_request_always_may_start():
    assert len(start_all(admission(1), [tree()])) == 1


def test_while_nothing_is_known_the_limit_is_expected():
    # A trunk of 100 once, and for each sample 2 + 16 + 50.
    assert len(start_all(admission(1000), [tree(samples=40)])) == (1000 - 100) // 68


def test_no_more_than_asked_for_are_in_flight():
    assert len(start_all(admission(10**6, most=3), [tree(samples=9)])) == 3


def test_trunks_count_once_and_as_long_as_they_are_needed():
    gate = admission(837)
    trees = [tree(cut=300, samples=2), tree(cut=300, samples=2), tree(cut=300, samples=2)]
    started = start_all(gate, trees)
    assert [request.tree for request in started] == [0, 0, 1]
    for request in started[:2]:
        gate.end(request, 50)
    waiting = requests_of(trees)[3:]
    assert gate.admits(waiting[0], trees[1])


def test_short_samples_let_more_in():
    gate = admission(1000)
    (first, *_) = started = start_all(gate, [tree(samples=40)])
    for request in started:
        gate.end(request, 5)
    again = start_all(gate, [tree(samples=40)])
    assert first.place == again[0].place
    assert len(again) > 1.5 * len(started)


def test_samples_that_live_on_are_expected_to_live_on():
    """Most end at 5 tokens; those in flight that are older than that count with the limit."""
    gate = admission(2000)
    many = tree(samples=200, limit=100)
    started = start_all(gate, [many])
    for request in started[5:]:
        gate.end(request, 5)
    young = gate._expected(100)
    for _ in range(60):
        gate.step()
    assert gate._expected(100) > young + 4 * 60


class SlowAdmission:
    """The twin: adds up all that is in flight for every request."""

    def __init__(self, capacity, block, most):
        self.capacity, self.block, self.most = capacity, block, most
        self.steps, self.flight, self.ended = 0, {}, {}

    def step(self):
        self.steps += 1

    def expected(self, limit):
        total = spare = mine = 0.0
        begun = 0
        for _, tree, began in self.flight.values():
            other = tree.max_tokens
            # Ages are counted in 64ths of the limit.
            age = min(63, self.steps * 64 // other - began * 64 // other)
            longer = [n for n in self.ended.get(other, ()) if min(63, n * 64 // other) >= age]
            length = max(math.ceil(age * other / 64), (sum(longer) + other) / (len(longer) + 1))
            total += length
            spare = max(spare, other - length)
            if other == limit:
                mine, begun = mine + length, begun + 1
        known = self.ended.get(limit, ())
        mean = (mine + sum(known)) / (begun + len(known)) if begun + len(known) else limit
        return total + spare + mean

    def admits(self, request, tree):
        if not self.flight:
            return True
        if len(self.flight) >= self.most:
            return False
        cuts = {}
        for other, _, _ in self.flight.values():
            cuts[other.tree] = max(cuts.get(other.tree, 0), self.reached[other.tree])
        cut = tree.branches[request.branch].cut
        trunks = sum(cuts.values()) + max(0, cut - cuts.get(request.tree, 0))
        own = sum(
            len(t.branches[r.branch].suffix_ids) + self.block
            for r, t in [(request, tree), *((r, t) for r, t, _ in self.flight.values())]
        )
        return trunks + own + self.expected(tree.max_tokens) <= self.capacity

    reached: dict[int, int]

    def start(self, request, tree):
        self.reached = getattr(self, "reached", {})
        if not any(place[0] == request.tree for place in self.flight):
            self.reached[request.tree] = 0
        cut = tree.branches[request.branch].cut
        self.reached[request.tree] = max(self.reached[request.tree], cut)
        self.flight[request.place] = (request, tree, self.steps)

    def end(self, request, tokens):
        _, tree, _ = self.flight.pop(request.place)
        if tokens is not None:
            self.ended.setdefault(tree.max_tokens, []).append(tokens)


@pytest.mark.parametrize("seed", range(12))
def test_it_says_what_its_slow_twin_says(seed):
    draws = random.Random(seed)
    capacity, most = draws.randint(500, 6_000), draws.randint(2, 60)
    fast, slow = admission(capacity, most), SlowAdmission(capacity, 16, most)
    trees = [
        tree(draws.randint(1, 300), draws.randint(1, 9), draws.choice((7, 50, 300, 5_000)))
        for _ in range(25)
    ]
    waiting, flight = requests_of(trees), {}
    told = []
    while waiting or flight:
        while waiting:
            request = waiting[0]
            its = trees[request.tree]
            assert fast._expected(its.max_tokens) == pytest.approx(slow.expected(its.max_tokens))
            told.append(fast.admits(request, its))
            assert told[-1] == slow.admits(request, its)
            if not told[-1]:
                break
            waiting.pop(0)
            flight[request.place] = request
            fast.start(request, its)
            slow.start(request, its)
        for _ in range(draws.randint(1, 200)):
            fast.step()
            slow.step()
        for place in draws.sample(sorted(flight), draws.randint(1, len(flight))):
            request = flight.pop(place)
            limit = trees[request.tree].max_tokens
            tokens = draws.choice((None, draws.randint(1, limit), limit))
            fast.end(request, tokens)
            slow.end(request, tokens)
    assert not fast._flight and fast._own_tokens == fast._trunk_tokens == 0
    assert True in told and False in told


@pytest.mark.parametrize("seed", range(5))
def test_a_cache_that_is_too_small_by_far_is_seldom_overfull(seed):
    """Simulated: lengths of two kinds, requests in order; the share of steps with too much."""
    draws = random.Random(seed)
    capacity = 3000  # Of which nine tenths are planned with.
    trees = [tree(cut=draws.choice((50, 400)), samples=8, limit=300) for _ in range(30)]
    gate = admission(9 * capacity // 10)
    waiting = requests_of(trees)
    lengths = {r.place: draws.choice((20, 60, 300)) for r in waiting}
    flight: dict[tuple[int, int, int], tuple[SampleRequest, int]] = {}
    over = steps = most = 0
    while waiting or flight:
        while waiting and gate.admits(waiting[0], trees[waiting[0].tree]):
            request = waiting.pop(0)
            gate.start(request, trees[request.tree])
            flight[request.place] = (request, steps)
        steps += 1
        gate.step()
        for request, began in list(flight.values()):
            if steps - began >= lengths[request.place]:
                gate.end(request, lengths[request.place])
                del flight[request.place]
        trunks = sum(trees[i].longest_cut for i in {place[0] for place in flight})
        used = trunks + sum(2 + steps - began for _, began in flight.values())
        over += used > capacity
        most = max(most, len(flight))
    assert over <= 0.04 * steps
    # What would fit if every sample had the mean length is used for the greater part.
    assert most >= 8


@pytest.mark.parametrize("running", [0, 1, 2, 7, 32, 500])
@pytest.mark.parametrize("every", [1, 3, 1000])
def test_those_that_wait_are_let_in_for_less_than_twice_the_best_price(running, every):
    """Price: tokens lost by waiting, and half a pass of the batch for every time of letting in."""
    gathering, waiting, lost, passes = Gathering(), 0, 0, 0
    steps = 2000
    for step in range(steps):
        waiting += step % every == 0
        if not waiting:
            continue
        lost += waiting
        if gathering.enough(waiting, running):
            waiting, passes = 0, passes + 1
    assert gathering.enough(max(1, running), running)

    # The best rhythm: let in after as many steps as the price is least for.
    def price(rhythm: int) -> float:
        comers = max(1.0, rhythm / every)
        return steps / rhythm * (running / 2 + comers * (rhythm + 1) / 2)

    best = min(price(rhythm) for rhythm in range(every, steps))
    assert lost + passes * running / 2 <= 2 * best + 2 * running + 2


def test_nobody_waits_for_more_than_16_passes_beside_a_large_batch():
    gathering = Gathering()
    for _ in range(2):
        assert [gathering.enough(1, 384) for _ in range(16)] == [False] * 15 + [True]
