"""The whole analysis of one or several campaigns: tables, figures and sentences (paper 002).

``analyse`` computes from curves alone; ``analyse_campaigns`` also reads the stored token ids, for
what curves do not hold. :mod:`evaluator.analysis.files` puts it all into a folder.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from data.errors import StoreError
from data.progress import NOBODY, Progress
from evaluator.analysis.bootstrap import REPLICATES, CurveBootstrap, bootstrap_curves
from evaluator.analysis.direct import accuracies_of_answers, direct_accuracies
from evaluator.analysis.findings import Findings, describe
from evaluator.analysis.frontiers import (
    AverageFrontier,
    CellFrontiers,
    average_frontiers,
    cell_frontiers,
)
from evaluator.analysis.groups import (
    common_questions,
    completeness,
    pool_benchmarks,
    recorded_groups,
)
from evaluator.analysis.headline import make_headline
from evaluator.analysis.interval_tables import (
    INTERVALS,
    difference_table,
    frontier_interval_table,
    frontier_table,
    interval_sentence,
    interval_table,
)
from evaluator.analysis.latent import LatentCurves
from evaluator.analysis.latent_tables import (
    latent_curves,
    latent_frontier_table,
    latent_sentences,
    latent_table,
    tolerance_table,
)
from evaluator.analysis.missing import missing_sentences
from evaluator.analysis.overthinking import Summary, per_trajectory, summarise
from evaluator.analysis.sensitivity_tables import (
    bias_aware_table,
    bias_sentence,
    cross_fitted_table,
    sensitivity_table,
    trajectory_sensitivity_table,
)
from evaluator.analysis.share_tables import share_sentences, share_table, shares_of_campaigns
from evaluator.analysis.step_changes import changes_by_progress, suitable_bin_tokens
from evaluator.analysis.stored_thinking import open_campaigns
from evaluator.analysis.tables import (
    baseline_table,
    changes_table,
    overthinking_table,
    probed_accuracy_table,
    savings_table,
    spread_table,
    zero_step_table,
)
from evaluator.analysis.thinking_tables import thinking_tables
from evaluator.figures.catalogue import Bands, NamedFigure, all_figures
from evaluator.figures.sensitivity import sensitivity_plot
from evaluator.present.names import visible
from evaluator.present.table import Table
from oracle.bootstrap import bootstrap_frontiers, percentile_interval
from stp.campaign.curves import load_curves
from stp.campaign.store import Store
from stp.curves import Curves
from stp.ragged import IntArray

Direct = Mapping[tuple[str, str], float] | Curves
"""Direct answers: accuracies by (model name, reporting group), or curves that do not think."""

TARGETS = (128, 256, 512)
"""Target step lengths b of the paper's Figure 9."""

TABLES = (
    "overthinking",
    "baselines",
    "probed-accuracy",
    "savings",
    *(f"intervals-{name.replace('_', '-')}" for name in INTERVALS),
    *(f"differences-{name.replace('_', '-')}" for name in INTERVALS),
    "frontier-intervals",
    "zero-step",
    "spread",
    "changes",
    "frontiers",
    "probe-sensitivity",
    "trajectory-sensitivity",
    "bias-aware",
    "latent",
    "latent-tolerances",
    "latent-frontiers",
    "cross-fitted-frontiers",
    "boundary-audit",
    "boundary-forms",
    "step-lengths",
    "shares",
)
"""Names of all tables, in reading order. Those of differences need several models."""


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
        Replicates, and intervals of the averaged frontiers by strategy; None if no replicates
        were asked for.
    findings
        The campaign in sentences.
    tables
        All tables, in reading order.
    step_tokens
        b of the campaigns, where all have the same.
    lengths
        For each model's name and each b, step lengths; None if only curves were given.
    latent
        The accuracies behind the counts, where they were asked for.
    """

    name: str
    curves: Curves
    summary: Summary
    cells: tuple[CellFrontiers, ...]
    bootstrap: CurveBootstrap | None
    bands: Bands | None
    findings: Findings
    tables: tuple[Table, ...]
    step_tokens: int | None = None
    lengths: Mapping[str, Mapping[int, IntArray]] | None = None
    latent: LatentCurves | None = None

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
            latent=self.latent,
        )
        frames = {table.name: table.frame for table in self.tables}
        fewer = frames["probe-sensitivity"], frames["trajectory-sensitivity"]
        if all(len(frame) > 1 for frame in fewer):
            figure = sensitivity_plot(*fewer, note=f"Of {visible(self.name, 60)}.")
            yield NamedFigure(
                title="Fewer probes, fewer trajectories", stem="sensitivity", figure=figure
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an analysis is asked for.

    Attributes
    ----------
    replicates
        Bootstrap replicates; 0 leaves the intervals out.
    frontier_replicates
        Replicates of the frontiers, which take longest; None: as many.
    workers
        Threads of the bootstrap, all processors when None; it does not change the result.
    cross_fit
        Add frontiers scored on other probes than those that chose.
    latent_draws
        Curves drawn for every trajectory behind the latent tables; 0 leaves these out.
    targets
        Target step lengths b of the step-length distributions, beside the campaigns' own.
    """

    replicates: int = REPLICATES
    frontier_replicates: int | None = None
    workers: int | None = None
    cross_fit: bool = False
    latent_draws: int = 20
    targets: tuple[int, ...] = TARGETS


