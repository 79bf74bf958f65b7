"""The page: tables, tiles, charts and the script's data, put into the template."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from evaluator.analysis.frontiers import CellFrontiers
from evaluator.analysis.headline import Headline
from evaluator.analysis.latent import LatentCurves
from evaluator.analysis.latent_tables import latent_table
from evaluator.analysis.overthinking import Summary
from evaluator.analysis.tables import overthinking_table, savings_table
from evaluator.explorer.frontiers import average_frontier, cell_frontier
from evaluator.explorer.source import Piece
from evaluator.figures.step_changes import FEWEST_STEPS
from evaluator.present.names import cell_name
from evaluator.present.numbers import percent
from evaluator.present.page import render
from evaluator.present.table import Table
from evaluator.present.views import Bars
from evaluator.report.data import ReportData
from stp.curves import Curves

_SECTIONS = (
    ("frontiers", "Frontiers"),
    ("overthinking", "OR and AD"),
    ("progress", "Step by step"),
    ("reading", "How to read"),
    ("settings", "Settings"),
)
_CODE = ("explorer/app/frontier.js", "report/page.js")
_KINDS = (("fall", "Accuracy falls"), ("flat", "stays"), ("rise", "rises"))


def _tiles(summary: Summary) -> list[tuple[str, str, str]]:
    overall = summary.overall
    original = float(overall["original_accuracy"])
    tiles = [
        ("Overthinking ratio, OR", percent(float(overall["overthinking_ratio"])), ""),
        (
            "Accuracy degradation, AD",
            f"{100 * float(overall['accuracy_degradation']):.1f}",
            "points",
        ),
        ("Without thinking, P(0)", percent(float(overall["zero_accuracy"])), ""),
        ("Full thinking, P(n)", percent(float(overall["full_accuracy"])), ""),
        ("At the best moment, P(k*)", percent(float(overall["best_accuracy"])), ""),
        ("Thinking tokens, mean", f"{float(overall['full_tokens']):,.0f}", ""),
    ]
    if not math.isnan(original):
        tiles.insert(4, ("Original final answers", percent(original), ""))
    return tiles


def accuracy_table(curves: Curves, summary: Summary) -> Table:
    """Return accuracies, tokens and counts, a row a cell, with the average."""
    columns = {
        "zero_accuracy": "P(0), %",
        "full_accuracy": "P(n), %",
        "best_accuracy": "P(k*), %",
        "original_accuracy": "Original, %",
        "full_tokens": "Thinking tokens",
        "positions": "Positions",
        "questions": "Questions",
        "trajectories": "Trajectories",
    }
    several = len(summary.cells) > 1
    found = summary.cells.reset_index(drop=True)
    if several:
        found = pd.concat([found, summary.overall.to_frame().T], ignore_index=True)
    frame = found.reindex(columns=list(columns)).rename(columns=columns).astype(object)
    for name in frame.columns[:4]:
        frame[name] = 100 * frame[name].astype(float)
    if several:
        frame.loc[len(frame) - 1, ["Questions", "Trajectories"]] = ""
    names = [cell_name(curves, m, b) for m, b in summary.cells.index.tolist()]
    frame.index = pd.Index([*names, *["Average"] * several], name="Model \u00b7 benchmark")
    tokens = float(summary.overall["full_tokens"])
    formats = dict.fromkeys(frame.columns[:4], ".1f") | dict.fromkeys(frame.columns[6:], ",.0f")
    return Table(
        name="accuracies",
        title="Accuracies and lengths, means",
        frame=frame,
        formats=formats
        | {"Thinking tokens": ",.1f" if tokens < 100 else ",.0f", "Positions": ",.1f"},
        totals=int(several),
    )


def progress_view(changes: pd.DataFrame) -> Bars | None:
    """Return the fractions of rising, flat and falling steps; None without enough steps.

    Parameters
    ----------
    changes
        What :func:`evaluator.analysis.step_changes.changes_by_progress` returns. Bins with fewer
        than ``FEWEST_STEPS`` steps are left out.
    """
    kept = changes[changes["steps"] >= FEWEST_STEPS]
    if kept.empty:
        return None
    ends = zip(kept["from_tokens"].tolist(), kept["to_tokens"].tolist(), strict=True)
    columns = {"fall": "negative", "flat": "flat", "rise": "positive"}
    return Bars(
        stem="steps",
        title="Does the next step help?",
        x_label="Thinking tokens so far, L(k)",
        y_label="Steps",
        groups=[f"{start:,.0f}\u2013{end:,.0f}" for start, end in ends],
        series=[(name, kept[columns[kind]].tolist()) for kind, name in _KINDS],
        colours=[kind for kind, _ in _KINDS],
        notes=[f"{steps:,.0f} steps" for steps in kept["steps"].tolist()],
        stacked=True,
    )


def render_page(
    data: ReportData,
    summary: Summary,
    cells: tuple[CellFrontiers, ...],
    changes: pd.DataFrame,
    headline: Headline,
    *,
    files: Sequence[tuple[str, str, str]] = (),
    latent: LatentCurves | None = None,
) -> str:
    """Return the whole page.

    Parameters
    ----------
    data
        Curves, and what was asked.
    summary, cells, changes, headline
        What was computed from the curves.
    files
        Figures beside the page: (name, relative path of the PNG, of the PDF).
    latent
        The accuracies behind the counts; left out: no table of them.
    """
    progress = progress_view(changes)
    # Of curves alone no settings are known.
    empty = {
        name
        for name, there in (
            ("progress", progress),
            ("settings", data.settings or data.provenance),
        )
        if not there
    }
    overthinking = overthinking_table(data.curves, summary)
    return render(
        "report/page.html",
        code=_CODE,
        page_data={"frontiers": frontier_views(data.curves, cells)},
        views=[progress] if progress else [],
        data=data,
        headline=headline,
        tiles=_tiles(summary),
        overthinking=replace(overthinking, formats={"OR": ".1f", "AD": ".1f"}),
        accuracies=accuracy_table(data.curves, summary),
        latent=latent_table(latent) if latent is not None else None,
        savings=savings_table(data.curves, cells),
        progress=progress,
        sections=[each for each in _SECTIONS if each[0] not in empty],
        files=files,
    )


def frontier_views(curves: Curves, cells: tuple[CellFrontiers, ...]) -> list[Piece]:
    """Return the averaged frontiers (if there are several cells), then each cell's."""
    average = [average_frontier(cells)] if len(cells) > 1 else []
    return average + [
        cell_frontier(cell, cell_name(curves, cell.model, cell.benchmark)) for cell in cells
    ]
