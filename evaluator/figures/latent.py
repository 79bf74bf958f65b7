"""A trajectory's counts, and the accuracy behind them: band and drawn reference positions."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from evaluator.analysis.latent import LatentCurves
from evaluator.present.figure_style import CURVE, FLAT, INK, MARK, add_note, house_style, new_figure


def latent_curve(
    latent: LatentCurves,
    trajectory: int,
    *,
    tolerance: float = 0.03,
    title: str = "",
    note: str = "",
) -> Figure:
    """Draw raw shares as dots, the posterior of P as a band, and where draws have their k*.

    Parameters
    ----------
    latent
        A fit.
    trajectory
        Index of the trajectory in the fitted curves.
    tolerance
        k* of a drawn curve is its first position within this of its best.
    title, note
        Heading and caption.

    Raises
    ------
    ValueError
        If there is no such trajectory.
    """
    curves = latent.curves
    if not 0 <= trajectory < curves.trajectories:
        raise ValueError(f"there is no trajectory {trajectory}; the fit has {curves.trajectories}")
    part = slice(*curves.trajectory_offsets[trajectory : trajectory + 2])
    tokens = curves.tokens[part]
    share = curves.all_correct_k[part] / curves.all_probes_k[part]
    kept = 1.0 - latent.measures(tolerance)[:, 0, trajectory]
    places, times = np.unique(np.rint(kept * tokens[-1]), return_counts=True)
    with house_style():
        figure = new_figure(6.6, 3.7)
        axes = figure.subplots()
        axes.fill_between(
            tokens, latent.low[part], latent.high[part], color=CURVE, alpha=0.16, linewidth=0
        )
        axes.plot(tokens, latent.mean[part], color=CURVE, linewidth=1.6, label="posterior mean")
        axes.plot(tokens, share, "o", color=INK, markersize=3.6, label="raw counts")
        # One mark for every place, the taller the more draws have their k* there.
        axes.vlines(
            places, 0.0, 0.12 * times / latent.draws, color=MARK, linewidth=3, label="drawn k*"
        )
        axes.axhline(0.0, color=FLAT, linewidth=0.8)
        axes.set_ylim(-0.04, 1.06)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
        axes.set_xlabel("Thinking tokens kept, L(k)")
        axes.set_ylabel("Accuracy, P(k)")
        axes.set_title(title or "The accuracy behind one trajectory's counts", pad=18)
        axes.legend(loc="best")
        default = (
            f"Band: 95 % intervals of P(k). Marks at the foot: k* (first position within "
            f"{100 * tolerance:g} points of the best) of {latent.draws} drawn curves."
        )
        add_note(figure, note or default)
    return figure


def cost_plot(table: pd.DataFrame) -> Figure:
    """Draw the error of latent AD and OR against the answers that were spent.

    ``table`` is as :func:`evaluator.simulation.latent_checks.cost_curve` returns it, indexed by
    (``world``, ``plan``).
    """
    means = table.groupby("plan", sort=False).mean()
    # "uniform 8" is a point of the line "uniform"; "adaptive 35%, up to 16" of another one.
    lines = means.index.str.replace(r" \d+%?", "", n=1, regex=True)
    with house_style():
        figure = new_figure(7.2, 3.6)
        for axes, (column, name) in zip(
            figure.subplots(1, 2), (("ad_error", "AD"), ("or_error", "OR")), strict=True
        ):
            for line, style in zip(lines.unique(), ("o-", "s-", "^--"), strict=False):
                part = means[lines == line].sort_values("cost")
                colour = CURVE if line == "uniform" else MARK
                axes.plot(100 * part["cost"], 100 * part[column], style, color=colour, label=line)
            axes.set_xlabel("Answers, % of 16 everywhere")
            axes.set_ylabel(f"Error of latent {name}, points")
            axes.set_ylim(bottom=0)
            axes.legend(loc="best")
        figure.suptitle("Error by number of answers", x=0.02, ha="left", fontweight="bold")
        worlds = table.index.get_level_values("world").unique().size
        add_note(figure, f"Mean absolute error per trajectory, averaged over {worlds} worlds.")
    return figure
