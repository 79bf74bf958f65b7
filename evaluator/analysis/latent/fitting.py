"""From curves to a posterior of the accuracy behind every count."""

import os
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import beta
from scipy.stats import t as student_t

from data.progress import NOBODY, Progress
from evaluator.analysis.latent.chains import (
    CellMembers,
    Chain,
    Learned,
    chunks,
    expect,
    learn,
    normalised,
)
from evaluator.analysis.latent.kernels import (
    KeyArray,
    PathArray,
    draw_paths,
    measures_of_path,
    mixed,
    posterior,
)
from evaluator.analysis.latent.levels import (
    Readings,
    accuracy_levels,
    level_edges,
    read_counts,
)
from evaluator.analysis.nesting import AVERAGE, FloatArray, make_nesting, with_averages
from oracle.checks import LARGEST_SEED, whole_number
from stp.curves import Curves, Int32Array

ITERATIONS = 200
FEW_TRAJECTORIES = 20
"""Below this a cell cannot teach a chain much."""

MEASURES = (
    "overthinking_ratio",
    "accuracy_degradation",
    "zero_accuracy",
    "full_accuracy",
    "best_accuracy",
    "degraded",
)
"""What is averaged; all fractions."""

LEVEL_ROOM = 0.01
"""Added to a tolerance where drawn curves are compared: in the middle, levels are 4 points apart,
and a plateau between two of them is drawn as both."""

