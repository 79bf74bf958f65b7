"""Admission: what is in flight is expected to fit, and nothing waits for ever."""

import random

import pytest

from stp.engines.admission import Admission
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
