"""The tables of a release, made from what a campaign gave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.otbench.columns import SIGNAL_COLUMNS, hidden_column, schema_of
from evaluator.otbench.gather import AskedQuestion, Gathered
from evaluator.otbench.splits import SplitRule, lot, prompt_digest
from stp.curves import Curves
from stp.ragged import Array
from stp.signals import Signals

QuestionKey = tuple[str, str]
"""A question: (benchmark, question id)."""


@dataclass(slots=True)
class Division:
    """Which questions are in a release, and where each belongs.

    Attributes
    ----------
    split
        Its split.
    asked
        What is known of it.
    """

    split: dict[QuestionKey, str] = field(default_factory=dict)
    asked: dict[QuestionKey, AskedQuestion] = field(default_factory=dict)


def questions_table(division: Division, groups: dict[str, str], rule: SplitRule) -> pa.Table:
    """Return the questions of all cells, with their groups and splits."""
    rows = [
        {
            "benchmark": benchmark,
            "question_id": question_id,
            "group": groups.get(benchmark, benchmark),
            "split": division.split[benchmark, question_id],
            "answer_kind": asked.answer_kind,
            "prompt_sha256": prompt_digest(asked.prompt),
            "lot": lot(rule.seed, benchmark, question_id),
        }
        for (benchmark, question_id), asked in sorted(division.asked.items())
    ]
    return pa.Table.from_pylist(rows, schema=schema_of("questions"))


def write_cell(
    folder: Path,
    stem: str,
    item: Gathered,
    signals: Signals | None,
    model: str,
    benchmark: str,
    division: Division,
) -> dict[str, Any]:
    """Write the files of one cell and return what the manifest says of it."""
    names = item.curves.question_names
    number = {name: q for q, name in enumerate(names)}
    wanted = np.array(
        [number[i] for b, i in division.asked if b == benchmark and i in number], np.int64
    )
    inside_s = cell_rows(item.curves, model, benchmark)
    rows_s = np.flatnonzero(inside_s & np.isin(item.curves.question, wanted))
    keep_s = np.zeros(item.curves.trajectories, np.bool_)
    keep_s[rows_s] = True
    rows_k = np.flatnonzero(item.curves.spread(keep_s))
    curves = item.curves.select(rows_s)
    ids = np.array([names[q] for q in curves.question.tolist()], object)
    splits = [division.split[benchmark, name] for name in ids.tolist()]
    keys = {
        "model": np.full(curves.positions, model, object),
        "benchmark": np.full(curves.positions, benchmark, object),
        "question_id": curves.spread(ids),
        "trajectory": curves.spread(curves.sample),
        "position": curves.position_k.astype(np.int32),
    }
    trajectories = _trajectories_table(curves, model, benchmark, ids, splits)
    write_table(folder, f"trajectories/{stem}", trajectories)
    positions = {
        **keys,
        "tokens": curves.tokens,
        "correct": curves.correct,
        "answers": _lists(item.answers[rows_k]),
        "answer_hedged": item.hedged[rows_k],
        "answer_tokens": item.answer_tokens[rows_k],
    }
    if signals is not None:
        positions |= {name: getattr(signals, name)[rows_k] for name, _, _ in SIGNAL_COLUMNS}
    schema = schema_of("positions", signals=signals is not None)
    write_table(folder, f"positions/{stem}", _table(schema, positions))
    write_table(folder, f"answers/{stem}", _answers_table(item, model, benchmark, division))
    asked = [
        question
        for key, question in sorted(item.asked[model, benchmark].items())
        if (benchmark, key) in division.asked
    ]
    write_table(
        folder, f"prompts/{stem}", _prompts_table(item, signals, model, benchmark, number, asked)
    )
    if signals is not None and signals.hidden:
        hidden = _with_layers(_table(schema_of("hidden"), keys), signals.hidden, rows_k)
        write_table(folder, f"hidden/{stem}", hidden)
    return {
        "model": model,
        "benchmark": benchmark,
        "file": stem,
        "trajectories": curves.trajectories,
        "positions": curves.positions,
        "questions": len(asked),
        "signals": [name for name, _, _ in SIGNAL_COLUMNS if _measured(signals, name)],
        "layers": sorted(signals.hidden) if signals is not None else [],
        "prompt_layers": sorted(signals.prompt_hidden) if signals is not None else [],
    }


def _trajectories_table(
    curves: Curves, model: str, benchmark: str, ids: Array, splits: list[str]
) -> pa.Table:
    return _table(
        schema_of("trajectories"),
        {
            "model": np.full(curves.trajectories, model, object),
            "benchmark": np.full(curves.trajectories, benchmark, object),
            "question_id": ids,
            "split": splits,
            "trajectory": curves.sample,
            "steps": (np.diff(curves.trajectory_offsets) - 1).astype(np.int32),
            "full_tokens": curves.full_tokens_s,
            "zero_correct": curves.zero_correct_s,
            "full_correct": curves.full_correct_s,
            "probes": np.full(curves.trajectories, curves.probes, np.int32),
            "original_correct": curves.original_correct,
        },
    )


def _prompts_table(
    item: Gathered,
    signals: Signals | None,
    model: str,
    benchmark: str,
    number: Mapping[str, int],
    asked: Sequence[AskedQuestion],
) -> pa.Table:
    """Return the table of prompts; ``number`` has the questions' numbers in the curves by id."""
    table = _table(
        schema_of("prompts"),
        {
            "model": [model] * len(asked),
            "benchmark": [benchmark] * len(asked),
            "question_id": [question.question_id for question in asked],
            "prompt_tokens": np.array([question.prompt_tokens for question in asked], np.int32),
        },
    )
    if signals is None or not signals.prompt_hidden:
        return table
    model_number = item.curves.model_names.index(model)
    pairs = zip(signals.prompt_model.tolist(), signals.prompt_question.tolist(), strict=True)
    place = {pair: row for row, pair in enumerate(pairs)}
    rows = [place[model_number, number[question.question_id]] for question in asked]
    return _with_layers(table, signals.prompt_hidden, rows)