_TAIL = 0.025
# Draws of the chain itself are one step of a Gibbs sampler apart; the first ones still remember
# the fitted chain, which is narrower than the posterior.
_WARM_UP = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatentCurves:
    """What counts say of the accuracy P(k) behind them.

    Attributes
    ----------
    curves
        What was fitted.
    mean, low, high
        Posterior mean of P at every position, and the ends of a 95 % interval; float64
        ``(positions,)``, as ``curves.tokens``.
    levels
        The values that P takes in paths; float64 ``(levels,)``, from 0 to 1.
    paths
        Drawn curves, as indices of ``levels``; int8 ``(draws, positions)``. In a draw all
        trajectories of a cell have one chain, which is drawn too.
    learned
        The chain of every cell, by (model, benchmark).
    raw_s
        Whether a trajectory's cell did not converge, so that everything here is read off its raw
        counts; bool ``(trajectories,)``.
    notes
        Sentences on what to mind: cells that did not converge, or are too small to be learned
        from.
    """

    curves: Curves
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    levels: FloatArray
    paths: PathArray
    learned: dict[tuple[int, int], Learned]
    raw_s: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        """Say in a line what was fitted."""
        return f"LatentCurves({self.curves!r}, {self.draws} draws, {len(self.learned)} cells)"

    @property
    def draws(self) -> int:
        """Number of drawn curves for every trajectory."""
        return int(self.paths.shape[0])

    def drawn_accuracy(self, draw: int) -> FloatArray:
        """Return P at every position in one draw; float64 ``(positions,)``.

        Where a cell did not converge, this is the raw accuracy.
        """
        accuracy = self.levels[self.paths[draw]]
        if self.raw_s.any():
            raw_k = np.repeat(self.raw_s, np.diff(self.curves.trajectory_offsets))
            accuracy = np.where(raw_k, self.mean, accuracy)
        return np.asarray(accuracy)

    def measures(self, tolerance: float = 0.03) -> FloatArray:
        """Return what each drawn curve says of each trajectory.

        Parameters
        ----------
        tolerance
            The reference position is the first whose accuracy is within this of the best.

        Returns
        -------
        numpy.ndarray
            float64 ``(draws, 5, trajectories)``: OR up to the reference position, AD, P(0), P(n)
            and the best P.

        Raises
        ------
        ValueError
            If the tolerance is not in 0..1.
        """
        tolerance = _fraction("tolerance", tolerance)
        tokens, offsets = self.curves.tokens, self.curves.trajectory_offsets
        found = np.stack(
            [
                measures_of_path(tokens, offsets, self.drawn_accuracy(d), tolerance + LEVEL_ROOM)
                for d in range(self.draws)
            ]
        )
        if self.raw_s.any():
            raw = measures_of_path(tokens, offsets, self.mean, tolerance)
            found[:, :, self.raw_s] = raw[:, self.raw_s]
        return found

    def per_trajectory(self, tolerance: float = 0.03) -> pd.DataFrame:
        """Return OR and AD of the accuracies behind each trajectory's counts.

        Parameters
        ----------
        tolerance
            OR is the fraction of thinking after the first position whose accuracy is within this
            of the best. Without a tolerance "the first best" is not defined up to noise.

        Returns
        -------
        pandas.DataFrame
            One row per trajectory, in the order of the curves: ``model``, ``benchmark``,
            ``question``, ``sample``; posterior means of the fractions ``overthinking_ratio``,
            ``accuracy_degradation`` (P(best) - P(n)), ``degraded`` (probability that it is more
            than the tolerance), ``zero_accuracy``, ``full_accuracy`` and ``best_accuracy``; and
            of the first two the ends of an interval over the draws, ``*_low`` and ``*_high``
            (2.5 % and 97.5 %; with 20 draws, near the least and the greatest).

        Raises
        ------
        ValueError
            If the tolerance is not in 0..1.
        """
        found = self.measures(tolerance)
        curves = self.curves
        mean = found.mean(axis=0)
        low, high = np.quantile(found[:, :2], [_TAIL, 1 - _TAIL], axis=0)
        return pd.DataFrame(
            {
                "model": curves.model,
                "benchmark": curves.benchmark,
                "question": curves.question,
                "sample": curves.sample,
                "overthinking_ratio": mean[0],
                "accuracy_degradation": mean[1],
                "degraded": (found[:, 1] > tolerance).mean(axis=0),
                "zero_accuracy": mean[2],
                "full_accuracy": mean[3],
                "best_accuracy": mean[4],
                "overthinking_ratio_low": low[0],
                "overthinking_ratio_high": high[0],
                "accuracy_degradation_low": low[1],
                "accuracy_degradation_high": high[1],
            }
        )

    def averages(self, tolerance: float = 0.03) -> pd.DataFrame:
        """Return averages over trajectories of what :meth:`per_trajectory` estimates.

        Trajectories -> question -> cell -> equal weight over benchmarks and models.

        Parameters
        ----------
        tolerance
            As for :meth:`per_trajectory`.

        Returns
        -------
        pandas.DataFrame
            Indexed by (``model``, ``benchmark``, ``measure``), -1 for averages over models or
            benchmarks. ``estimate``, and ``low`` and ``high``: a 95 % interval for the average of
            these trajectories (what other questions would give is not in it), by Student's t from
            the spread over the draws. One draw has no spread: NaN.

        Raises
        ------
        ValueError
            If the tolerance is not in 0..1.
        """
        found = self.measures(tolerance)
        degraded = (found[:, 1:2] > tolerance).astype(np.float64)
        values = np.concatenate([found, degraded], axis=1)
        curves = self.curves
        nesting = make_nesting(
            model=curves.model,
            benchmark=curves.benchmark,
            question=curves.question,
            sample=curves.sample,
        )
        drawn = np.stack([with_averages(nesting.cell_means(one.T)) for one in values])
        estimate = drawn.mean(axis=0)
        spread = np.full_like(estimate, np.nan)
        if self.draws > 1:
            # The mean of the draws is off by its own share, as in Rubin's rule for imputations.
            wider = np.sqrt(1 + 1 / self.draws) * student_t.ppf(1 - _TAIL, self.draws - 1)
            spread = wider * drawn.std(axis=0, ddof=1)
        index = pd.MultiIndex.from_product(
            [[*nesting.models, AVERAGE], [*nesting.benchmarks, AVERAGE], MEASURES],
            names=["model", "benchmark", "measure"],
        )
        frame = pd.DataFrame(
            {
                "estimate": estimate.reshape(-1),
                "low": np.maximum(estimate - spread, 0.0).reshape(-1),
                "high": np.minimum(estimate + spread, 1.0).reshape(-1),
            },
            index,
        )
        return frame.dropna(subset="estimate")


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
    fitted = _Fit.empty(curves, draws=draws, seed=seed)
    models = np.unique(curves.model).tolist()
    share = iterations + draws + _WARM_UP
    learned: dict[tuple[int, int], Learned] = {}
    with ThreadPoolExecutor(threads) as pool:
        for place, model in enumerate(models):
            told = progress.part(place * share, len(models) * share)
            cells = _cells_of(curves, model)
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
class _Fit:
    """Arrays that are filled cell by cell."""

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
    def empty(cls, curves: Curves, *, draws: int, seed: int) -> "_Fit":
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
                _TAIL,
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


