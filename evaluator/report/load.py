"""From a campaign's folder to the value that a report is made from. No model is needed."""

from collections import Counter
from pathlib import Path
from shlex import quote

from data.errors import MisuseError
from evaluator.analysis.groups import pool_benchmarks, recorded_groups
from evaluator.analysis.share_tables import share_sentences, shares_of_campaigns
from evaluator.report.data import AnswerCount, QuestionText, ReportData, TrajectoryText
from evaluator.report.record import Pairs, provenance_of, settings_of
from evaluator.report.selection import SelectionLimits, select_trajectories
from stp.campaign.config import CampaignConfig
from stp.campaign.curves import load_curves
from stp.campaign.manifest import Manifest
from stp.campaign.reader import CampaignReader, ProbeView, TrajectoryView
from stp.campaign.shares import CellShares
from stp.curves import Curves


def load_report_data(
    url: str | Path, *, limits: SelectionLimits | None = None, allow_incomplete: bool = False
) -> ReportData:
    """Read a graded campaign: all curves, and the texts of the selected trajectories.

    Benchmarks of one reporting group are pooled in the curves.

    Parameters
    ----------
    url
        The campaign's folder: a path or an fsspec URL.
    limits
        How much text to take; see :class:`evaluator.report.selection.SelectionLimits`.
    allow_incomplete
        Report what is graded and say what is missing, instead of refusing.

    Raises
    ------
    data.errors.MisuseError
        If the folder is no campaign, or nothing is graded.
    data.errors.StoreError
        If the campaign is incomplete (unless allowed) or damaged.
    """
    reader = CampaignReader(url)
    curves = load_curves(url, allow_incomplete=allow_incomplete)
    if curves.trajectories == 0:
        raise MisuseError(
            f"{url}: no trajectory is graded yet; go on with `stp run {quote(str(url))}`"
        )
    # Reporting groups, as in the analysis: a report and a table must not average differently.
    pooled = pool_benchmarks(curves, recorded_groups([url]))
    selection = select_trajectories(pooled, limits)
    shares = shares_of_campaigns([url])
    questions: dict[int, QuestionText] = {}
    trajectories = []
    for s in selection.trajectories:
        view = reader.trajectory(
            curves.question_names[curves.question[s]],
            int(curves.sample[s]),
            model=curves.model_names[curves.model[s]],
            benchmark=curves.benchmark_names[curves.benchmark[s]],
        )
        trajectories.append(_trajectory(reader, view, s))
        number = int(curves.question[s])
        questions.setdefault(number, _question(view, number))
    return ReportData(
        name=reader.config.name,
        curves=pooled,
        questions=tuple(questions.values()),
        trajectories=tuple(trajectories),
        selection_note=selection.note,
        warnings=(
            *_warnings(curves, reader.config, reader.manifest),
            *share_sentences(shares),
        ),
        step_tokens=reader.config.probing.step_tokens,
        settings=(*settings_of(reader.config, reader.manifest), *_shares(shares)),
        provenance=provenance_of(reader.manifest),
    )


def _question(view: TrajectoryView, number: int) -> QuestionText:
    question = view.question
    return QuestionText(
        question=number, id=question.id, prompt=question.prompt, reference=question.reference
    )


def _trajectory(reader: CampaignReader, view: TrajectoryView, index: int) -> TrajectoryText:
    return TrajectoryText(
        trajectory=index,
        steps=view.steps,
        answers=tuple(
            count_answers(reader.probes_at(view, position)) for position in range(len(view.tokens))
        ),
        final_reply=view.original.text,
        final_answer=view.original.answer,
        thinking_finish=view.thinking_finish,
    )


def count_answers(probes: list[ProbeView]) -> tuple[AnswerCount, ...]:
    """Gather equal answers with equal verdicts, most frequent first, ties in order of sampling."""
    keys = [(probe.answer, bool(probe.right)) for probe in probes]
    first = {key: probe.text for key, probe in zip(reversed(keys), reversed(probes), strict=True)}
    # most_common keeps the order of first appearance among equal counts.
    return tuple(
        AnswerCount(answer=key[0], right=key[1], count=count, reply=first[key])
        for key, count in Counter(keys).most_common()
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
    """Return what of every cell is not what it is taken for, where anything is."""
    return tuple(
        (
            f"{cell.model} on {cell.benchmark}",
            "; ".join(share.sentence() for share in cell.shares if share.count)
            or "every row is what it is taken for",
        )
        for cell in cells
    )
