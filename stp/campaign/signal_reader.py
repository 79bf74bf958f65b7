"""From a campaign's signal shards to :class:`stp.signals.Signals`, aligned with its curves."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from data.errors import MisuseError, StoreError
from stp.campaign.curves import load_curves
from stp.campaign.signal_record import read_signals_record, signal_source
from stp.campaign.store import Store, read_questions
from stp.campaign.tables import hidden_of
from stp.campaign.units import STAGE_TABLES, Unit
from stp.curves import Curves
from stp.ragged import offsets_of, row_of
from stp.signals import Signals

_PLAIN = ("end_logprob", "other_logprob", "other_id", "entropy", "end_entropy", "answer_entropy")


def load_signals(
    url: str | Path | Sequence[str | Path],
    *,
    model: str | None = None,
    allow_incomplete: bool = False,
) -> Signals:
    """Return the signals of one campaign, or of several together.

    Parameters
    ----------
    url, allow_incomplete
        As for :func:`stp.campaign.load_curves`.
    model
        Only this model's. Needed where models have hidden states of different layers or widths.

    Returns
    -------
    stp.signals.Signals
        Aligned with ``curves = load_curves(url)``, or with ``curves.select(curves.model == m)``
        where a model is named.

    Raises
    ------
    data.errors.MisuseError
        If signals were not read, the model is unknown, or models' hidden states do not go together.
    data.errors.StoreError
        If signals are incomplete, out of date or damaged.
    """
    curves = load_curves(url, allow_incomplete=allow_incomplete)
    if model is not None:
        if model not in curves.model_names:
            raise MisuseError(f"no model {model!r}; there are {', '.join(curves.model_names)}")
        curves = curves.select(curves.model == curves.model_names.index(model))
    gathered = _Gathered(curves)
    for item in [url] if isinstance(url, str | Path) else url:
        _gather(Store(item), gathered, model)
    return gathered.signals()


class _Gathered:
    """Shards' rows and where they belong among the curves."""

    def __init__(self, curves: Curves) -> None:
        self.curves = curves
        self.models = {name: index for index, name in enumerate(curves.model_names)}
        keys = zip(
            curves.model.tolist(), curves.question.tolist(), curves.sample.tolist(), strict=True
        )
        self.rows = {key: row for row, key in enumerate(keys)}
        owners = {
            question: curves.benchmark_names[benchmark]
            for question, benchmark in zip(
                curves.question.tolist(), curves.benchmark.tolist(), strict=True
            )
        }
        self.questions = {
            (owners[number], curves.question_names[number]): number for number in owners
        }
        self.found: list[npt.NDArray[np.int64]] = []
        self.columns: dict[str, list[npt.NDArray[Any]]] = {}
        self.hidden = _States()
        self.prompts: list[tuple[int, int]] = []
        self.prompt_hidden = _States()

    def add(self, name: str, values: npt.NDArray[Any]) -> None:
        self.columns.setdefault(name, []).append(values)

    def signals(self) -> Signals:
        curves = self.curves
        place = np.concatenate(self.found) if self.found else np.empty(0, np.int64)
        if place.size != curves.positions or np.unique(place).size != place.size:
            raise StoreError(
                f"{place.size:,} rows of signals for {curves.positions:,} positions of the curves; "
                "`stp signals FOLDER` reads those that are missing"
            )
        order = np.argsort(place)
        columns = {name: np.concatenate(parts)[order] for name, parts in self.columns.items()}
        pairs = np.array(self.prompts, np.int32).reshape(-1, 2)
        return Signals(
            trajectory_offsets=curves.trajectory_offsets,
            hidden={layer: states[order] for layer, states in self.hidden.joined().items()},
            prompt_model=pairs[:, 0],
            prompt_question=pairs[:, 1],
            prompt_hidden=self.prompt_hidden.joined(),
            **columns,
        )


