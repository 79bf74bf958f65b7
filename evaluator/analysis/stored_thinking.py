"""Thinking tokens of campaigns, read from their stores shard by shard; no model is needed."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from data.errors import MisuseError
from data.progress import Progress
from stp.audit import VocabularyForms, vocabulary_forms
from stp.campaign.models import tokenizer_folder
from stp.campaign.several import check_complete, check_disjoint
from stp.campaign.status import unit_state
from stp.campaign.store import Store, read_questions
from stp.campaign.text import StoredTokenizer
from stp.campaign.units import Unit
from stp.ragged import IntArray, offsets_of
from stp.segmentation import StepRule
from stp.tokenizers import Tokenizer, token_bytes

Campaigns = str | Path | Sequence[str | Path]
"""A campaign's folder (a path or an fsspec URL), or several; models of one name are pooled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedUnit:
    """A unit whose trajectories are there, its campaign's target b, and whether it is probed."""

    store: Store
    unit: Unit
    step_tokens: int
    steps: StepRule
    probed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedCampaign:
    """A campaign's cells, its generated units by model, and how many trajectories they lack."""

    store: Store
    cells: tuple[tuple[str, str], ...]
    units: dict[str, list[GeneratedUnit]]
    missing: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThinkingShard:
    """The trajectories of one unit: ids ``(tokens,)``, where each starts, and which they are."""

    source: GeneratedUnit
    ids: IntArray
    offsets: IntArray
    keys: IntArray


def open_campaigns(campaigns: Campaigns, *, allow_incomplete: bool = False) -> list[OpenedCampaign]:
    """Open one or several campaigns to read their thinking tokens.

    Parameters
    ----------
    campaigns
        Their folders.
    allow_incomplete
        Take what is generated instead of refusing a campaign that is not wholly probed.

    Raises
    ------
    data.errors.MisuseError
        If a folder is not a campaign, or two have a (model, benchmark) in common.
    data.errors.StoreError
        If a campaign is incomplete (unless allowed) or damaged.
    """
    urls = [campaigns] if isinstance(campaigns, str | Path) else list(campaigns)
    opened = [_open(Store(url), allow_incomplete=allow_incomplete) for url in urls]
    check_disjoint((campaign.store.url, campaign.cells) for campaign in opened)
    return opened


def _open(store: Store, *, allow_incomplete: bool) -> OpenedCampaign:
    config, manifest = store.read_campaign()
    units: dict[str, list[GeneratedUnit]] = {}
    missing: Counter[str] = Counter()
    not_done = {"generated": 0, "probed": 0}
    for record in manifest.cells:
        generated = units.setdefault(record.model, [])
        for unit in store.plan(config, record):
            state = unit_state(store, unit)
            not_done["generated"] += not state.generated
            not_done["probed"] += not state.probed
            if not state.generated:
                missing[record.model] += _fitting(store, unit)
                continue
            generated.append(
                GeneratedUnit(
                    store=store,
                    unit=unit,
                    step_tokens=config.probing.step_tokens,
                    steps=config.probing.steps,
                    probed=state.probed,
                )
            )
    check_complete(store.url, not_done, needed="probed", allow_incomplete=allow_incomplete)
    return OpenedCampaign(
        store=store,
        cells=tuple((record.model, record.benchmark) for record in manifest.cells),
        units=units,
        missing=dict(missing),
    )


def _fitting(store: Store, unit: Unit) -> int:
    """Return a unit's trajectories without those of questions that are too long to be run."""
    fits: list[str] = read_questions(store, unit.cell)["fit"].to_pylist()
    fitting = [fit != "too_long" for fit in fits[unit.question_start : unit.question_stop]]
    return fitting.count(True) * (unit.trajectory_stop - unit.trajectory_start)


def model_names(campaigns: Sequence[OpenedCampaign]) -> list[str]:
    """Return the names of all models, in order of appearance."""
    return list(dict.fromkeys(model for opened in campaigns for model in opened.units))


