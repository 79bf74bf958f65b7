"""The boundary audit and the step lengths of campaigns, as frames (Table 8, Figure 9).

Everything comes from the stores' own token ids and tokenizers: no model runs, nothing is probed.
Shards are read one after the other, so a campaign of any size fits into memory.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from data.errors import MisuseError, StoreError
from stp.audit import (
    BOUNDARY_KINDS,
    BoundaryAuditor,
    BoundaryCounts,
    StepLengths,
    VocabularyForms,
    escape_form,
    reconstruction_mismatches,
    step_lengths,
    vocabulary_forms,
)
from stp.campaign.models import tokenizer_folder
from stp.campaign.status import unit_state
from stp.campaign.store import Store, read_questions
from stp.campaign.text import StoredTokenizer
from stp.campaign.units import Unit
from stp.curves import IntArray
from stp.tokenizers import Tokenizer, token_bytes

Campaigns = str | Path | Sequence[str | Path]
"""A campaign's folder (a path or an fsspec URL), or several; models of one name are pooled."""

DECODED_TOKENS = 10_000_000
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelAudit:
    """The audit of one model's trajectories.

    Attributes
    ----------
    model
        Its name.
    vocabulary, counts
        The forms of its tokens, and what they did.
    missing
        Planned trajectories that are not generated yet.
    decoded, decoding_mismatches
        Trajectories decoded as a whole to check the audit; those where it is not confirmed.
    reconstructed, reconstruction_mismatches
        Trajectories segmented again; those whose recorded positions did not come out.
    """

    model: str
    vocabulary: VocabularyForms
    counts: BoundaryCounts
    missing: int
    decoded: int
    decoding_mismatches: int
    reconstructed: int
    reconstruction_mismatches: int

    def literal_forms(self) -> dict[bytes, int]:
        """Return the observed literal forms and their occurrences, most frequent first."""
        seen: Counter[bytes] = Counter()
        occurrences = self.counts.occurrences.tolist()
        for token_id, count in zip(self.vocabulary.boundary_ids.tolist(), occurrences, strict=True):
            seen[self.vocabulary.forms[token_id]] += count
        ordered = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
        return {form: count for form, count in ordered if count}


def audit_campaigns(
    campaigns: Campaigns,
    *,
    allow_incomplete: bool = False,
    decoded_tokens: int | None = DECODED_TOKENS,
) -> tuple[ModelAudit, ...]:
    """Audit every model of one or several campaigns.

    Parameters
    ----------
    campaigns
        Their folders. Each is segmented again with its own target b.
    allow_incomplete
        Audit what is generated, and count what is missing, instead of refusing.
    decoded_tokens
        Thinking tokens of a model that are decoded as whole trajectories to check the audit, which
        takes far longer than the audit itself. Of a model with more, whole shards, evenly spread,
        are taken. None: all.

    Raises
    ------
    data.errors.MisuseError
        If a folder is no campaign, or a model's vocabulary is not the same in all of them.
    data.errors.StoreError
        If a campaign is incomplete (unless allowed) or damaged.
    """
    if decoded_tokens is not None and decoded_tokens < 0:
        raise MisuseError(f"decoded_tokens must be 0 or more, or None, not {decoded_tokens}")
    stores = _stores(campaigns, allow_incomplete=allow_incomplete)
    vocabularies = _Vocabularies(stores)
    return tuple(
        _audit_model(stores, model, vocabularies.of(model), decoded_tokens)
        for model in _models(stores)
    )


def boundary_audit(
    campaign_url: Campaigns,
    *,
    allow_incomplete: bool = False,
    decoded_tokens: int | None = DECODED_TOKENS,
    top: int = 3,
) -> pd.DataFrame:
    """Return the boundary audit, a row a model (Table 8).

    Parameters
    ----------
    campaign_url, allow_incomplete, decoded_tokens
        As for :func:`audit_campaigns`, which see for errors.
    top
        Most frequent literal forms that are shown.

    Returns
    -------
    pandas.DataFrame
        What :func:`audit_frame` describes.
    """
    audits = audit_campaigns(
        campaign_url, allow_incomplete=allow_incomplete, decoded_tokens=decoded_tokens
    )
    return audit_frame(audits, top)


def boundary_forms(campaign_url: Campaigns, *, allow_incomplete: bool = False) -> pd.DataFrame:
    """Return every boundary token of every model, with its occurrences.

    Parameters and errors are those of :func:`audit_campaigns`; see :func:`forms_frame` for the
    columns.
    """
    return forms_frame(
        audit_campaigns(campaign_url, allow_incomplete=allow_incomplete, decoded_tokens=0)
    )