@dataclass(slots=True)
class _States:
    """Hidden states by layer, shard after shard; all shards must have the same layers."""

    parts: dict[int, list[npt.NDArray[np.float16]]] = field(default_factory=dict)
    shape: dict[int, int] | None = None

    def add(self, states: dict[int, npt.NDArray[np.float16]]) -> None:
        shape = {layer: array.shape[1] for layer, array in states.items()}
        if self.shape is None:
            self.shape = shape
        elif self.shape != shape:
            raise MisuseError(
                "the models have hidden states of different layers or widths; load the signals of "
                "one model after the other (model=...)"
            )
        for layer, array in states.items():
            self.parts.setdefault(layer, []).append(array)

    def joined(self) -> dict[int, npt.NDArray[np.float16]]:
        return {layer: np.concatenate(arrays) for layer, arrays in self.parts.items()}


def _gather(store: Store, gathered: _Gathered, model: str | None) -> None:
    config, manifest = store.read_campaign()
    record = read_signals_record(store)
    if record is None:
        raise MisuseError(
            f"{store.url}: its signals were not read; do it with `stp signals {store.argument}`"
        )
    for cell in manifest.cells:
        if model not in (None, cell.model) or cell.model not in gathered.models:
            continue
        ids = read_questions(store, cell.cell)["question_id"].to_pylist()
        numbers = [gathered.questions.get((cell.benchmark, name), -1) for name in ids]
        for unit in store.plan(config, cell):
            trajectories = store.shard_info("trajectories", unit.shard("trajectories"))
            if trajectories is None:
                continue
            source = signal_source(unit, trajectories=trajectories.digest, settings=record.settings)
            _gather_unit(store, unit, source, numbers, gathered)


def _gather_unit(
    store: Store, unit: Unit, source: str, numbers: list[int], gathered: _Gathered
) -> None:
    """Take the rows of a unit that belong to the curves; a unit that is not read yet has none."""
    infos = {table: store.shard_info(table, unit.shard(table)) for table in STAGE_TABLES["signals"]}
    if any(info is None or info.source != source for info in infos.values()):
        return
    model = gathered.models[unit.cell.model]
    rows = store.read_shard("signals", unit.shard("signals"))
    prompts = store.read_shard("prompt_signals", unit.shard("prompt_signals"))
    keys = zip(rows["question"].to_pylist(), rows["trajectory"].to_pylist(), strict=True)
    owner = np.array(
        [gathered.rows.get((model, numbers[question], sample), -1) for question, sample in keys],
        np.int64,
    )
    kept = np.flatnonzero(owner >= 0)
    starts = gathered.curves.trajectory_offsets[owner[kept]]
    gathered.found.append(starts + rows["position"].to_numpy()[kept])
    for name in _PLAIN:
        gathered.add(name, rows[name].to_numpy()[kept])
    for name, values in trial_signals(rows["trial_logprobs"]).items():
        gathered.add(name, values[kept])
    if rows.num_rows:
        gathered.hidden.add({layer: array[kept] for layer, array in hidden_of(rows).items()})
    asked = [numbers[question] for question in prompts["question"].to_pylist()]
    there = [index for index, number in enumerate(asked) if number >= 0]
    gathered.prompts += [(model, asked[index]) for index in there]
    if prompts.num_rows:
        gathered.prompt_hidden.add(
            {layer: array[there] for layer, array in hidden_of(prompts).items()}
        )


def trial_signals(values: pa.ChunkedArray) -> dict[str, npt.NDArray[Any]]:
    """Return mean log-probability, mean probability and number of tokens of trial answers."""
    counts = pc.list_value_length(values).to_numpy().astype(np.int64)
    flat = pc.list_flatten(values).to_numpy().astype(np.float64)
    owner = row_of(offsets_of(counts))
    with np.errstate(invalid="ignore"):
        return {
            "trial_tokens": counts.astype(np.int32),
            "trial_logprob": np.bincount(owner, flat, counts.size) / counts,
            "trial_probability": np.bincount(owner, np.exp(flat), counts.size) / counts,
        }
