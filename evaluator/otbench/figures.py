"""Method curves beside frontiers, one figure a strategy and one for the paper's three methods.

The trivial lines are in every figure, in grey: a method that does not beat them is of no use.
"""

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import PercentFormatter
from matplotlib.transforms import ScaledTranslation

from evaluator.analysis.frontiers import STRATEGY_LABELS, AverageFrontier
from evaluator.figures.catalogue import NamedFigure
from evaluator.otbench.compare import PAPER_METHODS
from evaluator.otbench.row import Row
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
from oracle.actions import STRATEGIES

_LEGEND_CHARACTERS = 42
"""In a line of a label: two such columns fill the width."""
_TRIVIAL = {
    "constant_cap": ("constant cap", MUTED, "solid"),
    "constant_fraction": ("constant fraction", MUTED, (0, (4, 2))),
    "think_share": ("random share of questions", MUTED, (0, (1, 1.5))),
}


def method_figures(
    rows: Sequence[Row], frontiers: Sequence[AverageFrontier], *, name: str
) -> Iterator[NamedFigure]:
    """Draw all figures of a release.

    Parameters
    ----------
    rows
        Rows of one release.
    frontiers
        Averaged frontiers of its test questions, one a strategy.
    name
        The release, for captions.
    """
    by_strategy = {frontier.strategy: frontier for frontier in frontiers}
    trivial = [row for row in rows if row.method.trivial]
    paper = [row for row in rows if row.method.name in PAPER_METHODS]
    if paper:
        yield NamedFigure(
            stem="otbench_methods",
            title="The paper's methods and the three frontiers",
            figure=_figure(list(frontiers), paper, trivial, "Methods and frontiers", name),
        )
    for strategy in STRATEGIES:
        mine = [row for row in rows if row.method.strategy == strategy and not row.method.trivial]
        label = STRATEGY_LABELS[strategy]
        yield NamedFigure(
            stem=f"otbench_{strategy}",
            title=f"{label}: method curves and frontier",
            figure=_figure([by_strategy[strategy]], mine, trivial, label, name),
        )


def _figure(
    frontiers: Sequence[AverageFrontier],
    rows: Sequence[Row],
    trivial: Sequence[Row],
    title: str,
    name: str,
) -> Figure:
    with house_style():
        figure = new_figure(7.4, 4.9)
        axes = figure.subplots()
        reference = [*rows, *trivial][0]
        full, zero = reference.full_accuracy, reference.zero_accuracy
        axes.axhline(full, color=MUTED, linewidth=1.0, linestyle=(0, (6, 3)), zorder=1)
        for frontier in frontiers:
            style = STRATEGY_STYLES[frontier.strategy]
            axes.step(
                frontier.budget_fraction,
                frontier.accuracy,
                where="post",
                color=style.colour,
                linestyle=style.dash if len(frontiers) > 1 else "solid",
                linewidth=style.width + 0.6,
                alpha=0.9,
                label=f"frontier: {STRATEGY_LABELS[frontier.strategy].lower()}",
                zorder=3,
            )
        for row in trivial:
            _trivial(axes, row)
        for place, row in enumerate(rows):
            colour = (
                STRATEGY_STYLES[row.method.strategy].colour
                if len(frontiers) > 1
                else SERIES_COLOURS[place % len(SERIES_COLOURS)]
            )
            _method(axes, row, colour, MARKERS[place % len(MARKERS)])
        axes.plot([0], [zero], "o", color=INK, markersize=6, clip_on=False, zorder=6)
        axes.plot([1], [full], "D", color=INK, markersize=6, clip_on=False, zorder=6)
        axes.annotate("never think", (0, zero), **_beside(9, -3, "left", "top"))
        axes.annotate("always think", (1, full), **_beside(-8, -7, "right", "top"))
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_xlabel("Thinking tokens kept, of full thinking")
        axes.set_ylabel("Accuracy")
        axes.set_title(title)
        _legend(figure, axes)
        add_note(
            figure,
            f"{visible(name, 60)}, test questions. Lines: measured operating points that no other "
            "point of the method beats, nothing between them; faint marks: the others. A ring: the "
            "setting that validation questions selected. Grey: trivial lines.",
        )
    return figure


def _legend(figure: Figure, axes: Axes) -> None:
    """Name the lines below the axes: curves reach every corner of them."""
    handles, labels = axes.get_legend_handles_labels()
    texts = [textwrap.fill(label, _LEGEND_CHARACTERS) for label in labels]
    narrow = max(len(line) for text in texts for line in text.split("\n")) <= 30
    columns = 3 if narrow else 2
    lines = sum(text.count("\n") + 1 for text in texts)
    figure.set_figheight(figure.get_figheight() + 0.17 * math.ceil(lines / columns))
    # The layout makes room for a legend of the axes, and for the note below it. The axis' numbers
    # and label are half an inch high.
    below = ScaledTranslation(0.0, -0.5, figure.dpi_scale_trans)
    axes.legend(
        handles,
        texts,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=axes.transAxes + below,
        borderaxespad=0.0,
        ncols=columns,
        handlelength=2.8,
        fontsize=8,
    )


def _beside(x: float, y: float, ha: str, va: str) -> dict[str, Any]:
    return {
        "xytext": (x, y),
        "textcoords": "offset points",
        "ha": ha,
        "va": va,
        "color": INK,
        "fontsize": 8.5,
        "path_effects": [withStroke(linewidth=2.5, foreground="white")],
        "zorder": 7,
    }


def _curve(row: Row) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points = row.points
    kept = np.array([point.on_curve for point in points])
    x, y = (np.array([getattr(p, key) for p in points]) for key in ("tokens_fraction", "accuracy"))
    return x, y, kept


def _trivial(axes: Axes, row: Row) -> None:
    """Draw a line of a grid of settings; the two single points are marked anyway."""
    if row.method.name not in _TRIVIAL:
        return
    label, colour, dash = _TRIVIAL[row.method.name]
    x, y, kept = _curve(row)
    order = np.argsort(x[kept], kind="stable")
    axes.step(
        x[kept][order],
        y[kept][order],
        where="post",
        color=colour,
        linestyle=dash,
        linewidth=1.3,
        label=label,
        zorder=2,
    )


def _method(axes: Axes, row: Row, colour: str, marker: str) -> None:
    x, y, kept = _curve(row)
    order = np.argsort(x[kept], kind="stable")
    axes.plot(
        x[~kept], y[~kept], marker, color=colour, markersize=3.2, alpha=0.25, linestyle="none"
    )
    axes.step(
        x[kept][order],
        y[kept][order],
        where="post",
        color=colour,
        marker=marker,
        markersize=4.6,
        markeredgecolor="white",
        markeredgewidth=0.5,
        linewidth=1.4,
        label=visible(row.label, 120),
        zorder=4,
    )
    chosen = row.selected.index
    axes.plot(
        [x[chosen]],
        [y[chosen]],
        "o",
        markerfacecolor="none",
        markeredgecolor=colour,
        markeredgewidth=1.6,
        markersize=11,
        clip_on=False,
        zorder=5,
    )
