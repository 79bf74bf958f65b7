"""Bootstrap replicates of exact frontiers at a grid of budgets.

A replicate draws questions within each benchmark, shared by all models, then trajectories within
each drawn (model, question) occurrence; the three problems are solved exactly again on what was
drawn, and budgets are fractions of the replicate's own full-thinking cost (paper 002, A.5). Early
exit keeps the cell's trajectories and only counts how often each was drawn; fixed budgets build
the caps of every occurrence again. The random stream is that of :mod:`oracle.resampling`.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oracle import core, grid, resampling
from oracle.actions import STRATEGIES, Strategy, strategy_actions
from oracle.checks import LARGEST_SEED, whole_number
from oracle.frontier import grid_budgets
from oracle.resampling import CellTable
from oracle.search import UNSETTLED
from stp.curves import Curves
from stp.ragged import FloatArray, IntArray, gather
from stp.seeds import PAPER_SEED

PAPER_REPLICATES = 10_000
# Replicates that one worker computes between two reports of progress.
BLOCK = 25

OnReplicates = Callable[[int, int], None]
"""Told the replicates that are done, and all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrontierReplicates:
    """Best rewards of every replicate.

    Attributes
    ----------
    model, benchmark
        Of every cell, int64 ``(cells,)``.
    strategies
        Names along the third axis of ``reward``.
    steps
        Budgets are ``floor(j x full_cost / steps)`` for j = 0..steps.
    reward
        int32 ``(replicates, cells, strategies, steps + 1)``.
    probes, full_cost
        Of each replicate's own cell, int64 ``(replicates, cells)``.
    full_reward, zero_reward
        Right probes at k = n and k = 0, int64 ``(replicates, cells)``.
    fallbacks
        Budgets that only the full program could settle, int64 ``(cells, strategies)``.
    first
        Number of the first replicate.
    """

    model: IntArray
    benchmark: IntArray
    strategies: tuple[Strategy, ...]
    steps: int
    reward: npt.NDArray[np.int32]
    probes: IntArray
    full_cost: IntArray
    full_reward: IntArray
    zero_reward: IntArray
    fallbacks: IntArray
    first: int

    def accuracy(self, *, model: int, benchmark: int, strategy: Strategy) -> FloatArray:
        """Return a cell's accuracies, float64 ``(replicates, steps + 1)``.

        Raises
        ------
        ValueError
            If there is no such cell, or the strategy was not solved.
        """
        place = self._place(strategy)
        cell = np.flatnonzero((self.model == model) & (self.benchmark == benchmark))
        if cell.size != 1:
            raise ValueError(f"there is no cell of model {model} and benchmark {benchmark}")
        reward = self.reward[:, cell[0], place]
        return np.asarray(reward / self.probes[:, cell[0], None], np.float64)

    def macro_accuracy(self, strategy: Strategy) -> FloatArray:
        """Return accuracies averaged in every replicate, float64 ``(replicates, steps + 1)``.

        Benchmarks count the same within a model, then models count the same.

        Raises
        ------
        ValueError
            If the strategy was not solved.
        """
        place = self._place(strategy)
        total = np.zeros((self.reward.shape[0], self.steps + 1))
        models = np.unique(self.model)
        for model in models.tolist():
            cells = np.flatnonzero(self.model == model)
            for cell in cells.tolist():
                share = self.probes[:, cell, None] * (cells.size * models.size)
                total += self.reward[:, cell, place] / share
        return total

    def _place(self, strategy: Strategy) -> int:
        if strategy not in self.strategies:
            raise ValueError(
                f"strategy {strategy!r} was not solved; there are {', '.join(self.strategies)}"
            )
        return self.strategies.index(strategy)


