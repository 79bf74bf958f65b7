"""A synthetic world as a campaign's folder, in the format that a real run writes.

Everything that the analysis reads is there: positions, a verdict for every probe and original
answer, digests, manifest. What a model would have written is not: the prompt, the thinking and
most token-id columns are empty or one token long, and seeds are 0, so such a folder can be
analysed but its texts say nothing.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.simulation.worlds import Population, World
from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import CellRecord, ModelRecord, new_manifest, text_hash
from stp.campaign.models import files_hash, tokenizer_folder
from stp.campaign.row_counts import counted
from stp.campaign.store import Store
from stp.campaign.sum_up import sum_up
from stp.campaign.tables import (
    ORIGINAL,
    SCHEMAS,
    probe_source,
    trajectory_source,
    verdict_source,
)
from stp.campaign.units import Cell, TableName, Unit, questions_shard
from stp.curves import Curves
from stp.formats import get_family
from stp.ragged import IntArray, offsets_of

CHECKER_VERSION = "synthetic"
_WORDS = ("wrong", "right")
_ANSWER_LIMIT = 4_096

WorldColumns = dict[str, npt.NDArray[np.int64]]


def write_campaign(
    world: World,
    population: Population,
    url: str | Path,
    *,
    questions_per_unit: int = 4,
    progress: Progress = NOBODY,
) -> None:
    """Write a world as a graded campaign; :func:`stp.campaign.curves.load_curves` gives it back.

    Parameters
    ----------
    world, population
        From :func:`evaluator.simulation.worlds.make_world`, and what it was drawn from.
    url
        A new folder, or an fsspec URL.
    questions_per_unit
        How many questions' rows make a shard.
    progress
        Called with (shards' units written, all units).

    Raises
    ------
    data.errors.MisuseError
        If the folder holds something already.
    """
    store = Store(url)
    store.check_free()
    if store.is_campaign():
        raise MisuseError(f"{url}: there is a campaign already; choose a new folder")
    config = _config(population, questions_per_unit)
    store.write_config(config)
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(_WORDS)}, unk_token="wrong"))
    for model in population.models:
        path = f"{tokenizer_folder(model.name)}/tokenizer.json"
        store.write_bytes(path, tokenizer.to_str().encode())
    records = [
        _write_questions(store, model.name, benchmark.name, benchmark.questions)
        for model in population.models
        for benchmark in population.benchmarks
    ]
    units = [unit for record in records for unit in store.plan(config, record)]
    first = 0
    for done, unit in enumerate(units, start=1):
        _write_unit(store, unit, world, first)
        first += unit.trajectories
        progress(done, len(units))
    # Last, because a folder with a manifest is a campaign.
    manifest = new_manifest(config, _model_records(population, tokenizer), records)
    store.write_manifest(manifest)
    sum_up(store, config, manifest)


def _config(population: Population, questions_per_unit: int) -> CampaignConfig:
    return CampaignConfig.model_validate(
        {
            "name": "synthetic",
            "models": [{"path": model.name} for model in population.models],
            "benchmarks": [{"name": benchmark.name} for benchmark in population.benchmarks],
            "generation": {
                "trajectories": population.trajectories,
                "thinking_limit": population.thinking_limit,
            },
            "probing": {"step_tokens": population.step_tokens, "probes": population.probes},
            "shards": {"questions": questions_per_unit},
        }
    )


def _model_records(population: Population, tokenizer: Tokenizer) -> list[ModelRecord]:
    family = get_family("demo").model_dump(mode="json")
    return [
        ModelRecord(
            name=model.name,
            path=model.name,
            revision=None,
            weights_hash=text_hash(""),
            tokenizer_hash=files_hash([("tokenizer.json", tokenizer.to_str().encode())]),
            context_limit=2 * population.thinking_limit,
            family=family,
        )
        for model in population.models
    ]


def _write_questions(store: Store, model: str, benchmark: str, count: int) -> CellRecord:
    cell = Cell(model=model, benchmark=benchmark, questions=count)
    none = np.zeros(count, np.int64)
    rows = _table(
        "questions",
        cell,
        count,
        question=np.arange(count),
        question_id=[f"{benchmark}-{i + 1}" for i in range(count)],
        prompt=[f"Synthetic question {i + 1} of {benchmark}." for i in range(count)],
        reference="right",
        answer_kind="text",
        choices=_lists(none, none[:0], pa.string()),
        prompt_ids=_lists(none, none[:0]),
        fit="whole",
        thinking_limit=0,
    )
    digest = store.write_shard("questions", questions_shard(cell), rows, source="")
    return CellRecord(
        model=model, benchmark=benchmark, questions=count, shortened=0, too_long=0, digest=digest
    )


def _write_unit(store: Store, unit: Unit, world: World, first: int) -> None:
    """Write the shards of a unit whose trajectories start at row ``first`` of the world."""
    last = first + unit.trajectories
    curves, cut = world.curves.select(np.arange(first, last)), world.cut[first:last]
    each = unit.trajectory_stop - unit.trajectory_start
    question_s = np.repeat(np.arange(unit.question_start, unit.question_stop), each)
    keys_s: WorldColumns = {"question": question_s, "trajectory": curves.sample.astype(np.int64)}
    keys_k: WorldColumns = {
        "question": curves.spread(question_s),
        "trajectory": curves.spread(keys_s["trajectory"]),
        "position": curves.position_k,
    }
    right = _right_answers(curves)
    keys_p = {key: np.repeat(values, curves.probes) for key, values in keys_k.items()}
    keys_p["sample"] = np.tile(np.arange(curves.probes), curves.positions)

    def write(table: TableName, rows: pa.Table, source: str) -> str:
        return store.write_shard(table, unit.shard(table), counted(table, rows), source=source)

    trajectories = write(
        "trajectories", _trajectories(unit.cell, keys_s, curves, cut), trajectory_source(unit)
    )
    positions = _table("positions", unit.cell, curves.positions, **keys_k, tokens=curves.tokens)
    made_from = probe_source(unit, trajectories=trajectories)
    write("positions", positions, made_from)
    probes = write("probes", _probes(unit.cell, keys_p, right), made_from)
    made_from = verdict_source(
        trajectories=trajectories, probes=probes, checker_version=CHECKER_VERSION
    )
    own = {**keys_s, "position": np.full(question_s.size, ORIGINAL)}
    own["sample"] = np.zeros(question_s.size, np.int64)
    keys = {key: np.concatenate([own[key], keys_p[key]]) for key in keys_p}
    all_right = np.concatenate([curves.original_correct == 1, right])
    write("verdicts", _verdicts(unit.cell, keys, all_right), made_from)


def _right_answers(curves: Curves) -> npt.NDArray[np.bool_]:
    """Return which probes are right: the first C(k) at every position."""
    sample = np.arange(curves.probes)
    return (sample < curves.correct[:, np.newaxis]).reshape(-1)


def _trajectories(
    cell: Cell, keys: WorldColumns, curves: Curves, cut: npt.NDArray[np.bool_]
) -> pa.Table:
    count = curves.trajectories
    none = np.zeros(count, np.int64)
    answered = (~cut).astype(np.int64)
    return _table(
        "trajectories",
        cell,
        count,
        **keys,
        seed=0,
        thinking_ids=_lists(none, none[:0]),
        thinking_finish=_choice(cut, ("end", "limit")),
        answer_ids=_lists(answered, curves.original_correct[~cut]),
        answer_finish=_choice(cut, ("stop", "none")),
        answer_limit=_ANSWER_LIMIT,
    )


def _probes(cell: Cell, keys: WorldColumns, right: npt.NDArray[np.bool_]) -> pa.Table:
    return _table(
        "probes",
        cell,
        right.size,
        **keys,
        seed=0,
        answer_ids=_lists(np.ones(right.size, np.int64), right),
        finish="stop",
        answer_limit=_ANSWER_LIMIT,
    )


def _verdicts(cell: Cell, keys: WorldColumns, right: npt.NDArray[np.bool_]) -> pa.Table:
    return _table(
        "verdicts",
        cell,
        right.size,
        **keys,
        right=right,
        answer=_choice(right, _WORDS),
        reason="synthetic",
    )


def _table(name: TableName, cell: Cell, count: int, **columns: object) -> pa.Table:
    """Return a table of the store; a text or a single number stands for a column of its copies."""
    arrays = []
    columns = {"model": cell.model, "benchmark": cell.benchmark, **columns}
    for field in SCHEMAS[name]:
        values = columns[field.name]
        if isinstance(values, str | int):
            arrays.append(pa.repeat(pa.scalar(values, field.type), count))
        else:
            array = values if isinstance(values, pa.Array) else pa.array(values)
            arrays.append(array.cast(field.type))
    return pa.table(arrays, schema=SCHEMAS[name])


def _choice(which: npt.NDArray[np.bool_], words: tuple[str, str]) -> pa.Array:
    return pa.array(words).take(pa.array(which.astype(np.int64)))


def _lists(lengths: IntArray, values: npt.ArrayLike, kind: pa.DataType | None = None) -> pa.Array:
    """Return a column of lists of the given lengths, of token ids unless another kind is named."""
    offsets = offsets_of(lengths).astype(np.int32)
    content = pa.array(np.asarray(values).astype(np.int32)).cast(kind or pa.int32())
    return pa.ListArray.from_arrays(pa.array(offsets), content)