def audit_frame(audits: Sequence[ModelAudit], top: int = 3) -> pd.DataFrame:
    """Return audits as a frame, a row a model.

    Returns
    -------
    pandas.DataFrame
        Columns: ``model``; ``trajectories``, ``missing_trajectories`` and thinking ``tokens``;
        ``boundary_ids`` in the vocabulary, and of them by kind ``pure``, ``white_space``,
        ``suffix``, ``infix``; ``seen`` ids and their ``events``; ``crossing`` newline pairs and
        the ``unmarked`` ones; ``decoded_trajectories`` and ``decoding_mismatches``;
        ``reconstructed_trajectories`` and ``reconstruction_mismatches``; ``top_forms``, escaped,
        with occurrences. A mismatch count is ``<NA>`` where nothing was checked.
    """
    rows = [
        {
            "model": audit.model,
            "trajectories": audit.counts.trajectories,
            "missing_trajectories": audit.missing,
            "tokens": audit.counts.tokens,
            "boundary_ids": audit.vocabulary.boundary_ids.size,
            **{kind: audit.vocabulary.count(kind) for kind in BOUNDARY_KINDS},
            "seen": audit.counts.seen,
            "events": audit.counts.events,
            "crossing": audit.counts.crossing,
            "unmarked": audit.counts.unmarked,
            "decoded_trajectories": audit.decoded,
            "decoding_mismatches": audit.decoding_mismatches if audit.decoded else None,
            "reconstructed_trajectories": audit.reconstructed,
            "reconstruction_mismatches": (
                audit.reconstruction_mismatches if audit.reconstructed else None
            ),
            "top_forms": ", ".join(
                f"{escape_form(form)} ({count:,})"
                for form, count in list(audit.literal_forms().items())[:top]
            ),
        }
        for audit in audits
    ]
    frame = pd.DataFrame(rows)
    for column in ("decoding_mismatches", "reconstruction_mismatches"):
        frame[column] = frame[column].astype("Int64")
    return frame


def forms_frame(audits: Sequence[ModelAudit]) -> pd.DataFrame:
    """Return every boundary token of the vocabularies, those that never occurred included.

    Returns
    -------
    pandas.DataFrame
        Columns: ``model``, ``token_id``, ``kind``, ``form`` (escaped, see
        :func:`stp.audit.escape_form`), ``occurrences``; most frequent first within a model, ties by
        id.
    """
    parts = [
        pd.DataFrame(
            {
                "model": audit.model,
                "token_id": audit.vocabulary.boundary_ids,
                "kind": audit.vocabulary.kinds,
                "form": [
                    escape_form(audit.vocabulary.forms[token_id])
                    for token_id in audit.vocabulary.boundary_ids
                ],
                "occurrences": audit.counts.occurrences,
            }
        ).sort_values("occurrences", ascending=False, kind="stable")
        for audit in audits
    ]
    return pd.concat(parts, ignore_index=True)


def campaign_step_lengths(
    campaigns: Campaigns,
    step_tokens: Sequence[int] = (128, 256, 512),
    *,
    allow_incomplete: bool = False,
) -> dict[str, tuple[StepLengths, ...]]:
    """Return every model's step lengths under every target b, all its steps pooled.

    Parameters
    ----------
    campaigns, allow_incomplete
        As for :func:`audit_campaigns`, which see for errors.
    step_tokens
        The targets b, in tokens.

    Returns
    -------
    dict
        By model, one :class:`stp.audit.StepLengths` for each target, in their order.
    """
    stores = _stores(campaigns, allow_incomplete=allow_incomplete)
    targets = tuple(dict.fromkeys(step_tokens))
    vocabularies = _Vocabularies(stores)
    found = {}
    for model in _models(stores):
        boundary_ids = vocabularies.of(model).forms.boundary_ids.tolist()
        totals = step_lengths([], [0], (), targets)
        for shard in _shards(stores, model):
            part = step_lengths(shard.ids, shard.offsets, boundary_ids, targets)
            totals = tuple(total + more for total, more in zip(totals, part, strict=True))
        found[model] = totals
    return found


def step_length_table(
    campaign_urls: Campaigns,
    step_tokens: Sequence[int] = (128, 256, 512),
    *,
    allow_incomplete: bool = False,
) -> pd.DataFrame:
    """Return summaries of step lengths, a row a model and target b.

    Parameters and errors are those of :func:`campaign_step_lengths`; see :func:`lengths_frame` for
    the columns.
    """
    return lengths_frame(
        campaign_step_lengths(campaign_urls, step_tokens, allow_incomplete=allow_incomplete)
    )


