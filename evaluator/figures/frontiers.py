"""The three frontiers over a common relative budget, with full thinking and k = 0 marked."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from evaluator.analysis.frontiers import (
    STRATEGY_LABELS,
    AverageFrontier,
    average_endpoints,
    average_frontiers,
    cell_frontiers,
)
from evaluator.otbench.points import cell_totals, fractions_of_full
from evaluator.present.figure_style import (
    INK,
    MARKERS,
    MUTED,
    SERIES_COLOURS,
    STRATEGY_STYLES,
    add_note,
    house_style,
    new_figure,
)
from evaluator.present.names import visible
from stp.curves import Curves
from stp.ragged import FloatArray


def frontiers(curves: Curves, *, title: str = "", note: str = "") -> Figure:
    """Draw the exact frontiers of curves, averaged over their cells.

    Parameters
    ----------
    curves
        Measured curves.
    title, note
        Heading and caption.
    """
    cells = cell_frontiers(curves)
    zero, full = average_endpoints(cells)
    return frontier_plot(
        average_frontiers(cells), zero_accuracy=zero, full_accuracy=full, title=title, note=note
    )


def methods(
    curves: Curves, stops: Mapping[str, npt.ArrayLike], *, title: str = "", note: str = ""
) -> Figure:
    """Draw where rules of one's own stop, beside the exact frontiers of the same curves.

    Parameters
    ----------
    curves
        Measured curves.
    stops
        By a rule's name, the position at which each trajectory stops, for one setting of the rule
        or for several; ``(trajectories,)`` or ``(settings, trajectories)``.
    title, note
        Heading and caption.

    Raises
    ------
    ValueError
        If a position is missing, or is none of its trajectory.
    """
    figure = frontiers(curves, title=title or "Rules beside what is possible", note=note)
    last = np.diff(curves.trajectory_offsets) - 1
    with house_style():
        (axes,) = figure.axes
        for place, (name, positions) in enumerate(stops.items()):
            stop = np.atleast_2d(np.asarray(positions, np.int64))
            if stop.shape[1] != last.size or ((stop < 0) | (stop > last)).any():
                raise ValueError(
                    f"{name}: needs a position of every trajectory, from 0 to its last one; "
                    f"the shape is {stop.shape} for {last.size} trajectories"
                )
            totals = cell_totals(curves, stop, np.zeros_like(stop))
            x, y = fractions_of_full(totals), totals.average(totals.reward / totals.probes)
            order = np.argsort(x, kind="stable")
            axes.plot(
                x[order],
                y[order],
                marker=MARKERS[place % len(MARKERS)],
                color=SERIES_COLOURS[place % len(SERIES_COLOURS)],
                linewidth=1.2,
                label=visible(name, 60),
                zorder=4,
            )
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles, labels, loc="lower right", handlelength=3.2)
    return figure


def frontier_plot(
    frontiers: Sequence[AverageFrontier],
    *,
    zero_accuracy: float,
    full_accuracy: float,
    bands: Mapping[str, tuple[FloatArray, FloatArray]] | None = None,
    title: str = "",
    note: str = "",
) -> Figure:
    """Draw averaged frontiers as steps.

    Parameters
    ----------
    frontiers
        One per strategy, on any grid of budgets.
    zero_accuracy, full_accuracy
        P(0) and P(n) of the same cells, averaged in the same way.
    bands
        For a strategy, the lower and upper accuracy of an interval at evenly spaced budgets from
        0 to 1 (the paper's: 101 of them), drawn as a shaded region.
    title, note
        Heading and caption.
    """
    with house_style():
        figure = new_figure(6.6, 4.3)
        axes = figure.subplots()
        _draw_reference(axes, frontiers, full_accuracy)
        for frontier in frontiers:
            _draw_frontier(axes, frontier, (bands or {}).get(frontier.strategy))
        _mark_ends(axes, zero_accuracy, full_accuracy)
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_xlabel("Thinking tokens allowed, of full thinking")
        axes.set_ylabel("Best accuracy")
        axes.set_title(title or "What ideal termination could reach")
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], labels[::-1], loc="lower right", handlelength=3.2)
        add_note(figure, note)
    return figure


def _draw_reference(axes: Axes, frontiers: Sequence[AverageFrontier], full_accuracy: float) -> None:
    """Draw the line of full thinking, its label where the frontiers leave most room."""
    axes.axhline(full_accuracy, color=MUTED, linewidth=1.0, linestyle=(0, (6, 3)), zorder=1)
    span = max(f.accuracy[-1] for f in frontiers) - min(f.accuracy[0] for f in frontiers)

    def room(place: tuple[float, bool]) -> float:
        centre, above = place
        middle = full_accuracy + (0.04 if above else -0.04) * span
        near = [f.accuracy[np.abs(f.budget_fraction - centre) < 0.13] for f in frontiers]
        return float(np.abs(np.concatenate(near) - middle).min())

    # On ties to the right, where most curves are flat.
    places = [(x / 20, above) for x in range(16, 3, -1) for above in (True, False)]
    centre, above = max(places, key=room)
    axes.annotate(
        f"full thinking {full_accuracy:.1%}",
        (centre, full_accuracy),
        xytext=(0, 4 if above else -4),
        textcoords="offset points",
        ha="center",
        va="bottom" if above else "top",
        color=MUTED,
        fontsize=8.5,
    )


def _draw_frontier(
    axes: Axes, frontier: AverageFrontier, band: tuple[FloatArray, FloatArray] | None
) -> None:
    """Draw one strategy's frontier as steps, over its band."""
    style = STRATEGY_STYLES[frontier.strategy]
    if band is not None:
        # Intervals are known at these budgets; between them they are joined, for the eye.
        budgets = np.linspace(0, 1, band[0].size)
        axes.fill_between(budgets, *band, color=style.colour, alpha=0.14, linewidth=0)
        # Shades that overlap are one grey in print; the edges keep the strategy's own dashes.
        for edge in band:
            axes.plot(
                budgets,
                edge,
                color=style.colour,
                linestyle=style.dash,
                linewidth=0.6,
                alpha=0.6,
            )
    axes.step(
        frontier.budget_fraction,
        frontier.accuracy,
        where="post",
        color=style.colour,
        linestyle=style.dash,
        linewidth=style.width,
        label=STRATEGY_LABELS[frontier.strategy],
    )


def _mark_ends(axes: Axes, zero_accuracy: float, full_accuracy: float) -> None:
    """Mark k = 0 and full thinking."""
    axes.plot([0], [zero_accuracy], "o", color=INK, markersize=6, clip_on=False, zorder=6)
    axes.annotate(
        f"k = 0: {zero_accuracy:.1%}",
        (0, zero_accuracy),
        xytext=(9, -2),
        textcoords="offset points",
        color=INK,
        fontsize=8.5,
        va="top",
    )
    axes.plot([1], [full_accuracy], "D", color=INK, markersize=6, clip_on=False, zorder=6)
