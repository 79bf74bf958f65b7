"""From curves to a posterior of the accuracy behind every count."""

import os
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from data.progress import NOBODY, Progress
from evaluator.analysis.latent.chains import (
    CellMembers,
    Chain,
    Learned,
    chunks,
    learn,
    normalised,
)
from evaluator.analysis.latent.kernels import (
    KeyArray,
    PathArray,
    add_posterior,
    draw_paths,
    mixed,
)
from evaluator.analysis.latent.levels import (
    Readings,
    accuracy_levels,
    mean_and_interval,
    read_counts,
)
from evaluator.analysis.latent.values import TAIL, LatentCurves
from oracle.checks import LARGEST_SEED, whole_number
from stp.curves import Curves, Int32Array
from stp.ragged import FloatArray, IntArray, gather

ITERATIONS = 1_000
FEW_TRAJECTORIES = 20
"""Below this a cell cannot teach a chain much."""

_TINY = 1e-300
_ROWS_AT_A_TIME = 16_384


def fit(
    curves: Curves,
    *,
    draws: int = 20,
    seed: int = 0,
    iterations: int = ITERATIONS,
    workers: int | None = None,
    progress: Progress = NOBODY,
) -> LatentCurves:
    """Fit the accuracies behind the counts, and draw curves of them.

    The accuracy of a trajectory moves from position to position as a Markov chain over 41 levels;
    the counts are binomial. Chains are learned by expectation-maximisation, one for every cell,
    those of a model together. Positions may have different numbers of answers.

    Parameters
    ----------
    curves
        Measured curves; extra answers are used.
    draws
        Curves drawn for every trajectory. Each has a byte a position.
    seed
        Of the draws. A draw depends on the seed, on the trajectory's numbers and on its model's
        counts, never on the number of threads.
    iterations
        Most iterations of the learning of a model.
    workers
        Threads; as many as processors when left out.
    progress
        Called with (work done, all work), in iterations and draws of all models.

    Returns
    -------
    LatentCurves
        With raw values and a note for cells whose learning did not converge.

    Raises
    ------
    ValueError
        If there is no trajectory, or a number is out of its range.

    Examples
    --------
    >>> curves = Curves(tokens=[0, 9, 20] * 40, correct=[1, 4, 3] * 40, probes=4,
    ...                 trajectory_offsets=range(0, 121, 3), question=range(40))
    >>> latent = fit(curves)
    >>> latent.mean[:3].round(1).tolist()
    [0.3, 0.9, 0.8]
    """
    if not curves.trajectories:
        raise ValueError("there is no trajectory to fit")
    draws = whole_number("draws", draws, least=1)
    seed = whole_number("seed", seed, least=0, most=LARGEST_SEED)
    iterations = whole_number("iterations", iterations, least=1)
    threads = workers or len(os.sched_getaffinity(0))
    fitted = Posterior.empty(curves, draws=draws)
    models = [cells_of(curves, model) for model in np.unique(curves.model).tolist()]
    total = len(models) * iterations + sum(map(len, models)) * draws
    learned: dict[tuple[int, int], Learned] = {}
    done = 0
    with ThreadPoolExecutor(threads) as pool:
        for cells in models:
            found = learn(
                fitted.readings,
                curves.trajectory_offsets,
                cells,
                iterations=iterations,
                pool=pool,
                progress=progress.part(done, total),
            )
            done += iterations
            for cell, one in zip(cells, found, strict=True):
                learned[cell.model, cell.benchmark] = one
                fitted.draw(cell, one, seed, pool, progress.part(done, total))
                done += draws
    return fitted.result(learned)


@dataclass(slots=True, kw_only=True, eq=False)
class Posterior:
    """The posterior of curves, filled cell by cell."""

    curves: Curves
    readings: Readings
    levels: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    paths: PathArray
    identity: KeyArray

    @classmethod
    def empty(cls, curves: Curves, *, draws: int) -> "Posterior":
        """Return room for a posterior and its draws."""
        levels = accuracy_levels()
        return cls(
            curves=curves,
            readings=read_counts(curves.all_correct_k, curves.all_probes_k, levels),
            levels=levels,
            mean=np.empty(curves.positions),
            low=np.empty(curves.positions),
            high=np.empty(curves.positions),
            paths=np.empty((draws, curves.positions), np.int8),
            identity=_identities(curves),
        )

    def read(self, cell: CellMembers, chain: Chain, pool: Executor) -> None:
        """Fill means and intervals of a cell's positions under one chain."""
        weighed = _Weighed(self, cell)
        weighed.add(chain, pool)
        weighed.read()

    def draw(
        self, cell: CellMembers, learned: Learned, seed: int, pool: Executor, progress: Progress
    ) -> None:
        """Draw chains of a cell and paths under each; fill means and intervals over the chains."""
        weighed = _Weighed(self, cell)
        for draw in range(self.draws):
            rng = np.random.default_rng([seed, cell.model, cell.benchmark, draw])
            chain = normalised(
                rng.standard_gamma(learned.starts) + _TINY,
                rng.standard_gamma(learned.moves) + _TINY,
            )
            weighed.add(chain, pool)
            self._draw_paths(cell, chain, (seed, draw), pool)
            progress(draw + 1, self.draws)
        weighed.read()

    @property
    def draws(self) -> int:
        """Number of drawn curves for every trajectory."""
        return int(self.paths.shape[0])

    def _draw_paths(
        self, cell: CellMembers, chain: Chain, stream: tuple[int, int], pool: Executor
    ) -> None:
        """Fill the paths of a cell in a draw, given the seed and the draw's number."""
        back = chain.back
        with np.errstate(over="ignore"):
            key = _mix(self.identity ^ mixed(np.uint64(stream[0]) + mixed(np.uint64(stream[1]))))

        def piece(part: IntArray) -> None:
            draw_paths(
                self.readings.code,
                self.curves.trajectory_offsets,
                part,
                self.readings.likelihood,
                chain.start,
                chain.move,
                back,
                key,
                self.paths[stream[1]],
            )

        list(pool.map(piece, chunks(cell.member)))

    def result(self, learned: dict[tuple[int, int], Learned]) -> LatentCurves:
        """Return what was filled, raw where learning did not converge."""
        curves = self.curves
        raw_s = np.zeros(curves.trajectories, np.bool_)
        for (model, benchmark), one in learned.items():
            if not one.converged:
                raw_s |= (curves.model == model) & (curves.benchmark == benchmark)
        if raw_s.any():
            raw_k = np.repeat(raw_s, np.diff(curves.trajectory_offsets))
            right, asked = curves.all_correct_k[raw_k], curves.all_probes_k[raw_k]
            self.mean[raw_k] = right / asked
            self.low[raw_k], self.high[raw_k] = exact_interval(right, asked)
        return LatentCurves(
            curves=curves,
            mean=self.mean,
            low=self.low,
            high=self.high,
            levels=self.levels,
            paths=self.paths,
            learned=learned,
            raw_s=raw_s,
            notes=tuple(_notes(curves, learned)),
        )