_TINY = 1e-300


def exact_interval(right: Int32Array, asked: Int32Array) -> tuple[FloatArray, FloatArray]:
    """Return the Clopper-Pearson 95 % interval of a share; float64 each."""
    with np.errstate(invalid="ignore"):
        low = np.where(right > 0, beta.ppf(_TAIL, right, asked - right + 1), 0.0)
        high = np.where(right < asked, beta.ppf(1 - _TAIL, right + 1, asked - right), 1.0)
    return low, high


def held_out_log_likelihood(latent: LatentCurves, other: Curves) -> float:
    """Return the log-likelihood per position of other curves' counts under the fitted chains.

    Parameters
    ----------
    latent
        A fit.
    other
        Curves of the same cells, such as those of other questions.

    Raises
    ------
    ValueError
        If a cell of ``other`` was not fitted, or there is no trajectory.
    """
    readings = read_counts(other.all_correct_k, other.all_probes_k, latent.levels)
    total = 0.0
    with ThreadPoolExecutor(1) as pool:
        for cell, one in _fitted_cells(latent, other):
            found = expect(readings, other.trajectory_offsets, cell.member, one.chain, pool)
            total += found.log_likelihood
    return total / other.positions


def read_others(latent: LatentCurves, other: Curves) -> FloatArray:
    """Return the posterior mean of P at every position of other curves under the fitted chains.

    Parameters
    ----------
    latent, other
        As for :func:`held_out_log_likelihood`.

    Returns
    -------
    numpy.ndarray
        float64 ``(positions,)``, as ``other.tokens``.

    Raises
    ------
    ValueError
        As :func:`held_out_log_likelihood`.
    """
    filled = _Fit.empty(other, draws=0, seed=0)
    with ThreadPoolExecutor(1) as pool:
        for cell, one in _fitted_cells(latent, other):
            filled.read_posterior(cell, one, pool)
    return filled.mean


def interval_widths(latent: LatentCurves, probes: int, *, seed: int = 0) -> tuple[float, float]:
    """Return the mean width of the intervals of P, and what it would be with fewer probes.

    The chains stay those of all probes, so only what a position's own counts tell is thinned.

    Parameters
    ----------
    latent
        A fit.
    probes
        Kept at every position, at random; extra answers are left out.
    seed
        Of what is kept.

    Raises
    ------
    ValueError
        If there are not so many probes.
    """
    curves = latent.curves
    probes = whole_number("probes", probes, least=1, most=curves.probes)
    rng = np.random.default_rng([seed, probes])
    kept = rng.hypergeometric(curves.correct, curves.probes - curves.correct, probes)
    fewer = replace(
        curves,
        correct=kept.astype(np.int32),
        probes=probes,
        extra_probes=np.empty(0, np.int32),
        extra_correct=np.empty(0, np.int32),
    )
    filled = _Fit.empty(fewer, draws=0, seed=0)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for cell, one in _fitted_cells(latent, fewer):
            filled.read_posterior(cell, one, pool)
    lower, upper = level_edges(latent.levels)
    thinner = float((upper[filled.high] - lower[filled.low]).mean())
    return float((latent.high - latent.low).mean()), thinner


def _fitted_cells(latent: LatentCurves, other: Curves) -> list[tuple[CellMembers, Learned]]:
    if not other.trajectories:
        raise ValueError("there is no trajectory to read")
    found = []
    for model in np.unique(other.model).tolist():
        for cell in _cells_of(other, model):
            one = latent.learned.get((cell.model, cell.benchmark))
            if one is None:
                raise ValueError(
                    f"no chain was fitted for model {cell.model} on benchmark {cell.benchmark}"
                )
            found.append((cell, one))
    return found


def _cells_of(curves: Curves, model: int) -> list[CellMembers]:
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


def _fraction(name: str, value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must lie in 0..1, not {value!r}")
    return float(value)