def lengths_frame(lengths: Mapping[str, Sequence[StepLengths]]) -> pd.DataFrame:
    """Return summaries of step lengths.

    Returns
    -------
    pandas.DataFrame
        Columns: ``model``, ``step_tokens`` (b), ``steps``, ``mean``, the quantiles ``q05``,
        ``q25``, ``q50``, ``q75``, ``q95`` (lengths that occur, NaN without a step), ``longest``;
        lengths in tokens.
    """
    return pd.DataFrame(
        [
            {
                "model": model,
                "step_tokens": item.step_tokens,
                "steps": item.steps,
                "mean": item.mean,
                **{f"q{100 * q:02.0f}": item.quantile(q) for q in QUANTILES},
                "longest": item.longest,
            }
            for model, by_target in lengths.items()
            for item in by_target
        ]
    )


def step_length_samples(
    campaign_urls: Campaigns,
    step_tokens: Sequence[int] = (128, 256, 512),
    *,
    allow_incomplete: bool = False,
) -> dict[str, dict[int, IntArray]]:
    """Return the length of every step, as ``evaluator.figures.steps.step_length_plot`` takes it.

    Parameters and errors are those of :func:`campaign_step_lengths`.

    Returns
    -------
    dict
        By model and by target b, all lengths in tokens, ascending; int64 ``(steps,)``.
    """
    return length_samples(
        campaign_step_lengths(campaign_urls, step_tokens, allow_incomplete=allow_incomplete)
    )


def length_samples(
    lengths: Mapping[str, Sequence[StepLengths]],
) -> dict[str, dict[int, IntArray]]:
    """Return the length of every step, by model and by target b; int64 ``(steps,)``, ascending."""
    return {
        model: {item.step_tokens: item.lengths() for item in by_target}
        for model, by_target in lengths.items()
    }


# -- reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedUnit:
    """A unit that is generated, and where; ``own`` is its campaign's target b."""

    store: Store
    unit: Unit
    own: int
    probed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A campaign's generated units by model, and the trajectories that they lack."""

    store: Store
    units: dict[str, list[_PlannedUnit]]
    missing: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Shard:
    """The trajectories of one unit: ids ``(tokens,)``, where each starts, and which they are."""

    planned: _PlannedUnit
    ids: IntArray
    offsets: IntArray
    keys: IntArray


def _stores(campaigns: Campaigns, *, allow_incomplete: bool) -> list[_Opened]:
    urls = [campaigns] if isinstance(campaigns, str | Path) else list(campaigns)
    if not urls:
        raise MisuseError("no campaign was given; name at least one folder")
    return [_open(Store(url), allow_incomplete=allow_incomplete) for url in urls]


def _open(store: Store, *, allow_incomplete: bool) -> _Opened:
    manifest, config = store.read_manifest(), store.read_config()
    units: dict[str, list[_PlannedUnit]] = {}
    missing: Counter[str] = Counter()
    not_generated = not_probed = 0
    for record in manifest.cells:
        generated = units.setdefault(record.model, [])
        for unit in store.plan(config, record):
            state = unit_state(store, unit)
            not_generated += not state.generated
            not_probed += not state.probed
            if not state.generated:
                missing[record.model] += (
                    _fitting(store, unit) if record.too_long else (unit.trajectories)
                )
                continue
            generated.append(
                _PlannedUnit(
                    store=store,
                    unit=unit,
                    own=config.probing.step_tokens,
                    probed=state.probed,
                )
            )
    if not_probed and not allow_incomplete:
        raise StoreError(
            f"{store.url}: the campaign is not complete: of its units {not_generated} are not "
            f"generated, {not_probed} are not probed; go on with `stp run {store.url}`, or allow "
            "an incomplete campaign"
        )
    return _Opened(store=store, units=units, missing=dict(missing))


def _fitting(store: Store, unit: Unit) -> int:
    """Return a unit's trajectories without those of questions that are too long to be run."""
    fits = read_questions(store, unit.cell)["fit"].to_pylist()
    fitting = [fit != "too_long" for fit in fits[unit.question_start : unit.question_stop]]
    return sum(fitting) * (unit.trajectory_stop - unit.trajectory_start)


def _models(stores: Sequence[_Opened]) -> list[str]:
    return list(dict.fromkeys(model for opened in stores for model in opened.units))


