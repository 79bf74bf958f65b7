"""Tables from stored token ids: the boundary audit, and step lengths for other targets b."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from data.progress import Progress
from evaluator.analysis.audit import (
    audit_campaigns,
    audit_frame,
    campaign_step_lengths,
    forms_frame,
    length_samples,
    lengths_frame,
)
from evaluator.analysis.audit_tables import audit_table, forms_table, length_table
from evaluator.analysis.stored_thinking import OpenedCampaign, models_with_thinking
from evaluator.figures.steps import step_lengths as recorded_step_lengths
from evaluator.present.table import Table
from stp.audit import StepLengths
from stp.curves import Curves
from stp.ragged import IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThinkingTables:
    """What stored token ids add to an analysis.

    Attributes
    ----------
    tables
        The boundary audit and forms (Table 8) and step lengths (Figure 9), as far as there are.
    lengths
        For each model's name and each b, the lengths of all its steps.
    missing
        A sentence that says whose thinking is not stored, if there is such a model.
    """

    tables: tuple[Table, ...]
    lengths: Mapping[str, Mapping[int, IntArray]]
    missing: tuple[str, ...]


def thinking_tables(
    opened: Sequence[OpenedCampaign],
    curves: Curves,
    steps: tuple[int, ...],
    targets: Sequence[int],
    progress: Progress,
) -> ThinkingTables:
    """Audit the stored thinking and cut it again; if there is none, take the curves' steps.

    Parameters
    ----------
    opened
        The campaigns.
    curves
        Theirs.
    steps
        b of each, without repetition.
    targets
        Further b to cut the thinking by.
    watch
        Told how far each stage is.

    Raises
    ------
    data.errors.MisuseError
        If a model's vocabulary is not the same in all campaigns.
    data.errors.StoreError
        If a campaign is damaged.
    """
    stored = models_with_thinking(opened)
    lacking = [name for name in curves.model_names if name not in stored]
    lengths: dict[str, tuple[StepLengths, ...]] = {}
    tables: list[Table] = []
    if stored:
        audits = audit_campaigns(opened, progress=progress.stage("boundary audit"))
        tables += [audit_table(audit_frame(audits)), forms_table(forms_frame(audits))]
        lengths = campaign_step_lengths(
            opened, sorted({*steps, *targets}), progress=progress.stage("step lengths")
        )
    if len(steps) == 1:
        lengths |= {name: (_recorded_steps(curves, name, steps[0]),) for name in lacking}
    if lengths:
        tables.append(length_table(lengths_frame(lengths)))
    missing = (
        f"No thinking is stored of {', '.join(lacking)}: no boundary audit, and no step lengths "
        "for another b."
    )
    return ThinkingTables(
        tables=tuple(tables),
        lengths=length_samples(lengths),
        missing=(missing,) if lacking else (),
    )


def _recorded_steps(curves: Curves, model: str, step_tokens: int) -> StepLengths:
    own = curves.select(curves.model == curves.model_names.index(model))
    counts = np.bincount(recorded_step_lengths(own))
    return StepLengths(step_tokens=step_tokens, counts=counts.astype(np.int64))
