"""The whole analysis of one or several campaigns: tables, figures and sentences (paper 002).

``analyse`` computes from curves alone; ``analyse_campaigns`` also reads the stored token ids, for
what curves do not hold; ``write_analysis`` puts it all into a folder.
"""

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from data.errors import MisuseError, StoreError
from evaluator.audit import (
    audit_campaigns,
    audit_frame,
    campaign_step_lengths,
    forms_frame,
    length_samples,
    lengths_frame,
)
from evaluator.audit_tables import audit_table, forms_table, length_table
from evaluator.bootstrap import REPLICATES, Bootstrap, Progress, bootstrap_curves
from evaluator.figures.catalogue import Bands, NamedFigure, all_figures
from evaluator.figures.style import save
from evaluator.findings import Findings, describe
from evaluator.frontiers import (
    CellFrontiers,
    FloatArray,
    average_frontiers,
    cell_frontiers,
)
from evaluator.groups import completeness, pool_benchmarks, recorded_groups
from evaluator.headline import make_headline
from evaluator.names import visible
from evaluator.overthinking import Summary, per_trajectory, summarise
from evaluator.progress import changes_by_progress, suitable_bin_tokens
from evaluator.table_text import Table
from evaluator.tables import (
    INTERVAL_TITLES,
    baseline_table,
    bias_aware_table,
    changes_table,
    cross_fitted_table,
    frontier_interval_table,
    interval_table,
    overthinking_table,
    probed_accuracy_table,
    savings_table,
    sensitivity_table,
    spread_table,
    trajectory_sensitivity_table,
    zero_step_table,
)
from oracle.bootstrap import bootstrap_frontiers, percentile_interval
from stp.campaign.curves import load_curves
from stp.campaign.store import Store
from stp.curves import Curves, IntArray

TARGETS = (128, 256, 512)
"""Target step lengths b of the paper's Figure 9."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Analysis:
    """What an analysis found.

    Attributes
    ----------
    name
        What was analysed, for captions.
    curves, summary, cells
        Measured curves (benchmarks pooled into reporting groups), their averages and frontiers.
    bootstrap, bands
        Replicates, and intervals of the averaged frontiers by strategy; None where no replicates
        were asked for.
    findings
        The campaign in sentences.
    tables
        All tables, in reading order.
    step_tokens
        b of the campaigns, where all have the same.
    lengths
        For each model's name and each b, step lengths; None where only curves were given.
    """

    name: str
    curves: Curves
    summary: Summary
    cells: tuple[CellFrontiers, ...]
    bootstrap: Bootstrap | None
    bands: Bands | None
    findings: Findings
    tables: tuple[Table, ...]
    step_tokens: int | None = None
    lengths: Mapping[str, Mapping[int, IntArray]] | None = None

    def figures(self) -> Iterator[NamedFigure]:
        """Draw the figures, one by one."""
        changes = changes_by_progress(self.curves, suitable_bin_tokens(self.curves))
        yield from all_figures(
            self.curves,
            self.summary,
            self.cells,
            changes,
            name=self.name,
            step_tokens=self.step_tokens,
            bands=self.bands,
            lengths=self.lengths,
        )


def analyse(
    curves: Curves,
    *,
    name: str,
    replicates: int = REPLICATES,
    workers: int | None = None,
    direct: Mapping[tuple[str, str], float] | None = None,
    cross_fit: bool = False,
    groups: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """Compute every table and finding that curves allow.

    Parameters
    ----------
    curves
        Measured curves. Benchmarks of one reporting group are pooled first.
    name
        What they are, for captions.
    replicates
        Bootstrap replicates; 0 leaves the intervals out.
    workers
        Threads of the bootstrap; it does not change the result.
    direct
        Accuracies of direct answers; see :func:`evaluator.tables.zero_step_table`.
    cross_fit
        Add frontiers scored on other probes than those that chose, which takes long.
    groups
        Reporting groups; see :func:`evaluator.groups.pool_benchmarks`.
    progress
        Called with (replicates done, all replicates).

    Raises
    ------
    ValueError
        If there is no trajectory.
    """
    curves = pool_benchmarks(curves, groups)
    summary = summarise(per_trajectory(curves))
    cells = cell_frontiers(curves)
    changes = changes_by_progress(curves, suitable_bin_tokens(curves))
    tables = [
        overthinking_table(curves, summary),
        baseline_table(curves, summary),
        probed_accuracy_table(curves, summary),
        savings_table(curves, cells),
    ]
    bootstrap, bands = None, None
    if replicates:
        bootstrap = bootstrap_curves(
            curves, replicates=replicates, workers=workers, progress=progress
        )
        tables += [interval_table(curves, bootstrap, statistic) for statistic in INTERVAL_TITLES]
        bands = frontier_bands(curves, replicates, workers=workers, progress=progress)
        tables.append(frontier_interval_table(curves, average_frontiers(cells), bands, replicates))
    tables += [
        zero_step_table(curves, summary, direct),
        spread_table(curves, summary),
        changes_table(curves, changes),
        sensitivity_table(curves),
        trajectory_sensitivity_table(curves),
        bias_aware_table(curves),
    ]
    if cross_fit:
        tables.append(cross_fitted_table(curves))
    headline = make_headline(curves, summary, cells)
    findings = describe(curves, summary, headline, changes)
    missing = completeness(curves).missing
    if missing:
        findings = Findings(sentences=(*missing, *findings.sentences))
    return Analysis(
        name=name,
        curves=curves,
        summary=summary,
        cells=cells,
        bootstrap=bootstrap,
        bands=bands,
        findings=findings,
        tables=tuple(tables),
    )


def frontier_bands(
    curves: Curves,
    replicates: int,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return pointwise 95 % intervals of the averaged frontiers at 101 budgets (Figure 5).

    Every replicate solves all three problems exactly again, with budgets relative to its own full
    thinking (paper 002, A.5).

    Returns
    -------
    dict
        By strategy, the lower and upper accuracy; float64 ``(101,)`` each.
    """
    drawn = bootstrap_frontiers(
        curves,
        replicates=replicates,
        workers=workers or len(os.sched_getaffinity(0)),
        progress=progress,
    )
    bands: dict[str, tuple[FloatArray, FloatArray]] = {}
    for strategy in drawn.strategies:
        low, high = percentile_interval(drawn.macro_accuracy(strategy))
        bands[strategy] = (low, high)
    return bands


