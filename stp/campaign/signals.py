"""Signals of a campaign's trajectories: what the model shows at every position, read afterwards.

A stage that runs only on request (``stp signals``). ``signals.json`` in the folder
says with which settings; a folder never mixes two.
"""

import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from data.errors import MisuseError
from stp.campaign.config import CampaignConfig
from stp.campaign.early import check_engine, engine_is_needed
from stp.campaign.jobs import Job
from stp.campaign.lock import Part
from stp.campaign.manifest import strict_json
from stp.campaign.prepare import Prepared, prepare_campaign
from stp.campaign.run import (
    Observer,
    PoolOpener,
    RunResult,
    SilentObserver,
    StagedRun,
    configured_engine,
    engines_at_hand,
    run_stages,
)
from stp.campaign.signal_record import (
    SIGNALS_FILE,
    SignalSettings,
    SignalsRecord,
    is_read_with,
    read_signals_record,
    signal_source,
)
from stp.campaign.signal_rows import SignalsJob
from stp.campaign.store import Store
from stp.campaign.tables import trajectory_source
from stp.campaign.units import STAGE_TABLES, Unit
from stp.campaign.watchdog import Watchdog, end_process
from stp.campaign.workers import EngineOpener, EngineRoom, EngineWorker
from stp.engines import open_engine


def signals_campaign(
    url: str | Path,
    settings: SignalSettings | None = None,
    *,
    engine: str | None = None,
    engine_options: Mapping[str, Any] | None = None,
    again: bool = False,
    observer: Observer | None = None,
    stop: threading.Event | None = None,
    open_model: EngineOpener | None = None,
    open_pool: PoolOpener | None = None,
    part: Part | None = None,
) -> RunResult:
    """Read the signals of a campaign's trajectories, or continue it.

    Parameters
    ----------
    url
        A campaign's folder.
    settings
        Which signals; those that the folder has already, or the defaults, when left out.
    engine, engine_options
        Another engine than the campaign's, and its options.
    again
        Read everything again, with these settings.
    observer, stop, open_model, open_pool, part
        As :func:`stp.campaign.run.run_campaign`.

    Raises
    ------
    data.errors.MisuseError
        If the folder holds signals with other settings, or the engine cannot show what is asked.
    data.errors.StpError
        One line that says what went wrong. What was written is kept.
    """
    store = Store(url)
    store.read_manifest()
    with store.lock(part):
        config, _ = store.read_campaign()
        if config.generation.mode != "thinking":
            raise MisuseError(f"{store.url}: its trajectories do not think, and have no signals")
        here = open_model is None and open_pool is None
        if here and (again or engine_is_needed(store, config, ("signals",), part)):
            check_engine(*_chosen_engine(config, engine, engine_options))
        with store.preparing(part):
            prepared = prepare_campaign(store, config)
            before = store.read_bytes(SIGNALS_FILE) if store.exists(SIGNALS_FILE) else None
            record = _begin(store, settings, again=again)
        seen = _with_engines_of(record, prepared)
        note = partial(_note_engines, store, record, seen)
        opener = open_model or _engine_opener(config, engine, engine_options)
        room = EngineRoom(
            seen,
            open_model=opener,
            attempts=3,
            retry_seconds=1.0,
            watchdog=Watchdog(config.engine.stall_seconds, on_stall=end_process),
            on_described=note,
        )
        worker = SignalsWorker(store, record.settings, again=again)
        run = StagedRun(
            store=store,
            prepared=prepared,
            observer=observer or SilentObserver(),
            stop=stop or threading.Event(),
            workers={"signals": worker},
            part=part,
        )
        try:
            with engines_at_hand(run, room, open_pool, seen, opener):
                result = run_stages(run, ("signals",))
                note()
        except MisuseError:
            # Which layers there are shows only in an open model. Settings that it refuses must
            # not be those that the same command continues.
            if run.units == 0:
                _take_back(store, record, before, part)
            raise
        return result


def _with_engines_of(record: SignalsRecord, prepared: Prepared) -> Prepared:
    """Return a campaign whose models have the engines that read their signals.

    What reads them is noted beside the signals: the campaign's own engine may be another.
    """
    manifest = prepared.manifest.model_copy(deep=True)
    for model in manifest.models:
        model.engine = dict(record.engines.get(model.name, {}))
    return Prepared(config=prepared.config, manifest=manifest, models=prepared.models)


def _note_engines(store: Store, record: SignalsRecord, seen: Prepared) -> None:
    record.engines = {model.name: model.engine for model in seen.manifest.models if model.engine}
    _write(store, record)


def _begin(store: Store, settings: SignalSettings | None, *, again: bool) -> SignalsRecord:
    """Return the folder's record, made or made again if that is asked for."""
    if again:
        record = SignalsRecord(settings=settings or SignalSettings())
        _write(store, record)
        return record
    found = read_signals_record(store)
    if found is None:
        found = SignalsRecord(settings=settings or SignalSettings())
        _write(store, found)
    elif settings is not None and found.settings != settings:
        if any(store.files(table) for table in STAGE_TABLES["signals"]):
            raise MisuseError(
                f"{store.url} holds signals with other settings "
                f"({found.settings.model_dump_json()}); read all of them again with --again"
            )
        found = SignalsRecord(settings=settings)
        _write(store, found)
    return found


def _take_back(
    store: Store, record: SignalsRecord, before: bytes | None, part: Part | None
) -> None:
    """Leave the folder's record as it was before a run that read nothing."""
    with store.preparing(part):
        # Another part may have read with these settings, or have taken them back already.
        if part is not None and (
            not store.exists(SIGNALS_FILE) or is_read_with(store, record.settings)
        ):
            return
        if before is None:
            store.remove(SIGNALS_FILE)
        else:
            store.write_bytes(SIGNALS_FILE, before)


def _write(store: Store, record: SignalsRecord) -> None:
    store.write_bytes(SIGNALS_FILE, strict_json(record.model_dump(mode="json")).encode())


def _engine_opener(
    config: CampaignConfig, engine: str | None, options: Mapping[str, Any] | None
) -> EngineOpener:
    name, given = _chosen_engine(config, engine, options)
    if engine is None and options is None and name != "vllm":
        return configured_engine(config)
    return lambda _, folder: open_engine(name, folder, **given)


def _chosen_engine(
    config: CampaignConfig, engine: str | None, options: Mapping[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    """Return the engine that reads signals, and its options."""
    name = engine or config.engine.name
    given = config.engine.options if engine is None and options is None else options or {}
    # vLLM shows whole distributions only where it was told so when it started.
    further = {"max_logprobs": -1} if name == "vllm" else {}
    return name, {**given, **further}


class SignalsWorker(EngineWorker):
    """Trajectories to signals."""

    def __init__(self, store: Store, settings: SignalSettings, *, again: bool) -> None:
        super().__init__(store)
        self._settings = settings
        self.again = again

    def source(self, unit: Unit) -> str | None:
        """Return the campaign, the digest of the unit's trajectories, and the settings."""
        info = self._store.shard_info("trajectories", unit.shard("trajectories"))
        if info is None or info.source != trajectory_source(unit):
            return None
        return signal_source(unit, trajectories=info.digest, settings=self._settings)

    def job(self, unit: Unit) -> Job:
        """Return the job of reading the unit's trajectories."""
        return SignalsJob(
            unit=unit,
            questions=self._questions.of(unit.cell),
            trajectories=self._store.read_shard("trajectories", unit.shard("trajectories")),
            settings=self._settings,
        )
