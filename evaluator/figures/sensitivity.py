"""OR and AD with fewer probes or fewer trajectories (paper 002, appendix B.2)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from evaluator.present.figure_style import (
    CURVE,
    MARK,
    MUTED,
    add_note,
    house_style,
    new_figure,
)


def sensitivity_plot(probes: pd.DataFrame, trajectories: pd.DataFrame, *, note: str = "") -> Figure:
    """Draw what fewer probes or trajectories would have shown.

    Parameters
    ----------
    probes
        By probes per position: ``OR`` and ``Keeps k*`` in percent, ``AD`` in points, as
        :func:`evaluator.analysis.sensitivity_tables.sensitivity_table` has them.
    trajectories
        By trajectories per question: ``mean``, ``low`` and ``high`` of ``OR`` and ``AD``, as
        :func:`evaluator.analysis.sensitivity_tables.trajectory_sensitivity_table` has them.
    note
        Caption.
    """
    with house_style():
        figure = new_figure(7.0, 4.6)
        upper, lower = figure.subplots(2, 2, sharex="col", sharey="row")
        for axes_row, name, unit in ((upper, "OR", "%"), (lower, "AD", "points")):
            left, right = axes_row
            _line(left, probes.index, probes[name])
            means = trajectories[name]
            right.fill_between(
                trajectories.index, means["low"], means["high"], color=CURVE, alpha=0.18
            )
            _line(right, trajectories.index, means["mean"])
            left.set_ylabel(f"{name}, {unit}")
        upper[0].set_title("Fewer probes: expected")
        upper[1].set_title("Fewer trajectories: 95 % of draws")
        kept = lower[0].twinx()
        kept.plot(probes.index, probes["Keeps k*"], ":", color=MARK, marker="s", markersize=3)
        kept.set_ylim(0, 105)
        kept.set_ylabel("keeps k*, %", color=MARK)
        kept.grid(visible=False)
        for axes, counts, label in (
            (lower[0], probes.index, "Probes per position"),
            (lower[1], trajectories.index, "Trajectories per question"),
        ):
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_locator(FixedLocator(list(counts)))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.set_xlabel(label)
        for axes in (*upper, *lower):
            axes.tick_params(colors=MUTED)
        add_note(
            figure,
            "Left: exact expectations over the probes that are kept. Right: seeded draws of the "
            f"observed trajectories, not confidence intervals. {note}".strip(),
        )
    return figure


def _line(axes: Axes, x: pd.Index, y: pd.Series) -> None:
    axes.plot(x, y, "-o", color=CURVE, markersize=4)
