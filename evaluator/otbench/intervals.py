"""Paired bootstrap of everything that is said of methods (paper 002, A.5).

A replicate draws test questions within each reporting group, the same for all models and methods,
then trajectories within each drawn (model, question); the random stream is that of
:mod:`oracle.resampling`. Every setting's cost and reward are added up over what was drawn, the
frontier is solved exactly again on the same draw and asked at the replicate's own costs, and a
method's numbers are made from these points as from the data themselves. What was trained and
selected stays as it is.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from data.progress import NOBODY, Progress
from evaluator.otbench.points import (
    CellTotals,
    Points,
    assemble,
    budgets_at,
    cell_totals,
    fractions_of_full,
)
from evaluator.otbench.summary import SUMMARIES, gaps, shares, summarise
from oracle import grid, resampling
from oracle.actions import Actions, Strategy, strategy_actions
from oracle.frontier import grid_budgets
from stp.curves import Curves
from stp.ragged import FloatArray, IntArray, gather
from stp.seeds import PAPER_SEED

REPLICATES = 10_000
POINT_COLUMNS = ("tokens_fraction", "accuracy", "gap", "share")
"""Numbers of every point that get an interval."""
_BLOCK = 25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decided:
    """A method's decisions on test questions.

    Attributes
    ----------
    strategy
        Its strategy.
    stop, signal_tokens
        int64 ``(settings, trajectories)``.
    selected
        The setting that validation questions selected.
    """

    strategy: Strategy
    stop: IntArray
    signal_tokens: IntArray
    selected: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replicates:
    """Replicates of one method.

    Attributes
    ----------
    summaries
        By name of :data:`~evaluator.otbench.summary.SUMMARIES`; float64 ``(replicates,)``.
    points
        By name of :data:`POINT_COLUMNS`; float32 ``(replicates, settings)``.
    """

    summaries: Mapping[str, FloatArray]
    points: Mapping[str, npt.NDArray[np.float32]]


def bootstrap_methods(
    curves: Curves,
    methods: Mapping[str, Decided],
    *,
    replicates: int = REPLICATES,
    seed: int = PAPER_SEED,
    workers: int | None = None,
    progress: Progress = NOBODY,
) -> dict[str, Replicates]:
    """Resample test questions and trajectories, for all methods at once.

    Parameters
    ----------
    curves
        Of the test questions; benchmarks are reporting groups.
    methods
        By name.
    replicates, seed
        How many, and what they are drawn with. Replicate i of one call and of another with the
        same curves and seed is the same draw.
    workers
        Threads; all processors when left out. It does not change the result.
    progress
        Called with replicates done and all.
    """
    draws = _Draws(curves, seed)
    by_strategy: dict[Strategy, list[str]] = {}
    for name, decided in methods.items():
        by_strategy.setdefault(decided.strategy, []).append(name)
    room = {
        name: (
            np.full((replicates, len(SUMMARIES)), np.nan),
            np.full((len(POINT_COLUMNS), replicates, decided.stop.shape[0]), np.nan, np.float32),
        )
        for name, decided in methods.items()
    }
    per_trajectory = {name: draws.by_cell(curves, d) for name, d in methods.items()}

    def fill(first: int) -> int:
        count = min(_BLOCK, replicates - first)
        block = draws.block(first, count)
        for strategy, names in by_strategy.items():
            for row in range(count):
                totals = {name: draws.totals(block, row, per_trajectory[name]) for name in names}
                for name, points in _points(draws, block, row, strategy, totals).items():
                    values = summarise(points, methods[name].selected)
                    room[name][0][first + row] = [values[key] for key in SUMMARIES]
                    room[name][1][:, first + row] = [
                        points.tokens_fraction,
                        points.accuracy,
                        gaps(points),
                        shares(points),
                    ]
        return count

    done = 0
    with ThreadPoolExecutor(workers or len(os.sched_getaffinity(0))) as pool:
        for count in pool.map(fill, range(0, replicates, _BLOCK)):
            done += count
            progress(done, replicates)
    return {
        name: Replicates(
            summaries={key: summaries[:, i] for i, key in enumerate(SUMMARIES)},
            points=dict(zip(POINT_COLUMNS, points, strict=True)),
        )
        for name, (summaries, points) in room.items()
    }


# -- replicates ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Block:
    """A few replicates of every cell: drawn questions and trajectories, and how often each."""

    samples: tuple[resampling.Samples, ...]
    copies: tuple[IntArray, ...]
    ends: tuple[IntArray, ...]


class _Draws:
    """Cells prepared for drawing, and for solving their problems again."""

    def __init__(self, curves: Curves, seed: int) -> None:
        self.seed = seed
        self.tables: list[resampling.CellTable] = []
        self.rows: list[IntArray] = []
        self.exits: list[Actions] = []
        self._questions: dict[int, int] = {}
        for model, benchmark, cell in curves.cells():
            self.tables.append(resampling.cell_table(cell, model=model, group=benchmark))
            inside = (curves.model == model) & (curves.benchmark == benchmark)
            self.rows.append(np.flatnonzero(inside).astype(np.int64))
            self.exits.append(strategy_actions(cell, "early_exit"))
            count = self.tables[-1].questions
            if self._questions.setdefault(benchmark, count) != count:
                raise ValueError(
                    f"models have different numbers of questions of benchmark {benchmark}; a "
                    "paired bootstrap needs the same ones"
                )
        stop = np.zeros((1, curves.trajectories), np.int64)
        self.frame = cell_totals(curves, stop, stop)
        self.probes = curves.probes

    def by_cell(
        self, curves: Curves, decided: Decided
    ) -> list[tuple[IntArray, IntArray, IntArray]]:
        """Return cost, reward and signal tokens of every setting on each cell's trajectories."""
        rows = curves.rows_at(decided.stop)
        values = (curves.tokens[rows], curves.correct[rows].astype(np.int64), decided.signal_tokens)
        return [
            (
                np.ascontiguousarray(values[0][:, s]),
                np.ascontiguousarray(values[1][:, s]),
                np.ascontiguousarray(values[2][:, s]),
            )
            for s in self.rows
        ]

    def block(self, first: int, count: int) -> _Block:
        drawn = {
            group: np.stack(
                [
                    resampling.draw_questions(self.seed, first + row, group, questions)
                    for row in range(count)
                ]
            )
            for group, questions in self._questions.items()
        }
        samples = tuple(
            resampling.draw_samples(table, self.seed, first, drawn[table.group])
            for table in self.tables
        )
        pairs = list(zip(self.tables, samples, strict=True))
        return _Block(
            samples=samples,
            copies=tuple(resampling.trajectory_copies(table, found) for table, found in pairs),
            ends=tuple(resampling.occurrence_sums(table, found) for table, found in pairs),
        )

    def totals(
        self, block: _Block, row: int, values: Sequence[tuple[IntArray, IntArray, IntArray]]
    ) -> CellTotals:
        """Add up a method's cost, reward and signal tokens over what a replicate drew.

        ``values`` are those of each cell's trajectories; int64 ``(settings, trajectories)`` each.
        """
        sums = np.stack(
            [
                np.stack([value @ copies[row] for value in per_cell])
                for per_cell, copies in zip(values, block.copies, strict=True)
            ],
            axis=-1,
        )
        ends = np.stack([found[:, row].sum(axis=1) for found in block.ends], axis=-1)
        drawn = np.array([copies[row].sum() for copies in block.copies], np.int64)
        return replace(
            self.frame,
            cost=sums[0],
            reward=sums[1],
            signal_tokens=sums[2],
            zero_reward=ends[0],
            full_reward=ends[1],
            full_cost=ends[2],
            probes=drawn * self.probes,
        )

    def rewards(
        self, block: _Block, row: int, cell: int, strategy: Strategy, budgets: IntArray
    ) -> IntArray:
        """Return the frontier's rewards on what a replicate drew, at budgets in any order."""
        zero, full, tokens = block.ends[cell][:, row]
        order = np.argsort(budgets, kind="stable")
        if strategy == "routing":
            found, _ = grid.single_step_rewards(
                (full - zero)[None], tokens[None], budgets[order][None]
            )
            rising = int(zero.sum()) + found[0]
        elif strategy == "fixed_budget":
            gain, cost, offsets, base = resampling.budget_units(
                self.tables[cell], block.samples[cell], row
            )
            extra, _ = grid.extra_rewards(gain, cost, offsets, budgets[order])
            rising = base + extra
        else:
            actions = _repeated(self.exits[cell], block.copies[cell][row])
            rising = grid.best_rewards(actions, budgets[order]).reward
        out = np.empty(budgets.size, np.int64)
        out[order] = rising
        return out


