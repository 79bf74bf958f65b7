"""Latent curves against truth: errors, coverage and held-out probes.

``scripts/benchmarks/latent.py`` runs these and prints tables; ``docs/statistics.md`` quotes them.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.stats import betabinom
from sklearn.isotonic import IsotonicRegression

from evaluator.analysis.latent import LatentCurves, choose_positions, fit, read_others
from evaluator.simulation.estimators import true_overthinking
from evaluator.simulation.families import thinned
from evaluator.simulation.worlds import World
from stp.curves import Curves
from stp.ragged import FloatArray

TOLERANCE = 0.03
PAPER_PROBES = 16
"""What costs are shares of."""
_CERTAIN = 0.01


def raw_measures(curves: Curves) -> pd.DataFrame:
    """Return OR up to the tolerance of latent curves, and AD, of the raw accuracies."""
    counted = World(
        curves=curves,
        accuracy=curves.correct / curves.probes,
        cut=np.zeros(curves.trajectories, np.bool_),
    )
    return true_overthinking(counted, TOLERANCE)


def errors_in_world(
    world: World, probes: int, *, seed: int = 0, draws: int = 20
) -> dict[str, float]:
    """Return how far raw counts and latent curves are from the truth, for some of the probes.

    Parameters
    ----------
    world
        With at least ``probes`` probes at every position.
    probes
        Kept at every position, at random.
    seed
        Of the thinning and of the draws.
    draws
        Of latent curves.

    Returns
    -------
    dict
        Fractions. ``true_*``, ``raw_*`` and ``latent_*`` for ``ad`` and ``or`` are means over
        trajectories; ``*_ad_error`` mean absolute errors per trajectory. ``covered_p`` is the
        share of positions whose interval holds the true P, ``covered_ad`` the share of
        trajectories whose interval of draws holds the true AD, ``covered_mean_ad`` 1 if the
        interval of the cell's mean AD does, else 0.
    """
    columns = ["overthinking_ratio", "accuracy_degradation"]
    truth = true_overthinking(world, TOLERANCE)
    curves = world.curves if probes == world.curves.probes else thinned(world.curves, probes, seed)
    raw = raw_measures(curves)
    latent = fit(curves, draws=draws, seed=seed)
    found = latent.per_trajectory(TOLERANCE)
    cell = latent.averages(TOLERANCE).xs((0, 0), level=("model", "benchmark"))
    low, high = cell.loc["accuracy_degradation", ["low", "high"]].to_numpy(np.float64)
    found_ad, true_ad = found["accuracy_degradation"], truth["accuracy_degradation"]
    # A level stands for a stretch; half of the widest, 2 points, is what draws cannot resolve.
    room = 0.02
    held = (found["accuracy_degradation_low"] - room <= true_ad) & (
        true_ad <= found["accuracy_degradation_high"] + room
    )
    by_question = truth.groupby("question")["accuracy_degradation"].mean().mean()
    row = {}
    for source, frame in (("true", truth), ("raw", raw), ("latent", found)):
        ratio, degradation = frame[columns].mean()
        row[f"{source}_ad"], row[f"{source}_or"] = float(degradation), float(ratio)
    return {
        **row,
        "raw_ad_error": float((raw["accuracy_degradation"] - true_ad).abs().mean()),
        "latent_ad_error": float((found_ad - true_ad).abs().mean()),
        "covered_p": float(covered_positions(latent, world.accuracy)),
        "covered_ad": float(held.mean()),
        "covered_mean_ad": float(low <= by_question <= high),
    }


def covered_positions(latent: LatentCurves, accuracy: FloatArray) -> float:
    """Return the share of positions whose interval holds the true accuracy."""
    return float(((latent.low <= accuracy) & (accuracy <= latent.high)).mean())


def world_of_many_probes(curves: Curves, probes: int, seed: int) -> World:
    """Return curves of a few out of very many probes, with the share of all as the truth.

    Parameters
    ----------
    curves
        With enough probes that the share of right ones can stand for P.
    probes
        Kept at every position.
    seed
        Of what is kept.
    """
    return World(
        curves=thinned(curves, probes, seed),
        accuracy=curves.correct / curves.probes,
        cut=np.zeros(curves.trajectories, np.bool_),
    )


def held_out_scores(curves: Curves, seed: int = 0) -> pd.Series:
    """Return how well estimates from half of the probes predict the other half.

    Whatever is learned from other curves is learned on one half of the questions (their first
    half of the probes); predictions are for the other half of the questions.

    Parameters
    ----------
    curves
        One cell with at least two probes per position.
    seed
        Of the split.

    Returns
    -------
    pandas.Series
        Mean log-likelihood of a held-out probe, nats, by estimator: ``raw`` shares,
        ``beta_binomial`` smoothing, ``isotonic`` regression, ``chain``. Predictions are kept
        within 0.01 and 0.99.
    """
    rng = np.random.default_rng([seed, 77])
    questions = np.unique(curves.question)
    learning = np.isin(curves.question, rng.permutation(questions)[: questions.size // 2])
    seen = thinned(curves, curves.probes // 2, seed)
    left = curves.probes - seen.probes
    other = seen.select(~learning)
    hidden = replace(curves, correct=curves.correct - seen.correct, probes=left).select(~learning)
    first = seen.select(learning)
    raw = other.correct / other.probes
    a, b = _beta_binomial(first)
    predictions = {
        "raw": raw,
        "beta_binomial": (other.correct + a) / (other.probes + a + b),
        "isotonic": _isotonic(other),
        "chain": read_others(fit(first, draws=1), other),
    }
    scores = {}
    for name, accuracy in predictions.items():
        p = np.clip(accuracy, _CERTAIN, 1 - _CERTAIN)
        log = hidden.correct * np.log(p) + (left - hidden.correct) * np.log1p(-p)
        scores[name] = float(log.mean() / left)
    return pd.Series(scores)


def _beta_binomial(curves: Curves) -> tuple[float, float]:
    """Return the parameters of the Beta distribution of P that fit the counts best."""
    counts = np.bincount(curves.correct, minlength=curves.probes + 1)
    values = np.arange(curves.probes + 1)

    def loss(log: FloatArray) -> float:
        a, b = np.exp(log)
        return -float(counts @ betabinom.logpmf(values, curves.probes, a, b))

    found = minimize(loss, np.zeros(2), method="Nelder-Mead")
    a, b = np.exp(found.x)
    return float(a), float(b)


def _isotonic(curves: Curves) -> FloatArray:
    """Return the rising curve nearest to each trajectory's shares."""
    fitted = np.empty(curves.positions)
    for first, last in zip(
        curves.trajectory_offsets[:-1], curves.trajectory_offsets[1:], strict=True
    ):
        share = curves.correct[first:last] / curves.probes
        fitted[first:last] = IsotonicRegression().fit_transform(np.arange(share.size), share)
    return fitted


