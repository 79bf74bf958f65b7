"""What can be found wrong with a request before anything is loaded.

Preparing a campaign reads all weights for their hash and all questions. An engine option that no
engine takes, or a device that this machine has not, need not wait for that.
"""

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from data.errors import ConfigError, MissingDependencyError, StpError
from stp.campaign.config import CampaignConfig
from stp.campaign.growth import asks_for_more
from stp.campaign.lock import Part
from stp.campaign.manifest import Manifest
from stp.campaign.store import Store
from stp.campaign.units import STAGE_TABLES, Stage, Unit
from stp.engines import open_engine


def check_engine(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that an engine cannot take on this machine.

    Engines check their options before they load a model. So an engine is opened here with an empty
    folder: its complaints about options count; its complaint about the missing model is expected.

    Raises
    ------
    data.errors.ConfigError
        If the engine or an option is unknown, or a value cannot be used here.
    data.errors.MissingDependencyError
        If the engine's library is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="stp-no-model-") as folder:
        Path(folder, "config.json").write_text("{}")
        Path(folder, "none.safetensors").touch()
        try:
            open_engine(name, folder, **options).close()
        except (ConfigError, MissingDependencyError):
            raise
        except StpError:
            return


def planned_units(
    store: Store, config: CampaignConfig, manifest: Manifest, part: Part | None = None
) -> Iterator[Unit]:
    """Yield the units of a campaign, or of a part: every n-th, so that parts are alike."""
    units = (unit for cell in manifest.cells for unit in store.plan(config, cell))
    if part is None:
        return units
    return itertools.islice(units, part.number - 1, None, part.count)


def engine_is_needed(
    store: Store, config: CampaignConfig, stages: Sequence[Stage], part: Part | None = None
) -> bool:
    """Return whether stages have units left that an engine must do, as far as file names tell.

    A shard that is there may still be torn or out of date: then an engine is needed, and this says
    False.

    Raises
    ------
    data.errors.StoreError
        If the folder cannot be read.
    """
    if not store.is_campaign():
        return "generate" in stages
    manifest = store.read_manifest()
    if manifest.config_hash != config.content_hash():
        # Without rows it is begun again. With rows it grows, or is refused: nothing should precede
        # that.
        return "generate" in stages and (not store.has_rows() or asks_for_more(config, manifest))
    there = {name for table in ("trajectories", "probes", "signals") for name in store.files(table)}
    for unit in planned_units(store, config, manifest, part):
        generated = unit.shard("trajectories") in there
        if not generated and "generate" in stages:
            return True
        for stage in stages:
            later = stage in ("probe", "signals")
            if later and generated and unit.shard(STAGE_TABLES[stage][-1]) not in there:
                return True
    return False
