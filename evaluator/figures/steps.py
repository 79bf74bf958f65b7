"""Distributions of realised step lengths, for one or several target lengths b."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from evaluator.present.figure_style import (
    CURVE,
    INK,
    SERIES_COLOURS,
    add_note,
    house_style,
    new_figure,
)
from stp.curves import Curves
from stp.ragged import IntArray

_SHADES = (*SERIES_COLOURS[3:0:-1], CURVE)
_DASHES = ((0, (6, 2, 1, 2)), (0, (1, 1.4)), (0, (5, 1.8)), "solid")


def step_lengths(curves: Curves) -> IntArray:
    """Return L(k) - L(k-1) of every step; int64 ``(steps,)``."""
    is_step = np.ones(curves.positions, np.bool_)
    is_step[curves.trajectory_offsets[:-1]] = False
    lengths: IntArray = np.diff(curves.tokens, prepend=0)[is_step]
    return lengths


def step_length_plot(
    lengths_by_panel: Mapping[str, Mapping[int, IntArray]], *, title: str = "", note: str = ""
) -> Figure:
    """Draw step lengths, one panel a model, one outline a target length b.

    Parameters
    ----------
    lengths_by_panel
        For each panel's name, for each b (0 if it is not known), the lengths in tokens of its
        pooled steps.
    title, note
        Heading and caption.

    Raises
    ------
    ValueError
        If there is no panel.
    """
    if not lengths_by_panel:
        raise ValueError("step lengths need at least one model")
    columns = min(3, len(lengths_by_panel))
    rows = -(-len(lengths_by_panel) // columns)
    everything = [v for panel in lengths_by_panel.values() for v in panel.values() if v.size]
    top = max((float(np.quantile(v, 0.995)) for v in everything), default=1.0)
    # Short steps are whole numbers: bins narrower than one token would leave gaps.
    edges = np.arange(0.0, top + 1.0, max(1.0, np.ceil(top / 60))) - 0.5
    edges = np.append(edges, edges[-1] + max(1.0, np.ceil(top / 60)))
    with house_style():
        figure = new_figure(max(6.4, 2.5 * columns), 2.2 * rows + 1.3)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, (name, by_target) in zip(grid.flat, lengths_by_panel.items(), strict=False):
            for i, (target, lengths) in enumerate(sorted(by_target.items())):
                # The last style is the strongest: a single target gets it.
                shade = i - len(by_target)
                colour, dash = _SHADES[shade % 4], _DASHES[shade % 4]
                share = np.full(lengths.size, 1 / max(lengths.size, 1))
                axes.hist(
                    np.minimum(lengths, edges[-1] - 0.5),
                    edges,
                    weights=share,
                    histtype="stepfilled",
                    color=colour,
                    alpha=0.13,
                )
                axes.hist(
                    np.minimum(lengths, edges[-1] - 0.5),
                    edges,
                    weights=share,
                    histtype="step",
                    color=colour,
                    linestyle=dash,
                    linewidth=1.5,
                    label=_label(target, lengths),
                )
            axes.set_title(name, fontsize=9)
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
            axes.margins(y=0.28)
            axes.legend(loc="upper right", fontsize=7.5, labelcolor=INK)
        for axes in list(grid.flat)[len(lengths_by_panel) :]:
            axes.set_visible(False)
        figure.supylabel("Steps", fontsize=9)
        figure.suptitle(
            title or "Lengths of steps", x=0.012, ha="left", fontsize=10, fontweight="bold"
        )
        shared = (
            "x: tokens of a step, all steps of a model pooled; the last bar gathers longer ones."
        )
        add_note(figure, f"{shared} {note}".strip())
    return figure


def _label(target: int, lengths: IntArray) -> str | None:
    if not lengths.size:
        return None
    return f"b = {target}, mean {lengths.mean():.1f}" if target else f"mean {lengths.mean():.1f}"
