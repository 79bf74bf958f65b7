"""From a campaign to files: the page, and the figures beside it."""

from dataclasses import dataclass, replace
from pathlib import Path

from evaluator.analysis.bootstrap import bootstrap_curves
from evaluator.analysis.frontiers import cell_frontiers
from evaluator.analysis.headline import Headline, make_headline
from evaluator.analysis.interval_tables import interval_sentence
from evaluator.analysis.latent_tables import latent_curves
from evaluator.analysis.overthinking import summarise
from evaluator.analysis.step_changes import changes_by_progress, suitable_bin_tokens
from evaluator.figures.catalogue import all_figures
from evaluator.present.figure_style import save, save_plain
from evaluator.present.page import write_page
from evaluator.report.data import ReportData
from evaluator.report.html import render_page


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


MOST_POSITIONS = 300_000
"""Latent curves of more take minutes; `stp analyze` fits them whatever their number."""


def build_report(
    campaign_url: str, out_dir: Path, *, allow_incomplete: bool = False, plain: bool = False
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
    plain
        Write figures for articles too, without titles and captions: PNG, PDF and SVG in
        ``figures/plain``.

    Raises
    ------
    data.errors.StoreError
        If the campaign is incomplete or cannot be read, or the report cannot be written.
    data.errors.MisuseError
        If the campaign has no graded trajectory yet.
    """
    from evaluator.report.load import load_report_data

    data = load_report_data(campaign_url, allow_incomplete=allow_incomplete)
    return write_report(data, out_dir, plain=plain)


def write_report(data: ReportData, out_dir: Path, *, plain: bool = False) -> ReportPaths:
    """Write the report of values; see :func:`build_report`."""
    summary = summarise(data.curves)
    cells = cell_frontiers(data.curves)
    changes = changes_by_progress(data.curves, suitable_bin_tokens(data.curves))
    headline = replace(
        make_headline(data.curves, summary, cells),
        cautions=data.warnings,
        intervals=interval_sentence(bootstrap_curves(data.curves)),
    )
    page = out_dir / "report.html"
    written: list[Path] = []
    links: list[tuple[str, str, str]] = []
    latent = latent_curves(data.curves) if data.curves.positions <= MOST_POSITIONS else None
    for named in all_figures(
        data.curves,
        summary,
        cells,
        changes,
        name=data.name,
        step_tokens=data.step_tokens,
        latent=latent,
    ):
        png, pdf = save(named.figure, out_dir / "figures" / named.stem)
        written += [png, pdf]
        links.append((named.title, f"figures/{png.name}", f"figures/{pdf.name}"))
        if plain:
            written += save_plain(named.figure, out_dir / "figures" / "plain" / named.stem)
    write_page(
        page, render_page(data, summary, cells, changes, headline, files=links, latent=latent)
    )
    return ReportPaths(page=page, figures=tuple(written), headline=headline)
