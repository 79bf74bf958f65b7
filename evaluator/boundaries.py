"""The boundary audit of a campaign, and its step lengths under other targets b.

Paper 002, D.1. Everything is decided on stored token ids and on the bytes of single tokens; no
model runs and nothing is probed again. Shards are read one by one, so a campaign of any size fits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from evaluator.table_text import Table
from stp.campaign.store import Store
from stp.campaign.text import StoredTokenizer
from stp.campaign.units import Cell
from stp.curves import IntArray
from stp.segmentation import boundary_token_ids, segment_many
from stp.tokenizers import token_bytes

FORMS = ("pure", "white_space", "suffix", "infix")
"""Kinds of boundary tokens: the double newline alone; it among other white space; after text and
followed by white space at most; followed by text."""

_PAIR = b"\n\n"


def form_of(content: bytes) -> str:
    r"""Return which of :data:`FORMS` a boundary token has.

    Examples
    --------
    >>> [form_of(c) for c in (b"\n\n", b" \n\n\n", b".\n\n", b");\n\n//")]
    ['pure', 'white_space', 'suffix', 'infix']
    """
    if content == _PAIR:
        return "pure"
    if not content.strip():
        return "white_space"
    return "infix" if content.rsplit(_PAIR, 1)[1].strip() else "suffix"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundaryAudit:
    """What the boundary tokens of one model did in its trajectories.

    Attributes
    ----------
    model
        Its name.
    trajectories, tokens
        How many were read; thinking tokens.
    vocabulary
        Boundary ids in the vocabulary, by form (:data:`FORMS`).
    occurrences
        How often each boundary id occurred; those that did, most frequent first (ties by id).
    forms
        The bytes of each of these ids.
    crossing
        Double newlines made by two neighbouring tokens: the left one ends and the right one
        begins with a newline. They are not boundaries.
    unmarked
        Those of them whose right token is no boundary token.
    mismatches
        Trajectories whose stored positions differ from segmenting them again.
    lengths
        Step lengths in tokens, all trajectories pooled, for each target b.
    """

    model: str
    trajectories: int
    tokens: int
    vocabulary: dict[str, int]
    occurrences: dict[int, int]
    forms: dict[int, bytes]
    crossing: int
    unmarked: int
    mismatches: int
    lengths: dict[int, IntArray]

    @property
    def vocabulary_size(self) -> int:
        """Boundary ids in the vocabulary."""
        return sum(self.vocabulary.values())

    @property
    def events(self) -> int:
        """Boundary tokens in all trajectories."""
        return sum(self.occurrences.values())


def audit_campaign(url: str | Path, targets: Sequence[int] = ()) -> tuple[BoundaryAudit, ...]:
    """Audit every model of a campaign.

    Parameters
    ----------
    url
        The campaign's folder. Units that are not probed yet are left out.
    targets
        Target step lengths b to segment with, besides the campaign's own.

    Raises
    ------
    data.errors.MisuseError
        If the folder is no campaign.
    data.errors.StoreError
        If a shard or a tokenizer cannot be read.
    """
    store = Store(url)
    own = store.read_config().probing.step_tokens
    names = dict.fromkeys(record.model for record in store.read_manifest().cells)
    return tuple(
        _audit_model(store, name, own, tuple(dict.fromkeys([own, *targets]))) for name in names
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """The trajectories of one unit: ids and stored L(k), each with offsets."""

    ids: IntArray
    offsets: IntArray
    tokens: IntArray
    position_offsets: IntArray


def _chunks(store: Store, model: str) -> Iterator[_Chunk]:
    config = store.read_config()
    for record in store.read_manifest().cells:
        if record.model != model:
            continue
        cell = Cell(model=record.model, benchmark=record.benchmark, questions=record.questions)
        for unit in store.plan(config, record):
            if unit.cell != cell or not store.exists(unit.shard("positions")):
                continue
            rows = store.read_shard("trajectories", unit.shard("trajectories"))
            positions = store.read_shard("positions", unit.shard("positions"))
            if not rows.num_rows:
                continue
            ids = rows["thinking_ids"].combine_chunks()
            first = np.flatnonzero(positions["position"].to_numpy() == 0)
            yield _Chunk(
                ids=ids.flatten().to_numpy().astype(np.int64),
                offsets=np.append(0, np.cumsum(ids.value_lengths().to_numpy())).astype(np.int64),
                tokens=positions["tokens"].to_numpy(),
                position_offsets=np.append(first, positions.num_rows),
            )


def _audit_model(store: Store, model: str, own: int, targets: tuple[int, ...]) -> BoundaryAudit:
    tokenizer = StoredTokenizer(store, model).fast
    contents = token_bytes(tokenizer)
    boundary_ids = boundary_token_ids(tokenizer)
    is_boundary = np.zeros(len(contents), np.bool_)
    is_boundary[list(boundary_ids)] = True
    begins = np.array([c.startswith(b"\n") for c in contents])
    ends = np.array([c.endswith(b"\n") for c in contents])
    counts = np.zeros(len(contents), np.int64)
    trajectories = tokens = crossing = unmarked = mismatches = 0
    lengths: dict[int, list[IntArray]] = {target: [] for target in targets}
    for chunk in _chunks(store, model):
        trajectories += chunk.offsets.size - 1
        tokens += chunk.ids.size
        counts += np.bincount(chunk.ids, minlength=len(contents))
        right = _crossing(chunk, begins, ends)
        crossing += right.size
        unmarked += int(np.count_nonzero(~is_boundary[right]))
        for target in targets:
            made, offsets = segment_many(chunk.ids, chunk.offsets, boundary_ids, target)
            lengths[target].append(_steps(made, offsets))
            if target == own:
                mismatches += _differing(chunk, made, offsets)
    seen = [i for i in boundary_ids if counts[i]]
    seen.sort(key=lambda i: (-counts[i], i))
    kinds = [form_of(contents[i]) for i in boundary_ids]
    return BoundaryAudit(
        model=model,
        trajectories=trajectories,
        tokens=tokens,
        vocabulary={form: kinds.count(form) for form in FORMS},
        occurrences={i: int(counts[i]) for i in seen},
        forms={i: contents[i] for i in seen},
        crossing=crossing,
        unmarked=unmarked,
        mismatches=mismatches,
        lengths={t: np.concatenate([np.zeros(0, np.int64), *v]) for t, v in lengths.items()},
    )


def _crossing(
    chunk: _Chunk, begins: npt.NDArray[np.bool_], ends: npt.NDArray[np.bool_]
) -> IntArray:
    """Return the right id of every double newline between neighbours of one trajectory."""
    hit = ends[chunk.ids[:-1]] & begins[chunk.ids[1:]]
    # The last token of a trajectory and the first of the next are no neighbours.
    inner = chunk.offsets[1:-1]
    inner = inner[(inner > 0) & (inner < chunk.ids.size)]
    hit[inner - 1] = False
    return chunk.ids[1:][hit]


def _steps(tokens: IntArray, offsets: IntArray) -> IntArray:
    """Return L(k) - L(k-1) of every step of every trajectory."""
    is_step = np.ones(tokens.size, np.bool_)
    is_step[offsets[:-1]] = False
    steps: IntArray = np.diff(tokens, prepend=0)[is_step]
    return steps


def _differing(chunk: _Chunk, tokens: IntArray, offsets: IntArray) -> int:
    """Count trajectories whose stored positions are not those that were made again."""
    stored = chunk.position_offsets
    return sum(
        not np.array_equal(
            chunk.tokens[stored[s] : stored[s + 1]], tokens[offsets[s] : offsets[s + 1]]
        )
        for s in range(offsets.size - 1)
    )


def audit_table(audits: Sequence[BoundaryAudit], top: int = 3) -> Table:
    """Return the audit as a table, a row a model (Table 8)."""
    rows = [
        {
            "Vocabulary": audit.vocabulary_size,
            **{form.replace("_", " "): audit.vocabulary[form] for form in FORMS},
            "Seen": len(audit.occurrences),
            "Events": audit.events,
            "Cross": audit.crossing,
            "Unmarked": audit.unmarked,
            "Mismatches": audit.mismatches,
            "Top forms": ", ".join(
                f"{escape(audit.forms[i])} ({count:,})"
                for i, count in list(audit.occurrences.items())[:top]
            ),
        }
        for audit in audits
    ]
    read = sum(audit.trajectories for audit in audits)
    return Table(
        name="boundary-audit",
        title="Boundary tokens: in the vocabulary, in the trajectories, and between tokens",
        frame=pd.DataFrame(rows, index=pd.Index([audit.model for audit in audits], name="Model")),
        note=(
            f"{read:,} trajectories, {sum(a.tokens for a in audits):,} thinking tokens. Vocabulary "
            "counts by form: the double newline alone (pure), among white space, at the end of a "
            "text (suffix), before a text (infix). Seen: boundary ids that occurred; events: how "
            "often. Cross: double newlines over two tokens; unmarked: those whose right token is "
            "no boundary. Mismatches: trajectories that segment differently today."
        ),
    )


def length_table(audits: Sequence[BoundaryAudit]) -> Table:
    """Return summaries of the step lengths for every target b (Figure 9), a row a model and b."""
    rows = {
        (audit.model, target): {
            "Steps": lengths.size,
            "Mean": float(lengths.mean()) if lengths.size else np.nan,
            **{
                f"{q}%": float(np.quantile(lengths, q / 100)) if lengths.size else np.nan
                for q in (5, 50, 95)
            },
            "Longest": int(lengths.max(initial=0)),
        }
        for audit in audits
        for target, lengths in sorted(audit.lengths.items())
    }
    return Table(
        name="step-lengths",
        title="Lengths of steps in tokens, all steps of a model pooled",
        frame=pd.DataFrame(
            list(rows.values()), index=pd.MultiIndex.from_tuples(list(rows), names=["Model", "b"])
        ),
        formats={"Mean": ".2f", "5%": ".0f", "50%": ".0f", "95%": ".0f"},
        note="The stored thinking, cut again for each b; nothing was probed again.",
    )


def escape(content: bytes) -> str:
    r"""Return a token's bytes as printable text: ``b".\n\n"`` as ``".\n\n"`` written out."""
    text = content.decode("utf-8", errors="backslashreplace")
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) + '"'
