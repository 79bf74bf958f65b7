"""Fitted chains on other counts: other questions, or fewer probes."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from evaluator.analysis.latent.chains import CellMembers, Learned, expect
from evaluator.analysis.latent.fitting import Posterior, cells_of
from evaluator.analysis.latent.levels import read_counts
from evaluator.analysis.latent.values import LatentCurves
from oracle.checks import whole_number
from stp.curves import Curves
from stp.ragged import FloatArray


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
    filled = Posterior.empty(other, draws=0)
    with ThreadPoolExecutor(1) as pool:
        for cell, one in _fitted_cells(latent, other):
            filled.read(cell, one.chain, pool)
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
        If there are fewer probes.
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
    filled = Posterior.empty(fewer, draws=0)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for cell, one in _fitted_cells(latent, fewer):
            filled.read(cell, one.chain, pool)
    return float((latent.high - latent.low).mean()), float((filled.high - filled.low).mean())


def _fitted_cells(latent: LatentCurves, other: Curves) -> list[tuple[CellMembers, Learned]]:
    if not other.trajectories:
        raise ValueError("there is no trajectory to read")
    found = []
    for model in np.unique(other.model).tolist():
        for cell in cells_of(other, model):
            one = latent.learned.get((cell.model, cell.benchmark))
            if one is None:
                raise ValueError(
                    f"no chain was fitted for model {cell.model} on benchmark {cell.benchmark}"
                )
            found.append((cell, one))
    return found
