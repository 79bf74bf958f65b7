"""From a campaign to files: the page, and the figures beside it."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from data.errors import StoreError
from evaluator.figures.frontiers import frontier_plot
from evaluator.figures.progress import progress_plot
from evaluator.figures.steps import step_length_plot, step_lengths
from evaluator.figures.style import save
from evaluator.figures.trajectories import (
    representative_question,
    small_multiples,
    trajectory_curve,
)
from evaluator.frontiers import (
    CellFrontiers,
    average_endpoints,
    average_frontiers,
    cell_frontiers,
)
from evaluator.overthinking import Summary, per_trajectory, summarise
from evaluator.progress import changes_by_progress, suitable_bin_tokens
from evaluator.report.charts import FEWEST_STEPS
from evaluator.report.data import ReportData
from evaluator.report.headline import Headline, count, make_headline
from evaluator.report.html import render_page
from evaluator.report.payload import name_of
from evaluator.report.text import visible
from stp.curves import Curves


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPaths:
    """What was written.

    Attributes
    ----------
    page
        The HTML page.
    figures
        PNG and PDF files.
    headline
        The findings in words, for whoever called.
    """

    page: Path
    figures: tuple[Path, ...]
    headline: Headline


def build_report(
    campaign_url: str, out_dir: Path, *, allow_incomplete: bool = False
) -> ReportPaths:
    """Write the report of a graded campaign.

    Parameters
    ----------
    campaign_url
        The campaign's folder: a path or an fsspec URL.
    out_dir
        Where ``report.html`` and ``figures/`` go; made if missing.
    allow_incomplete
        Report what is graded, with a warning on the page, instead of refusing.

    Raises
    ------
    data.errors.StoreError
        If the campaign is incomplete or cannot be read, or the report cannot be written.
    data.errors.MisuseError
        If the campaign has no graded trajectory yet.
    """
    from evaluator.report.load import load_report_data

    data = load_report_data(campaign_url, allow_incomplete=allow_incomplete)
    return write_report(data, out_dir)


def write_report(data: ReportData, out_dir: Path) -> ReportPaths:
    """Write the report of values already at hand; see :func:`build_report`."""
    summary = summarise(per_trajectory(data.curves))
    cells = cell_frontiers(data.curves)
    changes = changes_by_progress(data.curves, suitable_bin_tokens(data.curves))
    headline = make_headline(data.curves, summary, cells)
    page = out_dir / "report.html"
    written: list[Path] = []
    links: list[tuple[str, str, str]] = []
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        for title, stem, figure in _figures(data, summary, cells, changes):
            png, pdf = save(figure, out_dir / "figures" / stem)
            written += [png, pdf]
            links.append((title, f"figures/{png.name}", f"figures/{pdf.name}"))
        text = render_page(data, summary, cells, changes, headline, files=links, version=_version())
        partial = page.with_suffix(".html.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(page)
    except OSError as error:
        raise StoreError(f"cannot write the report to {out_dir}: {error}") from error
    return ReportPaths(page=page, figures=tuple(written), headline=headline)


def _version() -> str:
    try:
        return metadata.version("stp-engine")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _scope(data: ReportData) -> str:
    """Return the caption that all figures share: n and settings."""
    curves = data.curves
    steps = f", b = {data.step_tokens}" if data.step_tokens else ""
    return (
        f"{visible(data.name, 60)}: {count(curves.trajectories, 'trajectory', 'trajectories')}, "
        f"{curves.probes} probes per position{steps}."
    )


def _question_name(curves: Curves, s: int) -> str:
    return name_of(curves.question_names, int(curves.question[s]), "question", 40)


def _figures(
    data: ReportData, summary: Summary, cells: tuple[CellFrontiers, ...], changes: pd.DataFrame
) -> Iterator[tuple[str, str, Figure]]:
    """Yield (title, file stem, figure) for every figure beside the page."""
    curves, note = data.curves, _scope(data)
    zero, full = average_endpoints(cells)
    averaged = f" Averaged over {len(cells)} cells with equal weight." if len(cells) > 1 else ""
    yield (
        "The three frontiers",
        "frontiers",
        frontier_plot(
            average_frontiers(cells),
            zero_accuracy=zero,
            full_accuracy=full,
            note=f"{note}{averaged} Exact; no interpolation.",
        ),
    )
    group = representative_question(curves)
    if group:
        frame = summary.trajectories
        shown = max(group, key=lambda s: (frame["accuracy_degradation"].iloc[s], -s))
        model = name_of(curves.model_names, int(curves.model[shown]), "model", 40)
        name = f"{model}, {_question_name(curves, shown)}"
        yield (
            "A trajectory's curve",
            "curve",
            trajectory_curve(
                curves,
                shown,
                title=f"{name}, trajectory {int(curves.sample[shown])}",
                note=f"Each point: {curves.probes} answer probes. Shaded: after k*.",
            ),
        )
        yield (
            "A question's trajectories",
            "multiples",
            small_multiples(
                curves,
                group,
                title=name,
                note="Chosen by rule: the median spread of OR within a question.",
            ),
        )
    if (changes["steps"] >= FEWEST_STEPS).any():
        yield (
            "Changes by progress",
            "progress",
            progress_plot(changes, note=note, fewest_steps=FEWEST_STEPS),
        )
    lengths = {}
    for model in sorted(set(curves.model.tolist())):
        own = step_lengths(curves.select(curves.model == model))
        if own.size:
            name = name_of(curves.model_names, model, "model", 40)
            lengths[name] = {data.step_tokens or 0: own}
    if lengths:
        yield "Step lengths", "step-lengths", step_length_plot(lengths, note=note)
