"""From a campaign's folder to the columns of a release: curves, answers, questions.

Reads the shards in the order of :func:`stp.campaign.curves.load_curves`, so that everything here
lies beside the curves row by row.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from baselines.dynasor import DOUBTS
from data.errors import StoreError
from data.progress import NOBODY, Progress
from evaluator.otbench.answer_numbers import AnswerNumbers
from stp.campaign.curves import load_curves
from stp.campaign.status import unit_state
from stp.campaign.store import Store, read_questions
from stp.campaign.tables import ORIGINAL
from stp.campaign.text import StoredTokenizer
from stp.campaign.units import Unit
from stp.curves import Curves

DOUBT = re.compile(rf"\b(?:{'|'.join(DOUBTS)})\b", re.IGNORECASE)
"""A word of doubt in an answer's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question of a cell, without its text."""

    benchmark: str
    question_id: str
    answer_kind: str
    prompt: str
    prompt_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gathered:
    """One campaign.

    Attributes
    ----------
    store
        Its folder.
    curves
        As measured, benchmarks not pooled.
    asked
        By (model, benchmark), its questions by id.
    answers
        Numbers of all probes' answers; int32 ``(positions, probes)``.
    hedged, answer_tokens
        Of the first probe at every position.
    texts
        By (model, benchmark, question id), the answers behind the numbers.
    incomplete
        Whether it may be incomplete.
    """

    store: Store
    curves: Curves
    asked: dict[tuple[str, str], dict[str, AskedQuestion]]
    answers: npt.NDArray[np.int32]
    hedged: npt.NDArray[np.bool_]
    answer_tokens: npt.NDArray[np.int32]
    texts: dict[tuple[str, str, str], tuple[str, ...]]
    incomplete: bool = False


@dataclass(slots=True)
class _Columns:
    answers: list[npt.NDArray[np.int32]] = field(default_factory=list)
    hedged: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    tokens: list[npt.NDArray[np.int32]] = field(default_factory=list)


def gather(url: str, *, allow_incomplete: bool = False, progress: Progress = NOBODY) -> Gathered:
    """Read a graded campaign.

    Raises
    ------
    data.errors.StpError
        If the folder is not a campaign, or is incomplete (unless allowed) or damaged.
    """
    store = Store(url)
    config, manifest = store.read_campaign()
    curves = load_curves(url, allow_incomplete=allow_incomplete)
    columns = _Columns()
    asked: dict[tuple[str, str], dict[str, AskedQuestion]] = {}
    units = [(record, unit) for record in manifest.cells for unit in store.plan(config, record)]
    numbers: dict[tuple[str, str, str], AnswerNumbers] = {}
    tokenizers: dict[str, StoredTokenizer] = {}
    for done, (record, unit) in enumerate(units, start=1):
        if not unit_state(store, unit).graded:
            continue
        cell = (record.model, record.benchmark)
        if cell not in asked:
            asked[cell] = {q.question_id: q for q in _asked(store, unit)}
        if record.model not in tokenizers:
            tokenizers[record.model] = StoredTokenizer(store, record.model)
        _gather_unit(
            store,
            unit,
            config.probing.everywhere,
            asked[cell],
            numbers,
            tokenizers[record.model],
            columns,
        )
        progress(done, len(units))
    gathered = Gathered(
        store=store,
        curves=curves,
        asked=asked,
        answers=np.concatenate(columns.answers),
        hedged=np.concatenate(columns.hedged),
        answer_tokens=np.concatenate(columns.tokens),
        texts={key: value.answers for key, value in numbers.items()},
        incomplete=allow_incomplete,
    )
    if gathered.answers.shape[0] != curves.positions:
        raise StoreError(
            f"{store.url}: {gathered.answers.shape[0]} positions have answers and "
            f"{curves.positions} have curves; the campaign changed while it was read"
        )
    return gathered


def _asked(store: Store, unit: Unit) -> Iterator[AskedQuestion]:
    for row in read_questions(store, unit.cell).to_pylist():
        yield AskedQuestion(
            benchmark=unit.cell.benchmark,
            question_id=row["question_id"],
            answer_kind=row["answer_kind"],
            prompt=row["prompt"],
            prompt_tokens=len(row["prompt_ids"]),
        )


def _gather_unit(
    store: Store,
    unit: Unit,
    probes: int,
    asked: dict[str, AskedQuestion],
    numbers: dict[tuple[str, str, str], AnswerNumbers],
    tokenizer: StoredTokenizer,
    columns: _Columns,
) -> None:
    """Add a unit's positions, in their order."""
    verdicts = store.read_shard("verdicts", unit.shard("verdicts"))
    verdicts = verdicts.filter(pc.field("position") != ORIGINAL)
    replies = store.read_shard("probes", unit.shard("probes"))
    _check_same_rows(store, unit, verdicts, replies)
    columns.answers.append(_numbered(unit, verdicts, probes, asked, numbers))
    first = replies.filter(pc.field("sample") == 0)["answer_ids"].to_pylist()
    seen: dict[tuple[int, ...], bool] = {}
    hedged = []
    for answer_ids in map(tuple, first):
        if answer_ids not in seen:
            seen[answer_ids] = DOUBT.search(tokenizer.decode(list(answer_ids))) is not None
        hedged.append(seen[answer_ids])
    columns.hedged.append(np.array(hedged, np.bool_))
    columns.tokens.append(np.array([len(answer_ids) for answer_ids in first], np.int32))


def _numbered(
    unit: Unit,
    verdicts: pa.Table,
    probes: int,
    asked: dict[str, AskedQuestion],
    numbers: dict[tuple[str, str, str], AnswerNumbers],
) -> npt.NDArray[np.int32]:
    """Return the answers' numbers; each distinct answer to a question is looked at once."""
    ids = list(asked)
    encoded = verdicts["answer"].combine_chunks().dictionary_encode(null_encoding="encode")
    texts = encoded.dictionary.to_pylist()
    question = verdicts["question"].to_numpy().astype(np.int64)
    pair = question * len(texts) + encoded.indices.to_numpy()
    _, first, place = np.unique(pair, return_index=True, return_inverse=True)
    found = np.zeros(first.size, np.int32)
    # In order of appearance: so answers are numbered.
    for distinct in np.argsort(first, kind="stable").tolist():
        row = int(first[distinct])
        key = (unit.cell.model, unit.cell.benchmark, ids[int(question[row])])
        if key not in numbers:
            numbers[key] = AnswerNumbers(asked[key[2]].answer_kind)
        found[distinct] = numbers[key].number(texts[int(encoded.indices[row].as_py())])
    return found[place].reshape(-1, probes)


def _check_same_rows(store: Store, unit: Unit, verdicts: pa.Table, replies: pa.Table) -> None:
    keys: list[Any] = ["question", "trajectory", "position", "sample"]
    if not verdicts.select(keys).equals(replies.select(keys)):
        raise StoreError(
            f"{store.url}/{unit.shard('verdicts')}: its rows are not those of the probes; run "
            f"`stp grade {store.argument} --again`"
        )
