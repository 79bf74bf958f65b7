"""What a dry run's warm-up already tells of the shares that a campaign would have."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from evaluator.answers import Checker
from stp.campaign.config import CampaignConfig
from stp.campaign.grade import grade_unit
from stp.campaign.manifest import CellRecord
from stp.campaign.prepare import Subject
from stp.campaign.row_counts import count_rows
from stp.campaign.shares import CellShares, shares_of
from stp.campaign.units import Unit


def warm_up_shares(
    config: CampaignConfig,
    short: CampaignConfig,
    subject: Subject,
    record: CellRecord,
    unit: Unit,
    questions: pa.Table,
    trajectories: pa.Table,
    probes: pa.Table,
) -> CellShares:
    """Return the shares of a warm-up's rows.

    What the warm-up alone cut, the campaign would not: such rows count for nothing.

    Parameters
    ----------
    config, short
        What would be done, and the same with the warm-up's limits.
    subject, record, unit, questions
        The cell, and what was asked of it.
    trajectories, probes
        The rows that were made.
    """
    if short.generation.answer_tokens < config.generation.answer_tokens:
        trajectories = trajectories.filter(pc.field("answer_finish") != "length")
    if short.probing.answer_tokens < config.probing.answer_tokens:
        probes = probes.filter(pc.field("finish") != "length")
    total = Counter(count_rows("trajectories", trajectories, subject.format))
    total.update(count_rows("probes", probes, subject.format))
    if short.generation.thinking_limit < config.generation.thinking_limit:
        del total["thinking_cut"]
    if trajectories.num_rows + probes.num_rows:
        # Programs are not run: whether they are right is no question here.
        asked = questions["answer_kind"].to_pylist()
        if "code" not in asked and "judged" not in asked:
            with Checker(workers=1) as checker:
                verdicts = grade_unit(
                    unit,
                    questions,
                    trajectories,
                    probes,
                    decoder=subject.format,
                    checker=checker,
                )
            total.update(count_rows("verdicts", verdicts))
    return shares_of(record, total, thinks=config.generation.mode == "thinking")