def replayed(
    world: World,
    *,
    share: float,
    first: int = 4,
    rounds: int = 3,
    most: int = 16,
    seed: int = 0,
    draws: int = 120,
) -> tuple[LatentCurves, float]:
    """Replay adaptive probing on a fully probed world.

    Answers of a position are taken from those that it has, without replacement, so the adaptive
    answers are a part of all answers.

    Parameters
    ----------
    world
        Fully probed.
    share
        Answers to spend, as a share of 16 at every position.
    first
        Answers at every position in the first pass.
    rounds
        Further passes, with equal budgets.
    most
        Answers that a position may have in all; no more than the world has.
    seed, draws
        Of the answers taken, and of the fits.

    Returns
    -------
    tuple
        The last fit, and the share that was really spent.

    Raises
    ------
    ValueError
        If the share does not pay for the first pass.
    """
    full = world.curves
    budget = int(share * PAPER_PROBES * full.positions)
    if budget < first * full.positions:
        raise ValueError(f"a share of {share} does not pay for {first} answers at every position")
    curves = thinned(full, first, seed)
    rng = np.random.default_rng([seed, 4_711])
    extra = np.zeros(full.positions, np.int32)
    extra_correct = np.zeros(full.positions, np.int32)
    each = (budget - first * full.positions) // max(rounds, 1)
    latent = fit(curves, draws=draws, seed=seed)
    for _ in range(rounds if each else 0):
        more = choose_positions(latent, budget=each, most=most)
        left = full.probes - first - extra
        right = full.correct - curves.correct - extra_correct
        extra_correct = extra_correct + rng.hypergeometric(right, left - right, more)
        extra = extra + more
        known = replace(curves, extra_probes=extra, extra_correct=extra_correct.astype(np.int32))
        latent = fit(known, draws=draws, seed=seed)
    spent = float(latent.curves.all_probes_k.sum())
    return latent, spent / (PAPER_PROBES * full.positions)


def cost_curve(
    world: World, *, shares: tuple[float, ...] = (0.30, 0.35, 0.5), seed: int = 0
) -> pd.DataFrame:
    """Return errors of AD and OR against cost, for uniform and adaptive probing.

    Parameters
    ----------
    world
        Fully probed, with known truth.
    shares
        Of 16 answers everywhere, for adaptive probing with a first pass of 4. Where the world has
        more than 16 answers at a position, rounds up to 16 and up to all of them are replayed.
    seed
        Of all that is drawn.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``plan``: ``cost`` (share of 16 answers everywhere), mean absolute errors per
        trajectory ``ad_error`` and ``or_error`` against the truth (OR within 3 points), and the
        absolute errors of their means over trajectories, ``mean_ad_error`` and
        ``mean_or_error``; fractions.
    """
    truth = true_overthinking(world, TOLERANCE)
    rows = {}

    def errors(latent: LatentCurves, cost: float) -> dict[str, float]:
        found = latent.per_trajectory(TOLERANCE)
        row = {"cost": cost}
        for short, column in (("ad", "accuracy_degradation"), ("or", "overthinking_ratio")):
            difference = (found[column] - truth[column]).to_numpy(np.float64)
            row[f"{short}_error"] = float(np.abs(difference).mean())
            row[f"mean_{short}_error"] = float(abs(difference.mean()))
        return row

    full = world.curves
    for probes in (2, 4, 8, PAPER_PROBES):
        if probes <= full.probes:
            curves = full if probes == full.probes else thinned(full, probes, seed)
            latent = fit(curves, draws=60, seed=seed)
            rows[f"uniform {probes}"] = errors(latent, probes / PAPER_PROBES)
    for most in sorted({min(PAPER_PROBES, full.probes), full.probes}):
        for share in shares:
            found = replayed(world, share=share, most=most, seed=seed)
            rows[f"adaptive {share:.0%}, up to {most}"] = errors(*found)
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("plan")