def analyse(
    curves: Curves,
    *,
    name: str,
    asked: Asked | None = None,
    direct: Direct | None = None,
    groups: Mapping[str, str] | None = None,
    progress: Progress = NOBODY,
) -> Analysis:
    """Compute every table and finding that curves allow.

    Parameters
    ----------
    curves
        Measured curves. Benchmarks of one reporting group are pooled first.
    name
        What they are, for captions.
    asked
        How much; left out: everything but the cross-fitted frontiers.
    direct
        Direct answers, for Table 7.
    groups
        Reporting groups; see :func:`evaluator.analysis.groups.pool_benchmarks`.
    watch
        Told how far each stage is.

    Raises
    ------
    ValueError
        If there is no trajectory.
    data.errors.MisuseError
        If the direct answers come from trajectories that think.
    """
    asked = asked or Asked()
    curves = pool_benchmarks(curves, groups)
    if isinstance(direct, Curves):
        direct = accuracies_of_answers(pool_benchmarks(direct, groups))
    summary = summarise(per_trajectory(curves))
    cells = cell_frontiers(curves, progress=progress.stage("frontiers"))
    frontiers = average_frontiers(cells)
    changes = changes_by_progress(curves, suitable_bin_tokens(curves))
    intervals = _resample(curves, frontiers, asked, progress)
    bias = bias_aware_table(curves)
    latent = latent_curves(
        curves,
        draws=asked.latent_draws,
        workers=asked.workers,
        progress=progress.stage("latent curves") if asked.latent_draws else NOBODY,
    )
    sentences = (
        *describe(curves, summary, make_headline(curves, summary, cells), changes).sentences,
        *([interval_sentence(intervals.bootstrap)] if intervals.bootstrap else []),
        *filter(None, [bias_sentence(bias)]),
        *(latent_sentences(latent) if latent else ()),
    )
    return Analysis(
        name=name,
        curves=curves,
        summary=summary,
        cells=cells,
        bootstrap=intervals.bootstrap,
        bands=intervals.bands,
        findings=Findings(sentences=(*completeness(curves).missing, *sentences)),
        latent=latent,
        tables=(
            overthinking_table(curves, summary),
            baseline_table(curves, summary),
            probed_accuracy_table(curves, summary),
            savings_table(curves, cells),
            *intervals.tables,
            zero_step_table(curves, summary, direct),
            spread_table(curves, summary),
            changes_table(curves, changes),
            frontier_table(curves, frontiers),
            *_sensitivity(curves, bias, latent, asked, progress),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Intervals:
    bootstrap: CurveBootstrap | None = None
    bands: Bands | None = None
    tables: tuple[Table, ...] = ()


def _resample(
    curves: Curves, frontiers: Sequence[AverageFrontier], asked: Asked, progress: Progress
) -> _Intervals:
    """Draw the replicates that were asked for, and make their tables."""
    if not asked.replicates:
        return _Intervals()
    drawn = bootstrap_curves(
        curves,
        replicates=asked.replicates,
        workers=asked.workers,
        progress=progress.stage("bootstrap"),
    )
    tables = [interval_table(curves, drawn, statistic) for statistic in INTERVALS]
    if len(drawn.models) > 2:
        tables += [difference_table(curves, drawn, statistic) for statistic in INTERVALS]
    wanted = asked.replicates if asked.frontier_replicates is None else asked.frontier_replicates
    shared = common_questions(curves)
    if not wanted or not shared.trajectories:
        return _Intervals(bootstrap=drawn, tables=tuple(tables))
    bands = frontier_bands(
        shared, wanted, workers=asked.workers, progress=progress.stage("frontier bootstrap")
    )
    if shared.trajectories < curves.trajectories:
        frontiers = average_frontiers(cell_frontiers(shared))
    table = frontier_interval_table(shared, frontiers, bands, wanted)
    if shared.trajectories < curves.trajectories:
        lacking = " ".join(completeness(curves).missing)
        table = replace(table, note=f"Only questions that all models have. {table.note} {lacking}")
    tables.append(table)
    return _Intervals(bootstrap=drawn, bands=bands, tables=tuple(tables))


def _sensitivity(
    curves: Curves, bias: Table, latent: LatentCurves | None, asked: Asked, progress: Progress
) -> Iterator[Table]:
    yield sensitivity_table(curves)
    yield trajectory_sensitivity_table(curves, progress.stage("fewer trajectories"))
    yield bias
    if latent is not None:
        yield latent_table(latent)
        yield tolerance_table(latent)
        yield latent_frontier_table(latent, progress=progress.stage("latent frontiers"))
    if asked.cross_fit:
        yield cross_fitted_table(curves, progress=progress.stage("cross-fitted frontiers"))


def frontier_bands(
    curves: Curves,
    replicates: int,
    *,
    workers: int | None = None,
    progress: Progress = NOBODY,
) -> Bands:
    """Return pointwise 95 % intervals of the averaged frontiers at 101 budgets (Figure 5).

    Every replicate solves all three problems exactly again, with budgets relative to its own full
    thinking (paper 002, A.5).

    Returns
    -------
    dict
        By strategy, the lower and upper accuracy; float64 ``(101,)`` each.

    Raises
    ------
    ValueError
        If the models of a benchmark have different questions.
    """
    drawn = bootstrap_frontiers(
        curves,
        replicates=replicates,
        workers=workers or len(os.sched_getaffinity(0)),
        progress=progress,
    )
    bands = {}
    for strategy in drawn.strategies:
        low, high = percentile_interval(drawn.macro_accuracy(strategy))
        bands[str(strategy)] = (low, high)
    return bands


def analyse_campaigns(
    urls: Sequence[str],
    *,
    allow_incomplete: bool = False,
    asked: Asked | None = None,
    direct: Sequence[str | Path] | Direct | None = None,
    progress: Progress = NOBODY,
) -> Analysis:
    """Analyse graded campaigns together, usually one a model.

    Parameters
    ----------
    urls
        The campaigns' folders.
    allow_incomplete
        Analyse what is graded, though trajectories are missing or their numbers are unequal; every
        table then says what is missing.
    asked, watch
        As for :func:`analyse`.
    direct
        Direct answers: as for :func:`analyse`, or campaigns in direct mode and CSV files (see
        :func:`evaluator.analysis.direct.direct_accuracies`).

    Raises
    ------
    data.errors.MisuseError
        If a folder is not a campaign, nothing is graded, or the campaigns do not go together.
    data.errors.StoreError
        If a campaign is incomplete (unless allowed) or damaged.
    """
    asked = asked or Asked()
    if isinstance(direct, Sequence):
        direct = direct_accuracies(direct, allow_incomplete=allow_incomplete)
    curves = load_curves(
        list(urls), allow_incomplete=allow_incomplete, progress=progress.stage("reading curves")
    )
    groups = recorded_groups(urls)
    unequal = completeness(pool_benchmarks(curves, groups)).missing
    if unequal and not allow_incomplete:
        raise StoreError(
            f"models do not have the same questions and trajectories: {' '.join(unequal)} Analyse "
            "campaigns that do, or take what is there with --allow-incomplete"
        )
    configs = [Store(url).read_config() for url in urls]
    analysis = analyse(
        curves,
        name=" + ".join(dict.fromkeys(config.name for config in configs)),
        asked=asked,
        direct=direct,
        groups=groups,
        progress=progress,
    )
    steps = tuple(dict.fromkeys(config.probing.step_tokens for config in configs))
    opened = open_campaigns(list(urls), allow_incomplete=allow_incomplete)
    thinking = thinking_tables(opened, analysis.curves, steps, asked.targets, progress)
    missing = missing_sentences(urls, curves)
    shares = shares_of_campaigns(urls)
    note = " ".join(missing)
    return replace(
        analysis,
        tables=tuple(
            replace(table, note=f"{note} {table.note}".strip())
            for table in (*analysis.tables, *thinking.tables, share_table(shares))
        ),
        findings=Findings(
            sentences=(
                *missing,
                *share_sentences(shares),
                *analysis.findings.sentences,
                *thinking.missing,
            )
        ),
        step_tokens=steps[0] if len(steps) == 1 else None,
        lengths=thinking.lengths,
    )