def _points(
    draws: _Draws, block: _Block, row: int, strategy: Strategy, totals: Mapping[str, CellTotals]
) -> dict[str, Points]:
    """Return a replicate's points of all methods of a strategy: one frontier a cell for all."""
    full = _full_costs(totals)
    common = {name: fractions_of_full(found) for name, found in totals.items()}
    pieces: list[list[IntArray]] = []
    for cell, full_cost in enumerate(full):
        asked = [grid_budgets(full_cost)]
        for name, found in totals.items():
            asked += [found.cost[:, cell], budgets_at(common[name], full_cost)]
        rewards = draws.rewards(block, row, cell, strategy, np.concatenate(asked))
        pieces.append(np.split(rewards, np.cumsum([part.size for part in asked])[:-1]))
    return {
        name: assemble(
            found,
            frontier_reward=_columns(pieces, 1 + 2 * place),
            common_reward=_columns(pieces, 2 + 2 * place),
            grid_reward=_columns(pieces, 0),
        )
        for place, (name, found) in enumerate(totals.items())
    }


def _full_costs(totals: Mapping[str, CellTotals]) -> list[int]:
    """Return full thinking's tokens in every cell, the same for all methods."""
    return [int(cost) for cost in next(iter(totals.values())).full_cost]


def _columns(pieces: Sequence[Sequence[IntArray]], place: int) -> IntArray:
    return np.asarray(np.stack([parts[place] for parts in pieces], axis=1), np.int64)


def _repeated(actions: Actions, copies: IntArray) -> Actions:
    """Return actions with every unit as often as it was drawn."""
    unit = np.repeat(np.arange(copies.size), copies)
    rows, offsets = gather(actions.unit_offsets, unit)
    return Actions(
        reward=actions.reward[rows],
        cost=actions.cost[rows],
        unit_offsets=offsets,
        choice=actions.choice[rows],
    )
