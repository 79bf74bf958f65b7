"""The boundary audit and the step lengths of campaigns, as frames (Table 8, Figure 9).

Everything comes from the stores' own token ids and tokenizers: no model runs, nothing is probed.
Shards are read one after the other, so a campaign of any size fits into memory.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from data.errors import MisuseError, StoreError
from data.progress import NOBODY, Progress
from evaluator.analysis.stored_thinking import (
    GeneratedUnit,
    OpenedCampaign,
    ThinkingShard,
    UnitCounter,
    Vocabularies,
    Vocabulary,
    generated_units,
    models_with_thinking,
    read_shard,
    thinking_shards,
    trajectory_keys,
)
from stp.audit import (
    BOUNDARY_KINDS,
    BoundaryAuditor,
    BoundaryCounts,
    StepLengths,
    VocabularyForms,
    escape_form,
    reconstruction_mismatches,
    step_lengths,
)
from stp.ragged import IntArray, index_within

DECODED_TOKENS = 2_000_000
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
    opened: Sequence[OpenedCampaign],
    *,
    decoded_tokens: int | None = DECODED_TOKENS,
    progress: Progress = NOBODY,
) -> tuple[ModelAudit, ...]:
    """Audit every model of one or several campaigns whose thinking is stored.

    Parameters
    ----------
    opened
        What :func:`evaluator.analysis.stored_thinking.open_campaigns` returned. Each campaign is
        segmented again with its own target b; what is not generated is counted as missing.
    decoded_tokens
        Thinking tokens of a model that are decoded as whole trajectories to check the audit, which
        takes far longer than the audit itself. Of a model with more, whole shards, evenly spread,
        are taken. None: all.
    progress
        Called with (units read, all units).

    Raises
    ------
    data.errors.MisuseError
        If a model's vocabulary is not the same in all campaigns.
    data.errors.StoreError
        If a campaign is damaged.
    """
    if decoded_tokens is not None and decoded_tokens < 0:
        raise MisuseError(f"decoded_tokens must be 0 or more, or None, not {decoded_tokens}")
    vocabularies = Vocabularies(opened)
    models = models_with_thinking(opened)
    counter = UnitCounter(opened, models, progress)
    return tuple(
        _audit_model(opened, model, vocabularies.of(model), decoded_tokens, counter)
        for model in models
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
    opened: Sequence[OpenedCampaign],
    step_tokens: Sequence[int] = (128, 256, 512),
    *,
    progress: Progress = NOBODY,
) -> dict[str, tuple[StepLengths, ...]]:
    """Return every model's step lengths under every target b, all its steps pooled.

    Parameters
    ----------
    opened, progress
        As for :func:`audit_campaigns`, which see for errors.
    step_tokens
        The targets b, in tokens.

    Returns
    -------
    dict
        By model, one :class:`stp.audit.StepLengths` for each target, in their order.
    """
    targets = tuple(dict.fromkeys(step_tokens))
    vocabularies = Vocabularies(opened)
    models = models_with_thinking(opened)
    counter = UnitCounter(opened, models, progress)
    found = {}
    for model in models:
        boundary_ids = vocabularies.of(model).forms.boundary_ids.tolist()
        totals = step_lengths([], [0], (), targets)
        for shard in counter.counted(thinking_shards(opened, model)):
            part = step_lengths(shard.ids, shard.offsets, boundary_ids, targets)
            totals = tuple(total + more for total, more in zip(totals, part, strict=True))
        found[model] = totals
    return found


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


def length_samples(
    lengths: Mapping[str, Sequence[StepLengths]],
) -> dict[str, dict[int, IntArray]]:
    """Return the length of every step, by model and by target b; int64 ``(steps,)``, ascending."""
    return {
        model: {item.step_tokens: item.lengths() for item in by_target}
        for model, by_target in lengths.items()
    }


def _audit_model(
    opened: Sequence[OpenedCampaign],
    model: str,
    own: Vocabulary,
    decoded_tokens: int | None,
    counter: UnitCounter,
) -> ModelAudit:
    auditor = BoundaryAuditor(own.forms)
    counts = auditor.audit([], [0])
    reconstructed = mismatches = 0
    for shard in counter.counted(thinking_shards(opened, model)):
        counts += auditor.audit(shard.ids, shard.offsets)
        if shard.source.probed:
            reconstructed += shard.offsets.size - 1
            mismatches += _reconstruct(shard, own.forms)
    planned = _checked_units(generated_units(opened, model), counts.tokens, decoded_tokens)
    decoded = wrong = 0
    for shard in map(read_shard, planned):
        decoded += shard.offsets.size - 1
        wrong += auditor.decoding_mismatches(shard.ids, shard.offsets, own.tokenizer)
    return ModelAudit(
        model=model,
        vocabulary=own.forms,
        counts=counts,
        missing=sum(campaign.missing.get(model, 0) for campaign in opened),
        decoded=decoded,
        decoding_mismatches=wrong,
        reconstructed=reconstructed,
        reconstruction_mismatches=mismatches,
    )


def _reconstruct(shard: ThinkingShard, vocabulary: VocabularyForms) -> int:
    """Return how many trajectories of a shard have other positions than are recorded."""
    source = shard.source
    name = source.unit.shard("positions")
    rows = source.store.read_shard("positions", name)
    first = _starts(rows["position"].to_numpy())
    if first is None or not np.array_equal(trajectory_keys(rows)[first], shard.keys):
        raise StoreError(
            f"{source.store.url}/{name}: its rows are not those of the trajectories; "
            f"remove it, then `stp run {source.store.argument}`"
        )
    return reconstruction_mismatches(
        shard.ids,
        shard.offsets,
        vocabulary.boundary_ids.tolist(),
        source.step_tokens,
        steps=source.steps,
        stored_tokens=rows["tokens"].to_numpy(),
        stored_offsets=np.append(first, rows.num_rows),
    )


def _starts(position: IntArray) -> IntArray | None:
    """Return where positions start over from 0; None if they do not run 0, 1, 2, ... from there."""
    is_start = position == 0
    if position.size and not is_start[0]:
        return None
    first = np.flatnonzero(is_start)
    counted = index_within(np.append(first, position.size))
    return first if np.array_equal(counted, position) else None


def _checked_units(
    planned: list[GeneratedUnit], tokens: int, limit: int | None
) -> list[GeneratedUnit]:
    """Return the units whose trajectories are decoded: all, or evenly spread ones."""
    if limit is None or tokens <= limit:
        return planned
    return planned[:: -(-tokens // limit)] if limit else []
