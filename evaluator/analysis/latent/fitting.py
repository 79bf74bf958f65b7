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
    draw_paths,
    mixed,
    posterior,
)
from evaluator.analysis.latent.levels import (
    Readings,
    accuracy_levels,
    level_edges,
    read_counts,
)
from evaluator.analysis.latent.values import TAIL, LatentCurves
from oracle.checks import LARGEST_SEED, whole_number
from stp.curves import Curves, Int32Array
from stp.ragged import FloatArray

ITERATIONS = 200
FEW_TRAJECTORIES = 20
"""Below this a cell cannot teach a chain much."""

# Draws of the chain itself are one step of a Gibbs sampler apart; the first ones still remember
# the fitted chain, which is narrower than the posterior.
_WARM_UP = 5
_TINY = 1e-300


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
    fitted = Posterior.empty(curves, draws=draws, seed=seed)
    models = np.unique(curves.model).tolist()
    share = iterations + draws + _WARM_UP
    learned: dict[tuple[int, int], Learned] = {}
    with ThreadPoolExecutor(threads) as pool:
        for place, model in enumerate(models):
            told = progress.part(place * share, len(models) * share)
            cells = cells_of(curves, model)
            found = learn(
                fitted.readings,
                curves.trajectory_offsets,
                cells,
                iterations=iterations,
                pool=pool,
                progress=told,
            )
            for cell, one in zip(cells, found, strict=True):
                learned[cell.model, cell.benchmark] = one
                fitted.read_posterior(cell, one, pool)
            for draw in range(-_WARM_UP, draws):
                for cell, one in zip(cells, found, strict=True):
                    fitted.draw(cell, one, draw, pool)
                told(iterations + _WARM_UP + draw + 1, share)
    return fitted.result(learned)


@dataclass(slots=True, kw_only=True, eq=False)
class Posterior:
    """The posterior of curves, filled cell by cell."""

    curves: Curves
    seed: int
    readings: Readings
    levels: FloatArray
    mean: FloatArray
    low: PathArray
    high: PathArray
    paths: PathArray
    spare: PathArray
    identity: KeyArray
    drawn: dict[tuple[int, int], Chain]

    @classmethod
    def empty(cls, curves: Curves, *, draws: int, seed: int) -> "Posterior":
        """Return room for a posterior and its draws."""
        levels = accuracy_levels()
        return cls(
            curves=curves,
            seed=seed,
            readings=read_counts(curves.all_correct_k, curves.all_probes_k, levels),
            levels=levels,
            mean=np.empty(curves.positions),
            low=np.empty(curves.positions, np.int8),
            high=np.empty(curves.positions, np.int8),
            paths=np.empty((draws, curves.positions), np.int8),
            spare=np.empty(curves.positions, np.int8),
            identity=_identities(curves),
            drawn={},
        )

    def read_posterior(self, cell: CellMembers, learned: Learned, pool: Executor) -> None:
        """Fill means and tails of a cell's positions under its chain."""
        chain, back = learned.chain, learned.chain.back

        def piece(ends: tuple[int, int]) -> None:
            posterior(
                self.readings.code,
                self.curves.trajectory_offsets,
                cell.member,
                *ends,
                self.readings.likelihood,
                chain.start,
                chain.move,
                back,
                self.levels,
                TAIL,
                self.mean,
                self.low,
                self.high,
            )

        list(pool.map(piece, chunks(cell.member)))

    def draw(self, cell: CellMembers, learned: Learned, draw: int, pool: Executor) -> None:
        """Draw the paths of a cell, and from these the chain of its next draw."""
        place = (cell.model, cell.benchmark)
        chain = self.drawn.get(place, learned.chain)
        back = chain.back
        # Draws of the warm-up have numbers of their own, after all others.
        number = draw if draw >= 0 else 2**32 + draw
        with np.errstate(over="ignore"):
            stream = mixed(np.uint64(self.seed) + mixed(np.uint64(number)))
            key = _mix(self.identity ^ stream)

        def piece(ends: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
            found: tuple[FloatArray, FloatArray] = draw_paths(
                self.readings.code,
                self.curves.trajectory_offsets,
                cell.member,
                *ends,
                self.readings.likelihood,
                chain.start,
                chain.move,
                back,
                key,
                self.paths[draw] if draw >= 0 else self.spare,
            )
            return found

        parts = list(pool.map(piece, chunks(cell.member)))
        rng = np.random.default_rng([self.seed, cell.model, cell.benchmark, number])
        moves = np.sum([part[0] for part in parts], axis=0) + learned.weight * learned.centre.move
        starts = np.sum([part[1] for part in parts], axis=0) + learned.weight * learned.centre.start
        self.drawn[place] = normalised(
            rng.standard_gamma(starts) + _TINY, rng.standard_gamma(moves) + _TINY
        )

    def result(self, learned: dict[tuple[int, int], Learned]) -> LatentCurves:
        """Return what was filled, raw where learning did not converge."""
        curves = self.curves
        self._widen_few(learned)
        lower, upper = level_edges(self.levels)
        low, high = lower[self.low], upper[self.high]
        raw_s = np.zeros(curves.trajectories, np.bool_)
        for (model, benchmark), one in learned.items():
            if not one.converged:
                raw_s |= (curves.model == model) & (curves.benchmark == benchmark)
        if raw_s.any():
            raw_k = np.repeat(raw_s, np.diff(curves.trajectory_offsets))
            right, asked = curves.all_correct_k[raw_k], curves.all_probes_k[raw_k]
            self.mean[raw_k] = right / asked
            low[raw_k], high[raw_k] = exact_interval(right, asked)
        return LatentCurves(
            curves=curves,
            mean=self.mean,
            low=low,
            high=high,
            levels=self.levels,
            paths=self.paths,
            learned=learned,
            raw_s=raw_s,
            notes=tuple(_notes(curves, learned)),
        )

    def _widen_few(self, learned: dict[tuple[int, int], Learned]) -> None:
        """Let intervals of small cells reach as far as their draws.

        Posteriors are those under the fitted chain. Few trajectories leave a chain uncertain, and
        only the draws, whose chains are drawn too, know of that.
        """
        curves = self.curves
        few_s = np.zeros(curves.trajectories, np.bool_)
        for model, benchmark in learned:
            inside = (curves.model == model) & (curves.benchmark == benchmark)
            if inside.sum() < FEW_TRAJECTORIES:
                few_s |= inside
        if few_s.any():
            few_k = np.repeat(few_s, np.diff(curves.trajectory_offsets))
            self.low[few_k] = np.minimum(self.low[few_k], self.paths[:, few_k].min(axis=0))
            self.high[few_k] = np.maximum(self.high[few_k], self.paths[:, few_k].max(axis=0))


def exact_interval(right: Int32Array, asked: Int32Array) -> tuple[FloatArray, FloatArray]:
    """Return the Clopper-Pearson 95 % interval of a share; float64 each."""
    with np.errstate(invalid="ignore"):
        low = np.where(right > 0, beta.ppf(TAIL, right, asked - right + 1), 0.0)
        high = np.where(right < asked, beta.ppf(1 - TAIL, right + 1, asked - right), 1.0)
    return low, high


def cells_of(curves: Curves, model: int) -> list[CellMembers]:
    """Return the cells of a model, in order of their benchmarks."""
    return [
        CellMembers(
            model=model,
            benchmark=benchmark,
            member=np.flatnonzero((curves.model == model) & (curves.benchmark == benchmark)),
        )
        for benchmark in np.unique(curves.benchmark[curves.model == model]).tolist()
    ]


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
