"""Whether the next step helps: the signs of ΔP(k) = P(k) - P(k-1) as thinking continues.

Figure 2 of paper 002. Steps are pooled over all trajectories of the curves given, each step with
equal weight, and sorted into bins of absolute progress L(k).
"""

import numpy as np
import pandas as pd

from stp.curves import Curves


def changes_by_progress(curves: Curves, bin_tokens: int) -> pd.DataFrame:
    """Return the fractions of positive, negative and flat ΔP by tokens thought so far.

    Parameters
    ----------
    curves
        Measured curves; take one cell with :meth:`stp.curves.Curves.cell` for that cell alone.
    bin_tokens
        Width of a bin in thinking tokens. A step belongs to the bin that holds L(k), the tokens
        retained after it; bin i covers ``[i * bin_tokens, (i + 1) * bin_tokens)``.

    Returns
    -------
    pandas.DataFrame
        One row per bin that holds a step: ``from_tokens``, ``to_tokens``, ``steps``, the
        fractions ``positive``, ``negative``, ``flat`` and ``negative_to_positive`` (NaN if no
        step is positive).

    Raises
    ------
    ValueError
        If ``bin_tokens`` is not positive.

    Examples
    --------
    >>> curves = Curves(tokens=[0, 5, 9, 14], correct=[1, 4, 4, 2], trajectory_offsets=[0, 4],
    ...                 question=[0], probes=4)
    >>> changes_by_progress(curves, 10)[["steps", "positive", "negative", "flat"]].values.tolist()
    [[2.0, 0.5, 0.0, 0.5], [1.0, 0.0, 1.0, 0.0]]
    """
    if bin_tokens < 1:
        raise ValueError(f"bin_tokens must be positive, not {bin_tokens}")
    is_step = np.ones(curves.positions, np.bool_)
    is_step[curves.trajectory_offsets[:-1]] = False
    sign = np.sign(np.diff(curves.correct, prepend=0)[is_step])
    bins, index = np.unique(curves.tokens[is_step] // bin_tokens, return_inverse=True)
    positive = np.bincount(index[sign > 0], minlength=bins.size)
    negative = np.bincount(index[sign < 0], minlength=bins.size)
    steps = np.bincount(index, minlength=bins.size)
    some = np.maximum(steps, 1)
    return pd.DataFrame(
        {
            "from_tokens": bins * bin_tokens,
            "to_tokens": (bins + 1) * bin_tokens,
            "steps": steps,
            "positive": positive / some,
            "negative": negative / some,
            "flat": (steps - positive - negative) / some,
            "negative_to_positive": np.where(
                positive > 0, negative / np.maximum(positive, 1), np.nan
            ),
        }
    )


def suitable_bin_tokens(curves: Curves) -> int:
    """Return a round bin width (1, 2 or 5 times a power of ten) that gives about 20 bins.

    The 95th percentile of L(n) sets the scale, so that a few very long trajectories do not.
    """
    if curves.trajectories == 0:
        return 1
    target = max(float(np.quantile(curves.full_tokens_s, 0.95)) / 20, 1.0)
    power = 10.0 ** np.floor(np.log10(target))
    return int(power * next(step for step in (1, 2, 5, 10) if step * power >= target))
