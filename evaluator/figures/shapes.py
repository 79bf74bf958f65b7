"""The shapes that curves have: accuracy that rises to the end, stays, falls, or never changes.

Paper 002's Figure 7 shows recorded curves of several shapes. Which trajectory stands for a shape is
chosen by rule, from the middle of its kind, not for its looks.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from matplotlib.figure import Figure

from evaluator.analysis.overthinking import per_trajectory
from evaluator.figures.trajectories import draw_curve
from evaluator.present.figure_style import add_note, house_style, new_figure
from stp.curves import Curves

SHAPES: Final = {
    "rise": "Rises to the end",
    "plateau": "Stays at its best",
    "fall": "Falls after its best",
    "flat": "Never changes",
}
"""Names of the shapes, and what they are called."""


def curve_shapes(curves: Curves) -> list[str]:
    """Return the shape of every trajectory's curve.

    ``flat``: the same accuracy at every position. ``rise``: the best accuracy is first reached at
    the end. ``fall``: the end is below the best (AD > 0). ``plateau``: the rest, where the best is
    reached before the end and the end is as good.

    Examples
    --------
    >>> curves = Curves(tokens=[0, 5, 9, 0, 5, 9], correct=[0, 1, 2, 2, 2, 1],
    ...                 trajectory_offsets=[0, 3, 6], question=[0, 0], probes=2)
    >>> curve_shapes(curves)
    ['rise', 'fall']
    """
    starts, ends = curves.trajectory_offsets[:-1], curves.trajectory_offsets[1:]
    shapes = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        correct = curves.correct[start:end]
        if (correct == correct[0]).all():
            shapes.append("flat")
        elif correct[-1] < correct.max():
            shapes.append("fall")
        else:
            shapes.append("rise" if int(correct.argmax()) == len(correct) - 1 else "plateau")
    return shapes


def typical_of_shapes(curves: Curves) -> dict[str, int]:
    """Return for each shape that there is the trajectory in the middle of its kind.

    A rise is ordered by how far it rises above P(0), a plateau and a flat curve by their OR, a fall
    by its AD; the middle one is taken (the lower of two), the first on ties.
    """
    frame = per_trajectory(curves)
    shapes = np.array(curve_shapes(curves))
    first = curves.correct[curves.trajectory_offsets[:-1]]
    orders = {
        "rise": curves.full_correct_s - first,
        "plateau": frame["overthinking_ratio"].to_numpy(),
        "fall": frame["accuracy_degradation"].to_numpy(),
        "flat": frame["overthinking_ratio"].to_numpy(),
    }
    chosen = {}
    for shape, values in orders.items():
        members = np.flatnonzero(shapes == shape)
        if members.size:
            ordered = members[np.argsort(values[members], kind="stable")]
            chosen[shape] = int(ordered[(members.size - 1) // 2])
    return chosen


def shapes_plot(curves: Curves, names: Mapping[int, str], *, note: str = "") -> Figure:
    """Draw a trajectory of each shape, each on its own token axis (paper 002, Figure 7).

    Parameters
    ----------
    curves
        Measured curves.
    names
        What to call each trajectory of :func:`typical_of_shapes`, by its index.
    note
        Caption.

    Raises
    ------
    ValueError
        If there is no trajectory.
    """
    chosen = typical_of_shapes(curves)
    if not chosen:
        raise ValueError("there is no trajectory to draw")
    shapes = curve_shapes(curves)
    frame = per_trajectory(curves)
    columns = min(2, len(chosen))
    rows = -(-len(chosen) // columns)
    with house_style():
        figure = new_figure(3.4 * columns + 0.4, 2.5 * rows + 0.7)
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for axes, (shape, trajectory) in zip(grid.flat, chosen.items(), strict=False):
            row = frame.iloc[trajectory]
            draw_curve(axes, curves.select([trajectory]), int(row["k_star"]), small=True)
            share = shapes.count(shape) / len(shapes)
            axes.set_title(f"{SHAPES[shape]}: {share:.0%} of curves")
            points = 100 * row["accuracy_degradation"]
            measures = f"OR {row['overthinking_ratio']:.0%}, AD {points:.1f} pp"
            axes.set_xlabel(f"{measures}\n{names[trajectory]}", fontsize=7.5)
        for axes in list(grid.flat)[len(chosen) :]:
            axes.set_visible(False)
        figure.supylabel("Accuracy, P(k)", fontsize=9)
        add_note(
            figure,
            f"x: thinking tokens kept, L(k). Star: k*. Shaded: after k*. {curves.probes} probes "
            f"per position. Each curve is the middle one of its shape. {note}".strip(),
        )
    return figure