def analyse_campaigns(
    urls: Sequence[str],
    *,
    allow_incomplete: bool = False,
    replicates: int = REPLICATES,
    workers: int | None = None,
    direct: Mapping[tuple[str, str], float] | None = None,
    cross_fit: bool = False,
    targets: Sequence[int] = TARGETS,
    progress: Progress | None = None,
) -> Analysis:
    """Analyse graded campaigns together, usually one a model.

    Parameters
    ----------
    urls
        The campaigns' folders.
    allow_incomplete
        Analyse what is graded; every table then says what is missing.
    replicates, workers, direct, cross_fit, progress
        As for :func:`analyse`.
    targets
        Target step lengths b for the step-length distributions.

    Raises
    ------
    data.errors.MisuseError
        If a folder is no campaign, nothing is graded, or the campaigns do not go together.
    data.errors.StoreError
        If a campaign is incomplete (unless allowed) or damaged.
    """
    curves = load_curves(list(urls), allow_incomplete=allow_incomplete)
    configs = [Store(url).read_config() for url in urls]
    name = " + ".join(dict.fromkeys(config.name for config in configs))
    analysis = analyse(
        curves,
        name=name,
        replicates=replicates,
        workers=workers,
        direct=direct,
        cross_fit=cross_fit,
        groups=recorded_groups(urls),
        progress=progress,
    )
    steps = tuple(dict.fromkeys(config.probing.step_tokens for config in configs))
    audits = audit_campaigns(list(urls), allow_incomplete=allow_incomplete)
    lengths = campaign_step_lengths(
        list(urls), sorted({*steps, *targets}), allow_incomplete=allow_incomplete
    )
    gap = _gap(urls, curves)
    tables = (
        *analysis.tables,
        audit_table(audit_frame(audits)),
        forms_table(forms_frame(audits)),
        length_table(lengths_frame(lengths)),
    )
    if gap:
        tables = tuple(replace(t, note=f"{gap} {t.note}".strip()) for t in tables)
    return replace(
        analysis,
        tables=tables,
        findings=Findings(sentences=(*([gap] if gap else []), *analysis.findings.sentences)),
        step_tokens=steps[0] if len(steps) == 1 else None,
        lengths=length_samples(lengths),
    )


def _gap(urls: Sequence[str], curves: Curves) -> str:
    """Say how many of the trajectories asked for are not there; nothing if all are."""
    expected = 0
    for url in urls:
        store = Store(url)
        runs = store.read_config().generation.trajectories
        expected += runs * sum(c.questions - c.too_long for c in store.read_manifest().cells)
    if curves.trajectories >= expected:
        return ""
    return f"Incomplete: {curves.trajectories:,} of {expected:,} trajectories are graded."


def read_direct_accuracies(path: Path) -> dict[tuple[str, str], float]:
    """Read accuracies of direct answers from a CSV file.

    Parameters
    ----------
    path
        With the columns ``model``, ``benchmark`` (a reporting group) and ``accuracy`` (a fraction).

    Raises
    ------
    data.errors.MisuseError
        If the file, a column or a number is missing or wrong.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"{path}: cannot be read: {error}") from error
    accuracies = {}
    for number, row in enumerate(rows, start=2):
        try:
            value = float(row["accuracy"])
            accuracies[row["model"], row["benchmark"]] = value
        except (KeyError, TypeError, ValueError) as error:
            raise MisuseError(
                f"{path}, line {number}: needs the columns model, benchmark and accuracy, the last "
                "a number between 0 and 1"
            ) from error
        if not 0 <= value <= 1:
            raise MisuseError(f"{path}, line {number}: accuracy {value} is not between 0 and 1")
    return accuracies


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisPaths:
    """What was written."""

    folder: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]
    findings: Path


def write_analysis(analysis: Analysis, out_dir: Path) -> AnalysisPaths:
    """Write every table as CSV, Markdown and LaTeX, the figures, and ``findings.md``.

    Raises
    ------
    data.errors.StoreError
        If the folder cannot be written.
    """
    tables: list[Path] = []
    figures: list[Path] = []
    findings = out_dir / "findings.md"
    try:
        (out_dir / "tables").mkdir(parents=True, exist_ok=True)
        for table in analysis.tables:
            for suffix, text in (
                ("csv", table.to_csv()),
                ("md", table.to_markdown()),
                ("tex", table.to_latex()),
            ):
                path = out_dir / "tables" / f"{table.name}.{suffix}"
                path.write_text(text, encoding="utf-8")
                tables.append(path)
        for named in analysis.figures():
            figures += save(named.figure, out_dir / "figures" / named.stem)
        findings.write_text(
            f"# {visible(analysis.name)}\n\n{analysis.findings.to_markdown()}", encoding="utf-8"
        )
    except OSError as error:
        raise StoreError(f"cannot write the analysis to {out_dir}: {error}") from error
    return AnalysisPaths(
        folder=out_dir, tables=tuple(tables), figures=tuple(figures), findings=findings
    )
