"""Bootstrap replicates spread over a Ray cluster, with the same bits as on one machine.

A replicate depends only on the curves, the seed and its number (:mod:`oracle.resampling`), so
blocks of replicates go to whichever worker is free and are put together in order. Ray is imported
here only; install it beside the project where it is wanted.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from oracle.actions import STRATEGIES, Strategy
from oracle.bootstrap import (
    PAPER_REPLICATES,
    PAPER_SEED,
    FrontierBootstrap,
    FrontierReplicates,
    Progress,
    gather_blocks,
    replicate_blocks,
)
from stp.curves import Curves


def bootstrap_frontiers_on_ray(
    curves: Curves,
    *,
    strategies: Sequence[Strategy] = STRATEGIES,
    replicates: int = PAPER_REPLICATES,
    seed: int = PAPER_SEED,
    steps: int = 100,
    workers: int = 2,
    progress: Progress | None = None,
) -> FrontierReplicates:
    """Return what :func:`oracle.bootstrap_frontiers` returns, computed by Ray actors.

    Parameters
    ----------
    curves, strategies, replicates, seed, steps, progress
        As there.
    workers
        Actors, one processor each, on whatever cluster ``ray.init`` joined; a local one is started
        where none was.

    Raises
    ------
    ModuleNotFoundError
        If Ray is not installed.
    """
    try:
        # By name: Ray is optional, and type checkers need not find it.
        ray = import_module("ray")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "spreading replicates over a cluster needs Ray: pip install ray"
        ) from error
    started = not ray.is_initialized()
    if started:
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    try:
        shared = ray.put((curves, tuple(strategies), seed, steps))
        actor = ray.remote(num_cpus=1)(_Worker)
        pool = [actor.remote(shared) for _ in range(workers)]
        parts = _in_order(ray, pool, replicate_blocks(replicates))
        return gather_blocks(parts, replicates, progress)
    finally:
        if started:
            ray.shutdown()


class _Worker:
    """One actor: prepares the curves once, then computes the blocks that it is sent."""

    def __init__(self, shared: tuple[Curves, tuple[Strategy, ...], int, int]) -> None:
        curves, strategies, seed, steps = shared
        self._bootstrap = FrontierBootstrap(curves, strategies=strategies, seed=seed, steps=steps)

    def block(self, first: int, count: int) -> FrontierReplicates:
        return self._bootstrap.block(first, count)


def _in_order(
    ray: Any, pool: list[Any], blocks: list[tuple[int, int]]
) -> Iterator[FrontierReplicates]:
    """Yield blocks in order, each worker kept busy with at most two, so that memory stays low."""
    waiting: dict[int, Any] = {}
    sent = 0
    for wanted in range(len(blocks)):
        while sent < len(blocks) and sent < wanted + 2 * len(pool):
            waiting[sent] = pool[sent % len(pool)].block.remote(*blocks[sent])
            sent += 1
        yield ray.get(waiting.pop(wanted))
