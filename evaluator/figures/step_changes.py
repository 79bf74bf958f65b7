"""Fractions of positive, negative and flat ΔP as thinking continues, with their ratio."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from evaluator.present.figure_style import (
    FLAT,
    INK,
    MUTED,
    NEGATIVE,
    POSITIVE,
    add_note,
    house_style,
    new_figure,
)

FEWEST_STEPS = 10
"""Bins with fewer steps are not drawn: their fractions say nothing."""


def progress_plot(
    changes: pd.DataFrame, *, title: str = "", note: str = "", fewest_steps: int = FEWEST_STEPS
) -> Figure:
    """Draw what :func:`evaluator.analysis.step_changes.changes_by_progress` returned.

    Parameters
    ----------
    changes
        One row per bin.
    title, note
        Heading and caption.
    fewest_steps
        Bins with fewer steps are left out, since their fractions say nothing; the caption tells.

    Raises
    ------
    ValueError
        If no bin is left to draw.
    """
    kept = changes[changes["steps"] >= fewest_steps]
    if kept.empty:
        raise ValueError(f"no bin holds {fewest_steps} steps")
    width = kept["to_tokens"] - kept["from_tokens"]
    with house_style():
        figure = new_figure(6.6, 4.4)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2.4, 1])
        base = pd.Series(0.0, index=kept.index)
        shades = (
            ("negative", NEGATIVE, "Falls", "////"),
            ("flat", FLAT, "Stays", ""),
            ("positive", POSITIVE, "Rises", ""),
        )
        for column, colour, label, hatch in shades:
            upper.bar(
                kept["from_tokens"],
                kept[column],
                width,
                bottom=base,
                align="edge",
                color=colour,
                edgecolor="white",
                linewidth=0.4,
                hatch=hatch,
                label=label,
            )
            base = base + kept[column]
        upper.set_ylim(0, 1)
        upper.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        upper.set_ylabel("Steps")
        upper.set_title(title or "Does the next step change the accuracy?")
        handles, labels = upper.get_legend_handles_labels()
        figure.legend(
            handles[::-1], labels[::-1], loc="outside upper right", ncols=3, handlelength=1.2
        )
        lower.axhline(1.0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)))
        lower.plot(
            kept["from_tokens"] + width / 2,
            kept["negative_to_positive"],
            "-o",
            color=INK,
            markersize=3.2,
            linewidth=1.2,
        )
        lower.set_ylim(bottom=0)
        lower.set_ylabel("Falls per rise")
        lower.set_xlabel("Thinking tokens so far, L(k)")
        dropped = len(changes) - len(kept)
        tail = (
            f" {dropped} bins with fewer than {fewest_steps} steps are left out." if dropped else ""
        )
        add_note(figure, f"n = {int(kept['steps'].sum()):,} steps, pooled.{tail} {note}".strip())
    return figure
