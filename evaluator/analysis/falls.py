"""The step that ruined an answer: after which the accuracy of a trajectory falls most."""

from dataclasses import dataclass

import numpy as np

from stp.curves import Curves
from stp.ragged import IntArray, first_greatest, greatest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Falls:
    """The largest fall of every trajectory.

    Attributes
    ----------
    probes
        Right probes lost by it, max over k >= 1 of C(k - 1) - C(k), and 0 if none is lost; int64
        ``(trajectories,)``.
    step
        The earliest step k that loses so many, 0 if none does; int64 ``(trajectories,)``.
    """

    probes: IntArray
    step: IntArray


def largest_falls(curves: Curves) -> Falls:
    """Return after which step the accuracy of every trajectory falls most, and how far.

    Examples
    --------
    >>> curves = Curves(tokens=[0, 9, 20, 31], correct=[1, 4, 3, 0], trajectory_offsets=[0, 4],
    ...                 question=[0], probes=4)
    >>> falls = largest_falls(curves)
    >>> falls.probes.tolist(), falls.step.tolist()
    ([3], [3])
    """
    correct = curves.correct.astype(np.int64)
    lost = np.zeros(correct.size, np.int64)
    lost[1:] = correct[:-1] - correct[1:]
    # The first position of a trajectory follows no other of it. As 0 it is the answer where
    # nothing is lost later.
    lost[curves.trajectory_offsets[:-1]] = 0
    np.maximum(lost, 0, out=lost)
    offsets = curves.trajectory_offsets
    return Falls(probes=greatest(lost, offsets), step=first_greatest(lost, offsets))