class _Vocabularies:
    """Tokenizers of campaigns, each file read once: several models often share one."""

    def __init__(self, stores: Sequence[_Opened]) -> None:
        self._stores = stores
        self._known: dict[str, _Vocabulary] = {}

    def of(self, model: str) -> "_Vocabulary":
        """Return a model's vocabulary, which all campaigns must agree on."""
        holders = [opened.store for opened in self._stores if model in opened.units]
        first = self._read(holders[0], model)
        for other in holders[1:]:
            if self._read(other, model).forms.forms != first.forms.forms:
                raise MisuseError(
                    f"{model} has one vocabulary in {holders[0].url} and another in {other.url}; "
                    "analyse these campaigns one by one"
                )
        return first

    def _read(self, store: Store, model: str) -> "_Vocabulary":
        content = store.read_bytes(f"{tokenizer_folder(model)}/tokenizer.json")
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self._known:
            tokenizer = StoredTokenizer(store, model).fast
            forms = vocabulary_forms(token_bytes(tokenizer))
            self._known[digest] = _Vocabulary(tokenizer=tokenizer, forms=forms)
        return self._known[digest]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Vocabulary:
    tokenizer: Tokenizer
    forms: VocabularyForms


def _planned(stores: Sequence[_Opened], model: str) -> list[_PlannedUnit]:
    return [planned for opened in stores for planned in opened.units.get(model, [])]


def _shards(stores: Sequence[_Opened], model: str) -> Iterator[_Shard]:
    for planned in _planned(stores, model):
        yield _read(planned)


def _read(planned: _PlannedUnit) -> _Shard:
    rows = planned.store.read_shard("trajectories", planned.unit.shard("trajectories"))
    ids = rows["thinking_ids"].combine_chunks()
    sizes = ids.value_lengths().to_numpy(zero_copy_only=False)
    return _Shard(
        planned=planned,
        ids=ids.flatten().to_numpy(zero_copy_only=False),
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)]),
        keys=_keys(rows),
    )


def _keys(rows: pa.Table) -> IntArray:
    """Return question and trajectory of every row; ``(rows, 2)``."""
    return np.stack([rows[name].to_numpy() for name in ("question", "trajectory")], axis=1)


def _audit_model(
    stores: Sequence[_Opened], model: str, own: _Vocabulary, decoded_tokens: int | None
) -> ModelAudit:
    auditor = BoundaryAuditor(own.forms)
    counts = auditor.audit([], [0])
    reconstructed = mismatches = 0
    for shard in _shards(stores, model):
        counts += auditor.audit(shard.ids, shard.offsets)
        if shard.planned.probed:
            reconstructed += shard.offsets.size - 1
            mismatches += _reconstruct(shard, own.forms)
    planned = _checked_units(_planned(stores, model), counts.tokens, decoded_tokens)
    decoded = wrong = 0
    for shard in map(_read, planned):
        decoded += shard.offsets.size - 1
        wrong += auditor.decoding_mismatches(shard.ids, shard.offsets, own.tokenizer)
    return ModelAudit(
        model=model,
        vocabulary=own.forms,
        counts=counts,
        missing=sum(opened.missing.get(model, 0) for opened in stores),
        decoded=decoded,
        decoding_mismatches=wrong,
        reconstructed=reconstructed,
        reconstruction_mismatches=mismatches,
    )


def _reconstruct(shard: _Shard, vocabulary: VocabularyForms) -> int:
    """Return how many trajectories of a shard have other positions than are recorded."""
    planned = shard.planned
    name = planned.unit.shard("positions")
    rows = planned.store.read_shard("positions", name)
    position = rows["position"].to_numpy()
    first = np.flatnonzero(position == 0)
    starts = np.append(first, position.size)
    counted = np.arange(position.size) - np.repeat(first, np.diff(starts))
    if not np.array_equal(_keys(rows)[first], shard.keys) or not np.array_equal(counted, position):
        raise StoreError(
            f"{planned.store.url}/{name}: its rows are not those of the trajectories; "
            f"run `stp run {planned.store.url}`"
        )
    return reconstruction_mismatches(
        shard.ids,
        shard.offsets,
        vocabulary.boundary_ids.tolist(),
        planned.own,
        rows["tokens"].to_numpy(),
        starts,
    )


def _checked_units(
    planned: list[_PlannedUnit], tokens: int, limit: int | None
) -> list[_PlannedUnit]:
    """Return the units whose trajectories are decoded: all, or evenly spread ones."""
    if limit is None or tokens <= limit:
        return planned
    return planned[:: -(-tokens // limit)] if limit else []
