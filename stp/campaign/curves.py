"""From a campaign's shards to :class:`stp.curves.Curves`, which everything after it sees."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from data.errors import MisuseError, StoreError
from data.progress import NOBODY, Progress
from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import Manifest
from stp.campaign.round_reader import round_counts
from stp.campaign.several import check_complete, check_disjoint
from stp.campaign.status import unit_state
from stp.campaign.store import Store, read_questions
from stp.campaign.tables import ORIGINAL
from stp.campaign.units import Cell, Unit
from stp.curves import Curves
from stp.ragged import offsets_of

_LOG = logging.getLogger(__name__)


def load_curves(
    url: str | Path | Sequence[str | Path],
    *,
    allow_incomplete: bool = False,
    rounds: int | None = None,
    progress: Progress = NOBODY,
) -> Curves:
    """Return the curves of one campaign, or of several together.

    Parameters
    ----------
    url
        A campaign's folder (a local path or an fsspec URL), or several with the same number of
        probes and no (model, benchmark) in common.
    allow_incomplete
        Take the units that are graded and leave out the rest.
    rounds
        Of adaptive campaigns, take no more rounds of more probes than this; all when left out.
    progress
        Called with (units read, all units).

    Returns
    -------
    stp.curves.Curves
        With all names filled. Trajectories are in order of campaign, model, benchmark and unit of
        work, and within a unit of question and sample. Questions that are too long for a model's
        context are not in it.

    Raises
    ------
    data.errors.MisuseError
        If a folder is not a campaign, the campaigns do not go together, or nothing is graded.
    data.errors.StoreError
        If a campaign is incomplete or damaged; the message says what is missing.
    """
    urls = [url] if isinstance(url, str | Path) else list(url)
    campaigns = [(store, *store.read_campaign()) for store in map(Store, urls)]
    check_disjoint(
        (store.url, [(record.model, record.benchmark) for record in manifest.cells])
        for store, _, manifest in campaigns
    )
    gathered = _Gathered(
        progress=progress,
        units=sum(
            len(store.plan(config, record))
            for store, config, manifest in campaigns
            for record in manifest.cells
        ),
    )
    for store, config, manifest in campaigns:
        wanted = config.probing.rounds if config.probing.plan == "adaptive" else 0
        wanted = wanted if rounds is None else min(rounds, wanted)
        _gather(store, config, manifest, gathered, rounds=wanted, allow_incomplete=allow_incomplete)
    return gathered.curves()


@dataclass(slots=True)
class _Gathered:
    """Columns of the curves while shards are read, as lists of arrays."""

    progress: Progress
    units: int
    read: int = 0
    probes: int = 0
    models: dict[str, int] = field(default_factory=dict)
    benchmarks: dict[str, int] = field(default_factory=dict)
    questions: dict[tuple[str, str], int] = field(default_factory=dict)
    tokens: list[npt.NDArray[np.int64]] = field(default_factory=list)
    correct: list[npt.NDArray[np.int64]] = field(default_factory=list)
    positions: list[npt.NDArray[np.int64]] = field(default_factory=list)
    extra_probes: list[npt.NDArray[np.int64]] = field(default_factory=list)
    extra_correct: list[npt.NDArray[np.int64]] = field(default_factory=list)
    adaptive: bool = False
    trajectory: dict[str, list[npt.NDArray[np.int64]]] = field(
        default_factory=lambda: {
            name: [] for name in ("question", "benchmark", "model", "sample", "original")
        }
    )

    def tell(self) -> None:
        self.read += 1
        self.progress(self.read, self.units)

    def curves(self) -> Curves:
        if not self.tokens:
            raise MisuseError("nothing is graded yet; continue `stp run`")
        columns = {name: np.concatenate(arrays) for name, arrays in self.trajectory.items()}
        extra = (
            {
                "extra_probes": np.concatenate(self.extra_probes).astype(np.int32),
                "extra_correct": np.concatenate(self.extra_correct).astype(np.int32),
            }
            if self.adaptive
            else {}
        )
        return Curves(
            **extra,
            tokens=np.concatenate(self.tokens),
            correct=np.concatenate(self.correct).astype(np.int32),
            trajectory_offsets=offsets_of(np.concatenate(self.positions)),
            question=columns["question"].astype(np.int32),
            probes=self.probes,
            benchmark=columns["benchmark"].astype(np.int32),
            model=columns["model"].astype(np.int32),
            sample=columns["sample"].astype(np.int32),
            original_correct=columns["original"].astype(np.int8),
            question_names=tuple(name for _, name in self.questions),
            benchmark_names=tuple(self.benchmarks),
            model_names=tuple(self.models),
        )


def _gather(
    store: Store,
    config: CampaignConfig,
    manifest: Manifest,
    gathered: _Gathered,
    *,
    rounds: int,
    allow_incomplete: bool,
) -> None:
    if gathered.probes not in (0, config.probing.everywhere):
        raise MisuseError(
            f"{store.url} has {config.probing.everywhere} probes at a position and the campaign "
            f"before it {gathered.probes}; curves with different numbers cannot be put together"
        )
    gathered.probes = config.probing.everywhere
    missing = {"generated": 0, "probed": 0, "graded": 0}
    versions: set[str] = set()
    gathered.adaptive |= rounds > 0
    lacking = 0
    for record in manifest.cells:
        if record.too_long:
            _LOG.warning(
                "%s: %d of %d prompts of %s are too long for %s and have no curve",
                store.url,
                record.too_long,
                record.questions,
                record.benchmark,
                record.model,
            )
        numbers: npt.NDArray[np.int64] | None = None
        for unit in store.plan(config, record):
            state = unit_state(store, unit)
            gathered.tell()
            for stage in missing:
                missing[stage] += not getattr(state, stage)
            if not state.graded:
                continue
            versions.add(state.checker_version)
            if state.grading_mark != record.grading_mark:
                raise StoreError(
                    f"{store.url}: some verdicts on {record.benchmark} are on references from "
                    f"before they were corrected; run `stp grade {store.argument}`"
                )
            if numbers is None:
                numbers = _question_numbers(store, unit.cell, gathered)
            done = _gather_unit(store, config, unit, numbers, gathered, rounds)
            lacking += done < rounds
    if lacking and not allow_incomplete:
        raise StoreError(
            f"{store.url}: {lacking} units lack some of {rounds} rounds of more probes; continue "
            f"`stp run {store.argument}`, or take what is there with --allow-incomplete"
        )
    check_complete(store.url, missing, needed="graded", allow_incomplete=allow_incomplete)
    if len(versions) > 1:
        raise StoreError(
            f"{store.url}: verdicts of checker versions {' and '.join(sorted(versions))} are "
            f"mixed; run `stp grade {store.argument}`"
        )


def _question_numbers(store: Store, cell: Cell, gathered: _Gathered) -> npt.NDArray[np.int64]:
    """Return the number of each question of a cell, the same for all models."""
    ids = read_questions(store, cell)["question_id"].to_pylist()
    known = gathered.questions
    return np.array([known.setdefault((cell.benchmark, name), len(known)) for name in ids])


def _gather_unit(
    store: Store,
    config: CampaignConfig,
    unit: Unit,
    numbers: npt.NDArray[np.int64],
    gathered: _Gathered,
    rounds: int,
) -> int:
    """Take a unit's rows; return how many rounds of more probes it has."""
    positions = store.read_shard("positions", unit.shard("positions"))
    verdicts = store.read_shard("verdicts", unit.shard("verdicts"))
    if not positions.num_rows:
        return rounds
    right = _column(verdicts, "right").astype(np.int64)
    original = _column(verdicts, "position") == ORIGINAL
    probed = ~original
    keys = {name: _column(positions, name) for name in ("question", "trajectory", "position")}
    for name, values in keys.items():
        asked = np.repeat(values, config.probing.everywhere)
        if not np.array_equal(_column(verdicts, name)[probed], asked):
            raise StoreError(
                f"{store.url}/{unit.shard('verdicts')}: its rows are not those of the positions; "
                f"run `stp grade {store.argument} --again`"
            )
    first = np.flatnonzero(keys["position"] == 0)
    if any(
        not np.array_equal(keys[name][first], _column(verdicts, name)[original])
        for name in ("question", "trajectory")
    ):
        raise StoreError(
            f"{store.url}/{unit.shard('verdicts')}: an original answer is missing; run "
            f"`stp grade {store.argument} --again`"
        )
    gathered.tokens.append(_column(positions, "tokens"))
    gathered.correct.append(right[probed].reshape(-1, config.probing.everywhere).sum(axis=1))
    gathered.positions.append(np.diff(np.append(first, positions.num_rows)))
    extra, extra_right, done = round_counts(store, unit, positions, rounds)
    gathered.extra_probes.append(extra)
    gathered.extra_correct.append(extra_right)
    cell = unit.cell
    model = gathered.models.setdefault(cell.model, len(gathered.models))
    benchmark = gathered.benchmarks.setdefault(cell.benchmark, len(gathered.benchmarks))
    columns = gathered.trajectory
    columns["question"].append(numbers[keys["question"][first]])
    columns["sample"].append(keys["trajectory"][first])
    columns["original"].append(right[original])
    columns["model"].append(np.full(first.size, model))
    columns["benchmark"].append(np.full(first.size, benchmark))
    return done


def _column(rows: pa.Table, name: str) -> npt.NDArray[np.int64]:
    values: npt.NDArray[np.int64] = rows[name].to_numpy()
    return values