def _measured(signals: Signals | None, name: str) -> bool:
    """Return whether a signal was measured: an optional one is NaN everywhere if not."""
    if signals is None:
        return False
    if name == "trial_tokens":
        name = "trial_logprob"
    values = getattr(signals, name)
    return values.dtype.kind != "f" or not bool(np.isnan(values).all())


def _answers_table(item: Gathered, model: str, benchmark: str, division: Division) -> pa.Table:
    rows = [
        {
            "model": model,
            "benchmark": benchmark,
            "question_id": question_id,
            "number": number,
            "answer": text,
        }
        for (m, b, question_id), texts in item.texts.items()
        if (m, b) == (model, benchmark) and (b, question_id) in division.asked
        for number, text in enumerate(texts)
    ]
    return pa.Table.from_pylist(rows, schema=schema_of("answers"))


def _table(schema: pa.Schema, columns: dict[str, Any]) -> pa.Table:
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def _lists(values: npt.NDArray[np.int32]) -> pa.Array:
    offsets = np.arange(values.shape[0] + 1, dtype=np.int32) * values.shape[1]
    return pa.ListArray.from_arrays(offsets, pa.array(values.reshape(-1)))


def _with_layers(table: pa.Table, layers: Any, rows: Any) -> pa.Table:
    for layer, states in sorted(layers.items()):
        chosen = np.ascontiguousarray(states[np.asarray(rows, np.int64)])
        column = pa.FixedSizeListArray.from_arrays(pa.array(chosen.reshape(-1)), chosen.shape[1])
        table = table.append_column(hidden_column(layer), column)
    return table


def write_table(folder: Path, name: str, table: pa.Table) -> None:
    """Write one file of a release."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd")


def cell_rows(curves: Curves, model: str, benchmark: str) -> npt.NDArray[np.bool_]:
    """Return which trajectories are of a cell, by its names; bool ``(trajectories,)``."""
    if model not in curves.model_names or benchmark not in curves.benchmark_names:
        return np.zeros(curves.trajectories, np.bool_)
    return np.asarray(
        (curves.model == curves.model_names.index(model))
        & (curves.benchmark == curves.benchmark_names.index(benchmark))
    )
