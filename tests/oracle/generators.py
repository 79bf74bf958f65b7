"""Random problems that hurt: (reward, cost, unit_offsets) as plain arrays."""

import numpy as np


def _problem(rewards, costs):
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rewards])])
    return np.concatenate(rewards), np.concatenate(costs), offsets


def _units(rng, most=12):
    return int(rng.integers(1, most + 1))


def any_actions(rng):
    """Anything, dominated actions and base costs above 0 included."""
    sizes = [int(rng.integers(1, 7)) for _ in range(_units(rng))]
    return _problem(
        [rng.integers(0, 17, n) for n in sizes], [rng.integers(0, 60, n) for n in sizes]
    )


def concave(rng):
    """Costs that rise ever more slowly: only the ends lie on a unit's hull."""
    sizes = [int(rng.integers(2, 9)) for _ in range(_units(rng, 20))]
    rewards = [np.arange(n) * int(rng.integers(1, 3)) for n in sizes]
    return _problem(
        rewards, [(np.sqrt(r) * rng.integers(50, 99)).astype(np.int64) for r in rewards]
    )


def ties(rng):
    """Slopes and costs that coincide."""
    sizes = [int(rng.integers(1, 6)) for _ in range(_units(rng, 20))]
    return _problem([np.arange(n) for n in sizes], [7 * np.arange(n) for n in sizes])


def zero_cost_gains(rng):
    sizes = [int(rng.integers(1, 6)) for _ in range(_units(rng))]
    costs = [np.where(rng.random(n) < 0.5, 0, rng.integers(0, 9, n)) for n in sizes]
    return _problem([rng.integers(0, 17, n) for n in sizes], costs)


def all_zero(rng):
    sizes = [int(rng.integers(1, 6)) for _ in range(_units(rng))]
    return _problem([np.zeros(n, np.int64) for n in sizes], [rng.integers(0, 9, n) for n in sizes])


def flat(rng):
    """Nothing to gain by spending, but something for nothing here and there."""
    sizes = [int(rng.integers(1, 6)) for _ in range(_units(rng))]
    rewards = [np.full(n, int(rng.integers(0, 17))) for n in sizes]
    return _problem(rewards, [rng.integers(0, 9, n) for n in sizes])


def one_position(rng):
    """Nothing to decide anywhere but perhaps in one unit."""
    sizes = [1] * _units(rng) + [int(rng.integers(1, 4))]
    return _problem([rng.integers(0, 17, n) for n in sizes], [rng.integers(0, 9, n) for n in sizes])


def one_giant(rng):
    """One unit outweighs all others together."""
    sizes = [int(rng.integers(2, 5)) for _ in range(_units(rng))]
    rewards = [rng.integers(0, 4, n) for n in sizes] + [rng.integers(0, 400, 9)]
    costs = [rng.integers(0, 30, n) for n in sizes] + [rng.integers(0, 9000, 9)]
    return _problem(rewards, costs)


def huge_costs(rng):
    sizes = [int(rng.integers(2, 6)) for _ in range(_units(rng, 20))]
    return _problem(
        [rng.integers(0, 17, n) for n in sizes],
        [2**40 - rng.integers(0, 2 ** int(rng.integers(2, 40)), n) for n in sizes],
    )


def equal_units(rng):
    """Many copies of few units."""
    kinds = [
        (rng.integers(0, 9, 4), np.sort(rng.integers(0, 50, 4))) for _ in range(rng.integers(1, 4))
    ]
    picks = rng.integers(0, len(kinds), int(rng.integers(1, 60)))
    return _problem([kinds[k][0] for k in picks], [kinds[k][1] for k in picks])


def large_jumps(rng):
    """Jumps of 15 and 16 only: gaps that few sums fill."""
    units = _units(rng, 40)
    rewards = [np.array([0, int(rng.integers(15, 17))]) for _ in range(units)]
    return _problem(rewards, [np.array([0, int(rng.integers(1, 999))]) for _ in range(units)])


def correlated(rng):
    """Costs near a multiple of rewards: hulls say little, everything looks alike."""
    units = _units(rng, 30)
    rewards = [np.append(0, np.sort(rng.integers(1, 40, 3))) for _ in range(units)]
    return _problem(rewards, [np.where(r > 0, 10 * r + 9, 0) for r in rewards])


def falling(rng):
    """Rewards that fall with larger caps, as fixed budgets have them."""
    sizes = [int(rng.integers(2, 12)) for _ in range(_units(rng))]
    rewards = [np.maximum(0, 60 + np.cumsum(rng.integers(-9, 10, n))) for n in sizes]
    return _problem(rewards, [np.cumsum(rng.integers(1, 99, n)) for n in sizes])


def measured(rng):
    """Like curves: a guess, a jump, noise."""
    sizes = rng.integers(1, 20, int(rng.integers(5, 40)))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    k = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    solved_at = rng.integers(0, sizes + 3)
    rate = np.where(
        k >= np.repeat(solved_at, sizes), 0.95, np.repeat(0.2 * rng.random(sizes.size), sizes)
    )
    tokens = np.cumsum(np.where(k == 0, 0, rng.integers(100, 500, k.size)))
    return rng.binomial(16, rate), tokens - np.repeat(tokens[offsets[:-1]], sizes), offsets


ALL = [
    any_actions,
    concave,
    ties,
    zero_cost_gains,
    all_zero,
    flat,
    one_position,
    one_giant,
    huge_costs,
    equal_units,
    large_jumps,
    correlated,
    falling,
    measured,
]
