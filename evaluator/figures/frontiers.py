"""The three frontiers over a common relative budget, with full thinking and k = 0 marked."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from evaluator.figures.style import (
    INK,
    MUTED,
    STRATEGY_STYLES,
    add_note,
    house_style,
    new_figure,
)
from evaluator.frontiers import STRATEGY_LABELS, AverageFrontier
from evaluator.nesting import FloatArray


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
        best = max(float(frontier.accuracy[-1]) for frontier in frontiers)
        # Where routing is far below and the others are past it; under the line if they lie on it.
        above = best - full_accuracy > 0.08 * (best - zero_accuracy)
        _draw_reference(axes, full_accuracy, above=above)
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


def _draw_reference(axes: Axes, full_accuracy: float, *, above: bool) -> None:
    """Draw the line of full thinking, its label above or below it."""
    axes.axhline(full_accuracy, color=MUTED, linewidth=1.0, linestyle=(0, (6, 3)), zorder=1)
    axes.annotate(
        f"full thinking {full_accuracy:.1%}",
        (0.62, full_accuracy),
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
        budgets = np.linspace(0, 1, band[0].size)
        axes.fill_between(budgets, *band, color=style.colour, alpha=0.14, linewidth=0, step="post")
        # Shades that overlap are one grey in print; the edges keep the strategy's own dashes.
        for edge in band:
            axes.step(
                budgets,
                edge,
                where="post",
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
