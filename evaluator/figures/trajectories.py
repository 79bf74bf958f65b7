"""Curves of single trajectories: accuracy over thinking tokens kept, with k* marked."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator, PercentFormatter

from evaluator.analysis.overthinking import Summary, per_trajectory
from evaluator.present.figure_style import (
    CURVE,
    INK,
    MARK,
    MUTED,
    add_note,
    house_style,
    new_figure,
)
from stp.curves import Curves


def draw_curve(axes: Axes, curve: Curves, k_star: int, *, small: bool) -> None:
    """Draw one trajectory; ``curve`` holds it alone."""
    tokens, accuracy = curve.tokens, curve.correct / curve.probes
    size = 2.6 if small else 4.2
    axes.axvspan(
        float(tokens[k_star]), float(tokens[-1]), color=MARK, alpha=0.07, linewidth=0, zorder=0
    )
    axes.plot(tokens, accuracy, "-o", color=CURVE, markersize=size, linewidth=1.0 if small else 1.5)
    axes.axvline(
        float(tokens[k_star]), color=MARK, linewidth=0.8 if small else 1.0, linestyle=(0, (4, 2))
    )
    axes.plot(
        [tokens[k_star]],
        [accuracy[k_star]],
        "*",
        color=MARK,
        markersize=9 if small else 14,
        markeredgecolor="white",
        markeredgewidth=0.7,
        zorder=5,
        clip_on=False,
    )
    axes.set_ylim(-0.04, 1.06)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.xaxis.set_major_locator(MaxNLocator(4 if small else 7, integer=True))


def trajectory_curve(curves: Curves, trajectory: int, *, title: str = "", note: str = "") -> Figure:
    """Draw the curve of one trajectory with k*, P(0) and P(n) marked.

    Parameters
    ----------
    curves
        Measured curves.
    trajectory
        Index of the trajectory in ``curves``.
    title, note
        Heading, and a caption in small print (what n is, which settings).
    """
    one = curves.select([trajectory])
    row = per_trajectory(one).iloc[0]
    k_star, last = int(row["k_star"]), one.positions - 1
    with house_style():
        figure = new_figure(6.6, 3.7)
        axes = figure.subplots()
        draw_curve(axes, one, k_star, small=False)
        # k* is named at the top edge, the ends beside their points: they cannot meet.
        axes.annotate(
            f"k* = {k_star}",
            (float(one.tokens[k_star]), 1.06),
            xytext=(0, 3),
            textcoords="offset points",
            ha="left" if k_star == 0 else "center",
            color=MARK,
            fontweight="bold",
            annotation_clip=False,
        )
        for name, k, right in (("P(0)", 0, 8), ("P(n)", last, -2)):
            low = one.correct[k] < 0.12 * one.probes
            # Away from the line: above a start from which the curve falls, below the others.
            falls = k == 0 < last and one.correct[1] < one.correct[0]
            axes.annotate(
                f"{name} = {one.correct[k] / one.probes:.0%}",
                (float(one.tokens[k]), one.correct[k] / one.probes),
                xytext=(right, 8 if falls else -3 if low and k == 0 else 8 if low else -15),
                textcoords="offset points",
                ha="left" if k == 0 else "right",
                color=INK,
                fontsize=8.5,
                path_effects=[withStroke(linewidth=3, foreground="white")],
                zorder=6,
            )
        axes.set_xlabel("Thinking tokens kept, L(k)")
        axes.set_ylabel("Accuracy, P(k)")
        axes.set_title(title or "Accuracy along one trajectory", pad=18)
        axes.set_title(
            f"OR {row['overthinking_ratio']:.1%}   AD {100 * row['accuracy_degradation']:.1f} pp",
            loc="right",
            fontweight="normal",
            color=MUTED,
            pad=18,
        )
        add_note(figure, note or f"Each point: {one.probes} answer probes. Shaded: after k*.")
    return figure


def small_multiples(
    curves: Curves, trajectories: Sequence[int], *, title: str = "", note: str = ""
) -> Figure:
    """Draw the curves of several trajectories, usually one question's, on shared axes.

    Parameters
    ----------
    curves
        Measured curves.
    trajectories
        Indices of the trajectories in ``curves``, in the order of the panels.
    title, note
        Heading and caption.

    Raises
    ------
    ValueError
        If no trajectory is named.
    """
    if not trajectories:
        raise ValueError("small multiples need at least one trajectory")
    columns = min(4, len(trajectories))
    rows = math.ceil(len(trajectories) / columns)
    longest = max(int(curves.full_tokens_s[s]) for s in trajectories)
    with house_style():
        figure = new_figure(1.9 * columns + 0.7, 1.45 * rows + 1.0)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, s in zip(grid.flat, trajectories, strict=False):
            one = curves.select([s])
            row = per_trajectory(one).iloc[0]
            draw_curve(axes, one, int(row["k_star"]), small=True)
            axes.set_title(
                f"s{int(curves.sample[s])}  OR {row['overthinking_ratio']:.0%}"
                f"  AD {100 * row['accuracy_degradation']:.0f} pp",
                fontsize=7.8,
                fontweight="normal",
                pad=4,
            )
            axes.set_xlim(-0.03 * longest, 1.03 * max(longest, 1))
        for axes in list(grid.flat)[len(trajectories) :]:
            axes.set_visible(False)
        for column in range(columns):
            # The lowest panel of a column carries the tick labels, even above a gap.
            last = max(r for r in range(rows) if r * columns + column < len(trajectories))
            grid[last][column].xaxis.set_tick_params(labelbottom=True)
        figure.supylabel("Accuracy, P(k)", fontsize=9)
        figure.suptitle(
            title or "All trajectories of one question",
            x=0.012,
            ha="left",
            fontsize=10,
            fontweight="bold",
        )
        shared = f"x: thinking tokens kept, L(k). Star: k*. {curves.probes} probes per position."
        add_note(figure, f"{shared} {note}".strip())
    return figure


def representative_trajectory(summary: Summary) -> int:
    """Return the trajectory whose OR and AD are nearest to their averages, the first on ties.

    Nearest in the sum of both distances, as fractions.
    """
    names = ["overthinking_ratio", "accuracy_degradation"]
    distance = (summary.trajectories[names] - summary.overall[names]).abs().sum(axis=1)
    return int(distance.to_numpy().argmin())


def representative_question(curves: Curves) -> list[int]:
    """Return the trajectories of a question whose spread of OR is typical.

    The rule: within every (model, question), take the standard deviation of OR over its
    trajectories; choose the group whose deviation is the median (the lower one of two), ties by
    model and question number. Groups of one trajectory serve only if there is no larger one.

    Returns
    -------
    list of int
        Trajectory indices in the order of their samples; empty if there is no trajectory.
    """
    if curves.trajectories == 0:
        return []
    frame = per_trajectory(curves)
    groups = (
        frame.groupby(["model", "question"])["overthinking_ratio"]
        .agg(["std", "size"])
        .reset_index()
    )
    larger = groups[groups["size"] > 1]
    ordered = (larger if len(larger) else groups).sort_values(["std", "model", "question"])
    chosen = ordered.iloc[(len(ordered) - 1) // 2]
    inside = (curves.model == chosen["model"]) & (curves.question == chosen["question"])
    rows = np.flatnonzero(inside)
    return [int(s) for s in rows[np.argsort(curves.sample[rows], kind="stable")]]
