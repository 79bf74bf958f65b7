"""Times the exact frontiers, budget grids and bootstrap, with the textbook program in the same run.

    python scripts/benchmarks/frontiers.py full        72 full frontiers of the paper's size
    python scripts/benchmarks/frontiers.py grids       72 grids of 101 budgets, preparation included
    python scripts/benchmarks/frontiers.py bootstrap   replicates of all 72, extrapolated to 10,000
    python scripts/benchmarks/frontiers.py units       80,000 units, and a total reward of 128,000
    python scripts/benchmarks/frontiers.py worst       how time grows with units, reward and shape
    python scripts/benchmarks/frontiers.py first       seconds to a first result
    python scripts/benchmarks/frontiers.py all

Results are compared with the textbook program's wherever that runs; a difference is an error.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy
from frontiers_synthetic import BENCHMARKS, paper_scale

import oracle
from oracle import tree
from oracle.textbook import textbook_frontier
from stp.curves import Curves

STEPS = 100


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """Return the least wall time of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def print_machine() -> None:
    cpu = platform.processor()
    details = Path("/proc/cpuinfo")
    if details.exists():
        names = [line for line in details.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].split(":")[1].strip() if names else cpu
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"machine: {cpu}, {os.cpu_count()} processors, load {load:.1f}, {platform.platform()}")
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, numba {numba.__version__}, "
        f"scipy {scipy.__version__}, {time.strftime('%Y-%m-%d %H:%M')}"
    )


def warm_up() -> None:
    small = paper_scale(models=1).select(range(64))
    for strategy in oracle.STRATEGIES:
        frontier = oracle.exact_frontier(small, strategy)
        textbook_frontier(frontier.actions)
    big = paper_scale(models=1).cell(model=0, benchmark=1)
    for strategy in oracle.STRATEGIES:
        actions = oracle.strategy_actions(big, strategy)
        oracle.best_rewards(actions, np.array([1000]))
        oracle.frontier_of_actions(actions)


def check(actions: oracle.Actions, frontier: oracle.Frontier) -> float:
    """Compare with the textbook program; return its seconds."""
    start = time.perf_counter()
    cost, reward = textbook_frontier(actions)
    took = time.perf_counter() - start
    if not (np.array_equal(cost, frontier.cost) and np.array_equal(reward, frontier.reward)):
        raise SystemExit("the frontier differs from the textbook program's")
    return took


def run_full(curves: Curves, textbook: bool) -> None:
    print("\n72 full frontiers, one thread")
    cells = list(curves.cells())
    all_fast = all_actions = all_slow = 0.0
    print(f"{'strategy':13}{'benchmark':15}{'units':>7}{'actions':>9}{'reward':>9}"
          f"{'ours ms':>10}{'textbook ms':>13}{'ratio':>8}")  # fmt: skip
    for strategy in oracle.STRATEGIES:
        for benchmark, name in enumerate(BENCHMARKS):
            fast = slow = 0.0
            for _, b, cell in cells:
                if b != benchmark:
                    continue
                all_actions += seconds(lambda c=cell, s=strategy: oracle.strategy_actions(c, s), 2)
                actions = oracle.strategy_actions(cell, strategy)
                fast += seconds(lambda a=actions: oracle.frontier_of_actions(a))
                if textbook:
                    slow += check(actions, oracle.frontier_of_actions(actions))
            models = len(cells) // len(BENCHMARKS)
            ratio = f"{slow / fast:8.0f}" if textbook else ""
            print(f"{strategy:13}{name:15}{actions.units:7}{actions.reward.size:9}"
                  f"{actions.top_reward - actions.base_reward:9}{1e3 * fast / models:10.2f}"
                  f"{1e3 * slow / models:13.1f}{ratio}")  # fmt: skip
            all_fast += fast
            all_slow += slow
    print(f"all 72: {all_fast:.3f} s, and {all_actions:.3f} s to build their actions from curves")
    if textbook:
        print(f"textbook: {all_slow:.2f} s, {all_slow / all_fast:.0f} times as long")


def run_grids(curves: Curves, textbook: bool) -> None:
    print("\n72 grids of 101 budgets, one thread, preparation (hulls, sorting) included")
    total = slow = 0.0
    fallbacks = 0
    for strategy in oracle.STRATEGIES:
        mine = 0.0
        for _, _, cell in curves.cells():
            actions = oracle.strategy_actions(cell, strategy)
            budgets = oracle.grid_budgets(int(cell.full_tokens_s.sum()), STEPS)
            mine += seconds(lambda a=actions, b=budgets: oracle.best_rewards(a, b))
            grid = oracle.best_rewards(actions, budgets)
            fallbacks += grid.fallbacks
            frontier = oracle.frontier_of_actions(actions)
            if not np.array_equal(grid.reward, frontier.reward_within(budgets)):
                raise SystemExit("a grid differs from the full frontier")
            if textbook:
                slow += check(actions, frontier)
        print(f"{strategy:13}{1e3 * mine:9.1f} ms")
        total += mine
    print(f"all 72: {1e3 * total:.1f} ms, {fallbacks} budgets fell back to the full program")
    if textbook:
        print(f"textbook: {slow:.2f} s, {slow / total:.0f} times as long")