class _Weighed:
    """Posterior probabilities of the levels at a cell's positions, added up over chains."""

    def __init__(self, filled: Posterior, cell: CellMembers) -> None:
        self._filled, self._cell = filled, cell
        self._rows, taken = gather(filled.curves.trajectory_offsets, cell.member)
        self._place = np.zeros(filled.curves.trajectories, np.int64)
        self._place[cell.member] = taken[:-1]
        self._mass = np.zeros((self._rows.size, filled.levels.size), np.float32)

    def add(self, chain: Chain, pool: Executor) -> None:
        """Add the probabilities under a chain."""
        readings, back = self._filled.readings, chain.back

        def piece(part: IntArray) -> None:
            add_posterior(
                readings.code,
                self._filled.curves.trajectory_offsets,
                part,
                readings.likelihood,
                chain.start,
                chain.move,
                back,
                self._place,
                self._mass,
            )

        list(pool.map(piece, chunks(self._cell.member)))

    def read(self) -> None:
        """Fill means and intervals of the cell's positions."""
        filled = self._filled
        for first in range(0, self._rows.size, _ROWS_AT_A_TIME):
            part = slice(first, first + _ROWS_AT_A_TIME)
            rows = self._rows[part]
            filled.mean[rows], filled.low[rows], filled.high[rows] = mean_and_interval(
                self._mass[part], filled.levels, TAIL
            )


def exact_interval(right: Int32Array, asked: Int32Array) -> tuple[FloatArray, FloatArray]:
    """Return the Clopper-Pearson 95 % interval of a share; float64 each."""
    with np.errstate(invalid="ignore"):
        low = np.where(right > 0, beta.ppf(TAIL, right, asked - right + 1), 0.0)
        high = np.where(right < asked, beta.ppf(1 - TAIL, right + 1, asked - right), 1.0)
    return low, high


def cells_of(curves: Curves, model: int) -> list[CellMembers]:
    """Return the cells of a model, in order of their benchmarks."""
    # Passes walk through trajectories side by side, so those of one length belong together.
    lengths = np.diff(curves.trajectory_offsets)
    cells = []
    for benchmark in np.unique(curves.benchmark[curves.model == model]).tolist():
        member = np.flatnonzero((curves.model == model) & (curves.benchmark == benchmark))
        member = member[np.argsort(-lengths[member], kind="stable")]
        cells.append(CellMembers(model=model, benchmark=benchmark, member=member))
    return cells


def _mix(values: KeyArray) -> KeyArray:
    """Return :func:`mixed` of every value."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)), np.uint64)


def _identities(curves: Curves) -> KeyArray:
    """Return a number for each trajectory from its model, question and sample."""
    with np.errstate(over="ignore"):
        key = np.zeros(curves.trajectories, np.uint64)
        for part in (curves.model, curves.question, curves.sample):
            key = _mix(key + part.astype(np.int64).astype(np.uint64) + np.uint64(1))
    return key


def _notes(curves: Curves, learned: dict[tuple[int, int], Learned]) -> list[str]:
    notes = []
    for (model, benchmark), one in learned.items():
        inside = (curves.model == model) & (curves.benchmark == benchmark)
        where = _cell_name(curves, model, benchmark)
        count = int(inside.sum())
        if not one.converged:
            notes.append(
                f"{where}: the chain had not settled after {one.iterations} iterations; its values "
                "are the raw counts."
            )
        elif count < FEW_TRAJECTORIES:
            others = sum(place[0] == model for place in learned) - 1
            leans = (
                f"its chain leans on the model's {others} other cells"
                if others
                else "there is no other cell of the model to borrow from, so the prior decides much"
            )
            notes.append(f"{where}: few trajectories ({count}); {leans}.")
    return notes


def _cell_name(curves: Curves, model: int, benchmark: int) -> str:
    who = curves.model_names[model] if curves.model_names else f"model {model}"
    what = curves.benchmark_names[benchmark] if curves.benchmark_names else f"benchmark {benchmark}"
    return f"{who} on {what}"
