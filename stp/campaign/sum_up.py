"""Sum a campaign's cells up, so that its state and its questions can be listed at once."""

from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import Manifest
from stp.campaign.reader import question_counts
from stp.campaign.status import cell_progress, signal_settings
from stp.campaign.store import Store
from stp.campaign.summaries import CellSummary, read_summary, summary_mark, write_summary


def sum_up(store: Store, config: CampaignConfig, manifest: Manifest) -> None:
    """Write the summaries of all cells whose shards are not those of the summary that is there.

    The caller holds the folder's lock, and has written all its rows.

    Raises
    ------
    data.errors.StoreError
        If a shard cannot be read, or the summary cannot be written.
    """
    settings = signal_settings(store, [])
    for record in manifest.cells:
        mark = summary_mark(store, config, record)
        if mark is None or read_summary(store, record, mark) is not None:
            continue
        progress = cell_progress(store, config, record, settings)
        counts = question_counts(store, config, record)
        write_summary(
            store, record, mark, CellSummary(progress=progress.model_dump_json(), counts=counts)
        )