def run_bootstrap(curves: Curves, replicates: int, workers: int) -> None:
    print(f"\nbootstrap: {replicates} replicates of all 72 at 101 budgets, {workers} workers")
    oracle.bootstrap_frontiers(curves, replicates=2)
    start = time.perf_counter()
    found = oracle.bootstrap_frontiers(
        curves,
        replicates=replicates,
        workers=workers,
        progress=lambda done, of: print(f"\r{done} of {of}", end="", file=sys.stderr),
    )
    took = time.perf_counter() - start
    print(file=sys.stderr)
    import resource

    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{took:.1f} s, {1e3 * took / replicates:.1f} ms each; 10,000 take "
          f"{took / replicates * 10_000:.0f} s; peak memory {memory:.2f} GB")  # fmt: skip
    for strategy, count in zip(found.strategies, found.fallbacks.sum(axis=0), strict=True):
        print(f"{strategy}: {count} budgets fell back to the full program")
    middle = oracle.percentile_interval(found.macro_accuracy("early_exit"))[:, 30]
    print(f"early exit at 30 % of the tokens: {middle[0]:.4f} to {middle[1]:.4f}")


def run_units() -> None:
    print("\nearly exit on larger cells, one thread")
    print(f"{'cell':32}{'units':>7}{'actions':>9}{'reward':>9}{'full ms':>9}{'grid ms':>9}")
    wide = paper_scale(models=1, scale=10).cell(model=0, benchmark=1)
    cell = paper_scale(models=1).cell(model=0, benchmark=1)
    correct = cell.correct.copy()
    correct[cell.trajectory_offsets[:-1]] = 0
    correct[cell.trajectory_offsets[1:] - 1] = cell.probes
    stretched = replace(cell, correct=correct)
    for name, curves in (
        ("MATH-500, ten times as many", wide),
        ("MATH-500, from 0 to 16 right", stretched),
    ):
        actions = oracle.strategy_actions(curves, "early_exit")
        took = seconds(lambda a=actions: oracle.frontier_of_actions(a), 5)
        budgets = oracle.grid_budgets(int(curves.full_tokens_s.sum()))
        grid = seconds(lambda a=actions, b=budgets: oracle.best_rewards(a, b), 5)
        print(f"{name:32}{actions.units:7}{actions.reward.size:9}"
              f"{actions.top_reward - actions.base_reward:9}{1e3 * took:9.1f}"
              f"{1e3 * grid:9.1f}")  # fmt: skip


SHAPES = ("random", "concave", "wide costs", "correlated", "big jumps", "equal units",
          "subset sums", "late gain", "squares")  # fmt: skip
SIZES = ((1, 16), (10, 16), (100, 1), (5, 5000), (125, 16), (500, 16), (2000, 16), (125, 256),
         (500, 256))  # fmt: skip


def shape_actions(shape: str, units: int, most: int, rng: np.random.Generator) -> oracle.Actions:
    """Return a problem of a shape that hurts; ``most`` is about a unit's greatest reward."""
    options = min(8, most)
    rewards = np.sort(rng.integers(1, most + 1, (units, options)), axis=1)
    concave = (1000 * np.sqrt(rewards)).astype(np.int64) + rng.integers(0, 50, rewards.shape)
    if shape == "random":
        costs = np.sort(rng.integers(1, 10_000, rewards.shape), axis=1)
    elif shape == "concave":
        costs = concave
    elif shape == "wide costs":
        costs = concave << 28
    elif shape == "correlated":
        costs = 100 * rewards + 99
    elif shape == "big jumps":
        rewards = rng.integers(max(1, most - 1), most + 1, (units, 1))
        costs = rng.integers(1000, 1100, rewards.shape)
    elif shape == "equal units":
        rewards = np.tile(rewards[0], (units, 1))
        costs = np.tile(np.cumsum(rng.integers(1, 999, options)), (units, 1))
    elif shape == "subset sums":
        rewards = rewards[:, :1]
        costs = 1000 * rewards
    elif shape == "late gain":
        rewards = np.tile(np.append(np.arange(1, options), most), (units, 1))
        costs = np.sort(rng.integers(5000, 9000, rewards.shape), axis=1)
        costs[:, -1] = 9000 + rng.integers(0, 300, units)
    elif shape == "squares":
        rewards = np.tile(np.arange(1, options + 1), (units, 1))
        costs = rewards**2 * rng.integers(1, 100, (units, 1))
    else:
        raise ValueError(shape)
    zeros = np.zeros((units, 1), np.int64)
    return oracle.make_actions(
        reward=np.hstack([zeros, rewards]).reshape(-1),
        cost=np.hstack([zeros, costs]).reshape(-1),
        unit_offsets=(rewards.shape[1] + 1) * np.arange(units + 1),
    )