def percentile_interval(
    values: FloatArray, percentiles: Sequence[float] = (2.5, 97.5)
) -> FloatArray:
    """Return percentiles over the replicates, one row each; float64 ``(percentiles, ...)``.

    Raises
    ------
    ValueError
        If there is no replicate, or a percentile is not in 0..100.
    """
    if np.shape(values)[:1] in ((), (0,)):
        raise ValueError("there is no replicate, so there are no percentiles")
    return np.asarray(np.percentile(values, percentiles, axis=0), np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cell:
    """A cell prepared for replicates."""

    table: CellTable
    exit_core: core.Core
    exit_base: IntArray
    exit_work: int
    probes: int


class FrontierBootstrap:
    """Prepared curves; computes any replicate, anywhere, with the same result.

    Parameters
    ----------
    curves
        Cells of one or more models and benchmarks. Every model needs every question of a
        benchmark that it has trajectories of, because models share the question draw.
    strategies
        Which problems to solve.
    seed
        Key of the random stream, 0 to 2^64 - 1.
    steps
        Budgets are the fractions j / steps of a replicate's full-thinking cost.

    Raises
    ------
    ValueError
        If the models of a benchmark have different questions, a strategy is unknown, or ``seed``
        or ``steps`` is out of its range.
    """

    def __init__(
        self,
        curves: Curves,
        *,
        strategies: Sequence[Strategy] = STRATEGIES,
        seed: int = PAPER_SEED,
        steps: int = 100,
    ) -> None:
        self.strategies: tuple[Strategy, ...] = tuple(strategies)
        for strategy in self.strategies:
            if strategy not in STRATEGIES:
                raise ValueError(
                    f"unknown strategy {strategy!r}; choose from {', '.join(STRATEGIES)}"
                )
        self.seed = whole_number("seed", seed, least=0, most=LARGEST_SEED)
        self.steps = whole_number("steps", steps, least=1)
        self._cells: list[_Cell] = []
        self._questions: dict[int, IntArray] = {}
        for model, benchmark, cell in curves.cells():
            self._cells.append(_prepare(cell, model, benchmark))
            numbers = np.unique(cell.question).astype(np.int64)
            known = self._questions.setdefault(benchmark, numbers)
            if not np.array_equal(known, numbers):
                raise ValueError(
                    f"model {model} and another have different questions of benchmark {benchmark}; "
                    "a paired bootstrap needs the same ones (select them with Curves.select)"
                )

    @property
    def cells(self) -> list[tuple[int, int]]:
        """Model and benchmark of every cell."""
        return [(cell.table.model, cell.table.group) for cell in self._cells]

    def block(self, first: int, count: int) -> FrontierReplicates:
        """Return replicates ``first`` to ``first + count - 1``.

        Raises
        ------
        ValueError
            If ``first`` is negative, or ``count`` below 1.
        """
        first = whole_number("first", first, least=0)
        count = whole_number("count", count, least=1)
        shape = (count, len(self._cells))
        out = FrontierReplicates(
            model=np.array([cell.table.model for cell in self._cells], np.int64),
            benchmark=np.array([cell.table.group for cell in self._cells], np.int64),
            strategies=self.strategies,
            steps=self.steps,
            reward=np.empty((*shape, len(self.strategies), self.steps + 1), np.int32),
            probes=np.empty(shape, np.int64),
            full_cost=np.empty(shape, np.int64),
            full_reward=np.empty(shape, np.int64),
            zero_reward=np.empty(shape, np.int64),
            fallbacks=np.zeros((len(self._cells), len(self.strategies)), np.int64),
            first=first,
        )
        drawn = {
            group: np.stack(
                [
                    resampling.draw_questions(self.seed, first + row, group, numbers.size)
                    for row in range(count)
                ]
            )
            for group, numbers in self._questions.items()
        }
        # Cell after cell, so that a cell's tables stay in the cache for all replicates.
        for place, cell in enumerate(self._cells):
            samples = resampling.draw_samples(cell.table, self.seed, first, drawn[cell.table.group])
            self._solve(cell, samples, out, place)
        return out

    def _solve(
        self, cell: _Cell, samples: resampling.Samples, out: FrontierReplicates, place: int
    ) -> None:
        zero, full, tokens = resampling.occurrence_sums(cell.table, samples)
        out.full_cost[:, place] = tokens.sum(axis=1)
        out.full_reward[:, place] = full.sum(axis=1)
        out.zero_reward[:, place] = zero.sum(axis=1)
        out.probes[:, place] = samples.weight.sum(axis=(1, 2)) * cell.probes
        budgets = np.stack(
            [grid_budgets(cost, self.steps) for cost in out.full_cost[:, place].tolist()]
        )
        for index, strategy in enumerate(self.strategies):
            reward = out.reward[:, place, index]
            if strategy == "early_exit":
                fallbacks = _early_exit(cell, samples, budgets, reward)
            elif strategy == "routing":
                extra, fallbacks = grid.single_step_rewards(full - zero, tokens, budgets)
                reward[:] = zero.sum(axis=1)[:, None] + extra
            else:
                fallbacks = _fixed_budget(cell, samples, budgets, reward)
            out.fallbacks[place, index] += fallbacks


def bootstrap_frontiers(
    curves: Curves,
    *,
    strategies: Sequence[Strategy] = STRATEGIES,
    replicates: int = PAPER_REPLICATES,
    seed: int = PAPER_SEED,
    steps: int = 100,
    workers: int = 1,
    progress: OnReplicates | None = None,
) -> FrontierReplicates:
    """Return exact best rewards of bootstrap replicates 0 to ``replicates - 1``.

    Parameters
    ----------
    curves, strategies, seed, steps
        See :class:`FrontierBootstrap`.
    replicates
        How many; 10,000 of the paper's 72 problems take 290 MB.
    workers
        Threads of this machine; the result does not depend on it. For more machines see
        :mod:`oracle.scale_out`.
    progress
        Called after each block with the replicates done and wanted.

    Raises
    ------
    ValueError
        As :class:`FrontierBootstrap`, and if ``replicates`` or ``workers`` is below 1.
    """
    workers = whole_number("workers", workers, least=1)
    prepared = FrontierBootstrap(curves, strategies=strategies, seed=seed, steps=steps)
    blocks = replicate_blocks(replicates)
    with ThreadPoolExecutor(max_workers=workers) as pool:
        parts = pool.map(lambda block: prepared.block(*block), blocks)
        try:
            return gather_blocks(parts, replicates, progress)
        except BaseException:
            # An interrupt waits for the blocks under way, not for all that are queued.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def replicate_blocks(replicates: int) -> list[tuple[int, int]]:
    """Return (first, count) of the blocks that make up all replicates.

    Raises
    ------
    ValueError
        If there are none.
    """
    replicates = whole_number("replicates", replicates, least=1)
    return [(first, min(BLOCK, replicates - first)) for first in range(0, replicates, BLOCK)]


def gather_blocks(
    parts: Iterator[FrontierReplicates], replicates: int, progress: OnReplicates | None
) -> FrontierReplicates:
    """Put blocks that arrive in order into one value, without holding them twice.

    Raises
    ------
    ValueError
        If they are not as many replicates as were wanted.
    """
    whole: FrontierReplicates | None = None
    done = 0
    for part in parts:
        if whole is None:
            whole = _empty_like(part, replicates)
        rows = slice(done, done + part.reward.shape[0])
        for name in ("reward", "probes", "full_cost", "full_reward", "zero_reward"):
            getattr(whole, name)[rows] = getattr(part, name)
        whole.fallbacks[:] += part.fallbacks
        done = rows.stop
        if progress is not None:
            progress(done, replicates)
    if whole is None or done != replicates:
        raise ValueError(f"{done} of {replicates} replicates arrived")
    return whole


def _empty_like(part: FrontierReplicates, replicates: int) -> FrontierReplicates:
    def room(array: npt.NDArray[np.int64] | npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        return np.empty((replicates, *array.shape[1:]), array.dtype)

    return FrontierReplicates(
        model=part.model,
        benchmark=part.benchmark,
        strategies=part.strategies,
        steps=part.steps,
        reward=room(part.reward).view(np.int32),
        probes=room(part.probes),
        full_cost=room(part.full_cost),
        full_reward=room(part.full_reward),
        zero_reward=room(part.zero_reward),
        fallbacks=np.zeros_like(part.fallbacks),
        first=part.first,
    )


def _prepare(curves: Curves, model: int, benchmark: int) -> _Cell:
    actions = strategy_actions(curves, "early_exit")
    exit_core = core.prepare_core(actions)
    return _Cell(
        table=resampling.cell_table(curves, model=model, group=benchmark),
        exit_core=exit_core,
        exit_base=actions.reward[actions.unit_offsets[:-1]],
        exit_work=grid.work_limit(exit_core.reward, exit_core.offsets),
        probes=curves.probes,
    )


def _early_exit(
    cell: _Cell,
    samples: resampling.Samples,
    budgets: IntArray,
    reward: npt.NDArray[np.int32],
) -> int:
    """Fill ``reward`` ``(replicates, budgets)``; return the number of fall-backs."""
    copies = resampling.trajectory_copies(cell.table, samples)
    extra, _ = core.grid_rewards(cell.exit_core, copies, budgets, cell.exit_work)
    fallbacks = 0
    for row in np.flatnonzero((extra == UNSETTLED).any(axis=1)).tolist():
        units = repeated_units(cell.exit_core, copies[row])
        fallbacks += grid.settle(*units, budgets[row], extra[row])
    reward[:] = (copies @ cell.exit_base)[:, None] + extra
    return fallbacks


def _fixed_budget(
    cell: _Cell,
    samples: resampling.Samples,
    budgets: IntArray,
    reward: npt.NDArray[np.int32],
) -> int:
    """Fill ``reward`` ``(replicates, budgets)``; return the number of fall-backs."""
    fallbacks = 0
    for row in range(budgets.shape[0]):
        gain, cost, offsets, base = resampling.budget_units(cell.table, samples, row)
        extra, unsettled = grid.extra_rewards(gain, cost, offsets, budgets[row])
        reward[row] = base + extra
        fallbacks += unsettled
    return fallbacks


def repeated_units(prepared: core.Core, copies: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the units of a core with every unit written out as often as it occurs."""
    unit = np.repeat(np.arange(copies.size), copies)
    rows, offsets = gather(prepared.offsets, unit)
    return prepared.reward[rows], prepared.cost[rows], offsets
