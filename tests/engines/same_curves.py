"""Whether two campaigns have the same curves within sampling error.

The test: under the hypothesis that two engines sample from one distribution, the trajectories of a
question are exchangeable between them. So each question's trajectories are dealt again, 9,999
times, and a statistic's difference between the two sides is compared with those of the deals.
Statistics, each a mean over trajectories: thinking tokens L(n), accuracy without thinking, accuracy
with all of it, and accuracy averaged over all positions. The p-values are two-sided; the least of
the four is multiplied by four (Bonferroni).
"""

import numpy as np
import numpy.typing as npt

from stp.curves import Curves

DEALS = 9_999


def least_p_value(first: Curves, second: Curves, *, seed: int = 0) -> float:
    """Return the corrected p-value of the hypothesis that both have the same curves."""
    values = np.concatenate([_statistics(first), _statistics(second)])
    question = np.concatenate([first.question, second.question])
    mine = np.arange(len(values)) < first.trajectories
    observed = np.abs(values[mine].mean(0) - values[~mine].mean(0))
    generator = np.random.default_rng(seed)
    as_far = np.ones(values.shape[1])
    groups = [np.flatnonzero(question == number) for number in np.unique(question)]
    for _ in range(DEALS):
        dealt = mine.copy()
        for group in groups:
            dealt[group] = generator.permutation(mine[group])
        difference = np.abs(values[dealt].mean(0) - values[~dealt].mean(0))
        as_far += difference >= observed - 1e-12
    return float(min(1.0, 4 * (as_far / (DEALS + 1)).min()))


def _statistics(curves: Curves) -> npt.NDArray[np.float64]:
    """Return one row of four numbers for each trajectory."""
    starts = curves.trajectory_offsets[:-1]
    lengths = np.diff(curves.trajectory_offsets)
    average = np.add.reduceat(curves.correct, starts) / lengths / curves.probes
    return np.column_stack(
        [
            curves.tokens[curves.trajectory_offsets[1:] - 1],
            curves.correct[starts] / curves.probes,
            curves.correct[curves.trajectory_offsets[1:] - 1] / curves.probes,
            average,
        ]
    ).astype(np.float64)