def run_worst() -> None:
    print(f"\nworst case: {len(SHAPES)} shapes at each size, one thread; ratios are the textbook "
          "program's time over ours, for the shape where that is least")  # fmt: skip
    print(f"{'units':>6}{'most':>6}{'textbook ms':>13}{'full ms':>9}{'least':>7}  {'for':12}"
          f"{'grid ms':>9}{'least':>7}  {'for':12}{'fell back':>9}")  # fmt: skip
    rng = np.random.default_rng(1)
    slowest = float("inf")
    for units, most in SIZES:
        rows = []
        repeats = 20 if units * most <= 2000 else 3
        for shape in SHAPES:
            actions = shape_actions(shape, units, most, rng)
            budgets = oracle.grid_budgets(actions.top_cost, STEPS)
            check(actions, oracle.frontier_of_actions(actions))
            grid = oracle.best_rewards(actions, budgets)
            if not np.array_equal(grid.reward, textbook_grid(actions, budgets)):
                raise SystemExit("a grid differs from the textbook program's")
            full = seconds(lambda a=actions: oracle.frontier_of_actions(a), repeats)
            slow = seconds(lambda a=actions: textbook_frontier(a), repeats)
            mine = seconds(lambda a=actions, b=budgets: oracle.best_rewards(a, b), repeats)
            its = seconds(lambda a=actions, b=budgets: textbook_grid(a, b), repeats)
            rows.append((slow / full, full, its / mine, mine, slow, shape, grid.fallbacks))
        a = min(rows, key=lambda row: row[0])
        b = min(rows, key=lambda row: row[2])
        slowest = min(slowest, a[0], b[2])
        print(f"{units:6}{most:6}{1e3 * a[4]:13.3f}{1e3 * a[1]:9.3f}{a[0]:7.1f}  {a[5]:12}"
              f"{1e3 * b[3]:9.3f}{b[2]:7.1f}  {b[5]:12}{b[6]:9}")  # fmt: skip
    print(f"least advantage over the textbook program: {slowest:.2f} times")


def textbook_grid(actions: oracle.Actions, budgets: np.ndarray) -> np.ndarray:
    cost, reward = textbook_frontier(actions)
    return reward[np.searchsorted(cost, budgets, side="right") - 1]


def run_first() -> None:
    code = (
        "import time; t = time.perf_counter(); import oracle; "
        "a = oracle.make_actions(reward=[0, 2, 0, 3], cost=[0, 5, 0, 4], unit_offsets=[0, 2, 4]); "
        "f = oracle.frontier_of_actions(a); print(f'{time.perf_counter() - t:.2f}')"
    )
    print("\nseconds from import to the first frontier, in a process of its own")
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        for name in ("first call after installation", "later process"):
            out = subprocess.run(
                [sys.executable, "-c", code],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            print(f"{name}: {out.stdout.strip()} s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "what", choices=["full", "grids", "bootstrap", "units", "worst", "first", "all"]
    )
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-textbook", action="store_true")
    arguments = parser.parse_args()
    print_machine()
    if arguments.what in ("first", "all"):
        run_first()
    if arguments.what == "first":
        return
    warm_up()
    curves = paper_scale()
    print(f"synthetic curves: {curves.trajectories} trajectories, {curves.positions} positions, "
          f"{curves.full_tokens_s.mean():.0f} tokens on average; leaf balance "
          f"{tree.LEAF_BALANCE}")  # fmt: skip
    everything = arguments.what == "all"
    if arguments.what == "full" or everything:
        run_full(curves, not arguments.no_textbook)
    if arguments.what == "grids" or everything:
        run_grids(curves, not arguments.no_textbook)
    if arguments.what == "units" or everything:
        run_units()
    if arguments.what == "worst" or everything:
        run_worst()
    if arguments.what == "bootstrap" or everything:
        run_bootstrap(curves, arguments.replicates, arguments.workers)


if __name__ == "__main__":
    main()
