"""Bootstrap replicates spread over a Ray cluster, with the same bits as on one machine.

A replicate depends only on the curves, the seed and its number (:mod:`oracle.resampling`), so
blocks of replicates are given to the workers and put together in order. A worker that is lost is
started again and its blocks computed again. Ray is imported here only; every machine of the cluster
needs it and this project.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from oracle.actions import STRATEGIES, Strategy
from oracle.bootstrap import (
    PAPER_REPLICATES,
    FrontierBootstrap,
    FrontierReplicates,
    OnReplicates,
    gather_blocks,
    replicate_blocks,
)
from oracle.checks import whole_number
from stp.curves import Curves
from stp.seeds import PAPER_SEED

logger = logging.getLogger(__name__)
# How often a worker may be lost, with its machine, before the run ends with an error.
RESTARTS = 3


def bootstrap_frontiers_on_ray(
    curves: Curves,
    *,
    strategies: Sequence[Strategy] = STRATEGIES,
    replicates: int = PAPER_REPLICATES,
    seed: int = PAPER_SEED,
    steps: int = 100,
    workers: int = 2,
    progress: OnReplicates | None = None,
) -> FrontierReplicates:
    """Return what :func:`oracle.bootstrap_frontiers` returns, computed by Ray actors.

    Parameters
    ----------
    curves, strategies, replicates, seed, steps, progress
        As there.
    workers
        Actors, one processor each. They run on the cluster that ``ray.init`` joined before the
        call, else on the one that ``RAY_ADDRESS`` names, else on a local one that ends with it.

    Raises
    ------
    ModuleNotFoundError
        If Ray is not installed.
    ValueError
        If ``workers``, ``replicates`` or ``steps`` is below 1.
    """
    workers = whole_number("workers", workers, least=1)
    steps = whole_number("steps", steps, least=1)
    blocks = replicate_blocks(replicates)
    try:
        # By name: Ray is optional, and type checkers need not find it.
        ray = import_module("ray")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "spreading replicates over a cluster needs Ray: pip install 'stp-engine[ray]'"
        ) from error
    started = not ray.is_initialized()
    if started:
        _join_or_start(ray, workers)
    try:
        processors = int(ray.cluster_resources().get("CPU", 0))
        if processors < workers:
            logger.warning(
                "the cluster has %d processors now; the run waits until it has %d",
                processors,
                workers,
            )
        shared = ray.put((curves, tuple(strategies), seed, steps))
        actor = ray.remote(num_cpus=1, max_restarts=RESTARTS, max_task_retries=RESTARTS)(_Worker)
        pool = [actor.remote(shared) for _ in range(workers)]
        parts = _in_order(ray, pool, blocks)
        return gather_blocks(parts, replicates, progress)
    finally:
        if started:
            ray.shutdown()


def _join_or_start(ray: Any, workers: int) -> None:
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False)
    else:
        ray.init(address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False)


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
