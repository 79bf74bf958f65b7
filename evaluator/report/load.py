"""From a campaign's folder to the value that a report is made from. No model is needed."""

from pathlib import Path
from shlex import quote

from data.errors import MisuseError
from evaluator.analysis.groups import pool_benchmarks, recorded_groups
from evaluator.analysis.share_tables import share_sentences, shares_of_campaigns
from evaluator.report.data import ReportData
from evaluator.report.record import Pairs, provenance_of, settings_of
from stp.campaign.config import CampaignConfig
from stp.campaign.curves import load_curves
from stp.campaign.manifest import Manifest
from stp.campaign.shares import CellShares
from stp.campaign.store import Store
from stp.curves import Curves


def load_report_data(url: str | Path, *, allow_incomplete: bool = False) -> ReportData:
    """Read a graded campaign: all curves, and what was asked.

    Benchmarks of one reporting group are pooled in the curves.

    Parameters
    ----------
    url
        The campaign's folder: a path or an fsspec URL.
    allow_incomplete
        Report what is graded and say what is missing, instead of refusing.

    Raises
    ------
    data.errors.MisuseError
        If the folder is not a campaign, or nothing is graded.
    data.errors.StoreError
        If the campaign is incomplete (unless allowed) or damaged.
    """
    config, manifest = Store(url).read_campaign()
    curves = load_curves(url, allow_incomplete=allow_incomplete)
    if curves.trajectories == 0:
        raise MisuseError(
            f"{url}: no trajectory is graded yet; continue `stp run {quote(str(url))}`"
        )
    # Reporting groups, as in the analysis: a report and a table must not average differently.
    pooled = pool_benchmarks(curves, recorded_groups([url]))
    shares = shares_of_campaigns([url])
    return ReportData(
        name=config.name,
        curves=pooled,
        campaign=str(url),
        warnings=(*_warnings(curves, config, manifest), *share_sentences(shares)),
        step_tokens=config.probing.step_tokens,
        settings=(*settings_of(config, manifest), *_shares(shares)),
        provenance=provenance_of(manifest),
    )


def _warnings(curves: Curves, config: CampaignConfig, manifest: Manifest) -> tuple[str, ...]:
    """Say what a reader would miss: trajectories not there yet, prompts that were too long."""
    notes = []
    questions = sum(record.questions - record.too_long for record in manifest.cells)
    expected = questions * config.generation.trajectories
    if curves.trajectories < expected:
        notes.append(
            f"This campaign is incomplete: {curves.trajectories:,} of {expected:,} trajectories "
            "are graded, and everything on this page is about these alone."
        )
    notes += [
        f"{record.too_long:,} of {record.questions:,} prompts of {record.benchmark} are too long "
        f"for {record.model}; they are not in any number on this page."
        for record in manifest.cells
        if record.too_long
    ]
    return tuple(notes)


def _shares(cells: tuple[CellShares, ...]) -> Pairs:
    """Return which rows of every cell may mislead; empty if none."""
    return tuple(
        (
            f"{cell.model} on {cell.benchmark}",
            "; ".join(share.sentence() for share in cell.shares if share.count)
            or "no rows that may mislead",
        )
        for cell in cells
    )
