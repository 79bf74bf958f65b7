"""The percentile interval: the central range of replicates, where some may have no value."""

import math

import numpy as np
import numpy.typing as npt

from oracle.bootstrap import percentile_interval
from stp.ragged import FloatArray

LEVEL = 0.95


def central_range(replicates: npt.ArrayLike, level: float = LEVEL) -> FloatArray:
    """Return both ends of the central range over the replicates; float64 ``(2, ...)``.

    Parameters
    ----------
    replicates
        Numbers ``(replicates, ...)``. NaN is a replicate that has no value: it is left out.
    level
        The share of replicates within the range.

    Returns
    -------
    numpy.ndarray
        NaN if no replicate has a value.

    Raises
    ------
    ValueError
        If the level is not between 0 and 1.

    Examples
    --------
    >>> central_range([1.0, np.nan, 2.0, 3.0], 0.5).tolist()
    [1.5, 2.5]
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    percentiles = (100 * ((1 - level) / 2), 100 * ((1 + level) / 2))
    values = np.asarray(replicates, np.float64)
    # Without replicates numpy cannot infer the rest of the shape.
    flat = values.reshape(values.shape[0], math.prod(values.shape[1:]))
    known = ~np.isnan(flat)
    ends = np.full((2, flat.shape[1]), np.nan)
    complete = known.all(axis=0)
    if values.shape[0]:
        ends[:, complete] = percentile_interval(flat[:, complete], percentiles)
    for column in np.flatnonzero(~complete & known.any(axis=0)):
        ends[:, column] = percentile_interval(flat[known[:, column], column], percentiles)
    return ends.reshape(2, *values.shape[1:])
