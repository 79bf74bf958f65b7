"""How a campaign grows in its folder: more trajectories, more probes, more questions; never fewer.

Seeds make what is there the beginning of what is asked for now, so rows are kept and completed. New
trajectories and questions make new units, a *lot* numbered after the existing ones. Probes are
added to the shards of a unit, which are then as if all had been asked for at once.
"""

from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import CellRecord, LotRecord, Manifest, text_hash

_COUNTS = ("generation.trajectories", "probing.probes")
_FOLLOWING = "shards.trajectories"
"""Where it is not set it follows the number of trajectories; lots have their own."""
_LIMIT = ".limit"
"""How the key of a benchmark's number of questions ends; the questions themselves are compared."""


def asks_for_more(config: CampaignConfig, manifest: Manifest) -> bool:
    """Return whether a configuration is that of a campaign, with larger numbers of what grows.

    An adaptive plan does not grow: it chooses by all existing answers, so more of them from the
    beginning would have given another choice.
    """
    before, now = manifest.settings, config.settings()
    if config.probing.plan != "uniform" or before.keys() != now.keys():
        return False
    if any(now[key] < before[key] for key in _COUNTS):
        return False
    return all(
        now[key] == before[key] or key in (*_COUNTS, _FOLLOWING) or key.endswith(_LIMIT)
        for key in now
    )


def whole_lot(config: CampaignConfig, record: CellRecord) -> LotRecord:
    """Return all of a cell that has not grown."""
    return LotRecord(
        questions=(0, record.questions),
        trajectories=(0, config.generation.trajectories),
        questions_per_unit=config.shards.questions,
        trajectories_per_unit=config.trajectories_per_unit,
        probes=config.probing.probes,
        campaign=text_hash(f"{config.content_hash()} {record.digest}"),
    )


def grown_lots(
    config: CampaignConfig, manifest: Manifest, record: CellRecord, *, questions: int, digest: str
) -> list[LotRecord]:
    """Return the lots of a cell that grows.

    Parameters
    ----------
    config
        What is asked for now.
    manifest, record
        What the campaign is, and the cell as it is there.
    questions, digest
        How many questions the cell has now, and the digest of their shard as asked.
    """
    before = manifest.settings
    had = int(before["generation.trajectories"])
    lots = record.lots or [
        LotRecord(
            questions=(0, record.questions),
            trajectories=(0, had),
            questions_per_unit=int(before["shards.questions"]),
            trajectories_per_unit=int(before[_FOLLOWING]),
            probes=int(before["probing.probes"]),
            campaign=text_hash(f"{manifest.config_hash} {record.digest}"),
        )
    ]
    wanted = config.generation.trajectories
    new = []
    if wanted > had:
        new.append(((0, record.questions), (had, wanted)))
    if questions > record.questions:
        new.append(((record.questions, questions), (0, wanted)))
    for asked, trajectories in new:
        lots = [
            *lots,
            LotRecord(
                questions=asked,
                trajectories=trajectories,
                questions_per_unit=config.shards.questions,
                trajectories_per_unit=config.trajectories_per_unit,
                probes=config.probing.probes,
                campaign=text_hash(f"{config.content_hash()} {digest}"),
            ),
        ]
    return lots