def models_with_thinking(campaigns: Sequence[OpenedCampaign]) -> list[str]:
    """Return the names of the models whose thinking is stored; a synthetic campaign has none."""
    return [
        model
        for model in model_names(campaigns)
        if not _lacks_thinking(generated_units(campaigns, model))
    ]


def _lacks_thinking(units: Sequence[GeneratedUnit]) -> bool:
    """Look at the first unit with tokens in its positions: whether it has no ids for them."""
    for source in units:
        if source.probed:
            rows = source.store.read_shard("positions", source.unit.shard("positions"))
            if rows.num_rows and rows["tokens"].to_numpy().any():
                return read_shard(source).ids.size == 0
    return False


class UnitCounter:
    """Tells how many of some models' units are read.

    Parameters
    ----------
    campaigns, models
        Whose units.
    progress
        Called with (units read, all units).
    """

    def __init__(
        self,
        campaigns: Sequence[OpenedCampaign],
        models: Sequence[str],
        progress: Progress,
    ) -> None:
        self._total = sum(len(generated_units(campaigns, model)) for model in models)
        self._progress = progress
        self._done = 0

    def counted(self, shards: Iterator[ThinkingShard]) -> Iterator[ThinkingShard]:
        """Yield the shards, each counted when it has been dealt with."""
        for shard in shards:
            yield shard
            self._done += 1
            self._progress(self._done, self._total)


class Vocabularies:
    """Tokenizers of campaigns, each file read once: several models often share one."""

    def __init__(self, campaigns: Sequence[OpenedCampaign]) -> None:
        self._campaigns = campaigns
        self._known: dict[str, Vocabulary] = {}

    def of(self, model: str) -> "Vocabulary":
        """Return a model's vocabulary, which all campaigns must agree on.

        Raises
        ------
        data.errors.MisuseError
            If they do not.
        data.errors.StoreError
            If a tokenizer cannot be read.
        """
        holders = [opened.store for opened in self._campaigns if model in opened.units]
        first = self._read(holders[0], model)
        for other in holders[1:]:
            if self._read(other, model).forms.forms != first.forms.forms:
                raise MisuseError(
                    f"{model} has one vocabulary in {holders[0].url} and another in {other.url}; "
                    "analyse these campaigns one by one"
                )
        return first

    def _read(self, store: Store, model: str) -> "Vocabulary":
        content = store.read_bytes(f"{tokenizer_folder(model)}/tokenizer.json")
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self._known:
            tokenizer = StoredTokenizer(store, model).fast
            forms = vocabulary_forms(token_bytes(tokenizer))
            self._known[digest] = Vocabulary(tokenizer=tokenizer, forms=forms)
        return self._known[digest]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vocabulary:
    """A model's tokenizer, and the forms of its tokens."""

    tokenizer: Tokenizer
    forms: VocabularyForms


def generated_units(campaigns: Sequence[OpenedCampaign], model: str) -> list[GeneratedUnit]:
    """Return a model's units that are generated, campaign after campaign."""
    return [unit for opened in campaigns for unit in opened.units.get(model, [])]


def thinking_shards(campaigns: Sequence[OpenedCampaign], model: str) -> Iterator[ThinkingShard]:
    """Yield a model's thinking tokens, a unit at a time."""
    for source in generated_units(campaigns, model):
        yield read_shard(source)


def read_shard(source: GeneratedUnit) -> ThinkingShard:
    """Return the thinking tokens of a unit, checked."""
    rows = source.store.read_shard("trajectories", source.unit.shard("trajectories"))
    ids = rows["thinking_ids"].combine_chunks()
    sizes = ids.value_lengths().to_numpy(zero_copy_only=False)
    return ThinkingShard(
        source=source,
        ids=ids.flatten().to_numpy(zero_copy_only=False),
        offsets=offsets_of(sizes),
        keys=trajectory_keys(rows),
    )


def trajectory_keys(rows: pa.Table) -> IntArray:
    """Return question and trajectory of every row; ``(rows, 2)``."""
    return np.stack([rows[name].to_numpy() for name in ("question", "trajectory")], axis=1)
