"""Small campaigns, also with texts that try to be more than text."""

import base64
import json

import numpy as np
import pyarrow as pa

from evaluator.answers import CHECKER_VERSION
from stp.campaign.models import files_hash, tokenizer_folder
from stp.campaign.store import Store
from stp.campaign.tables import probe_source, verdict_source
from stp.campaign.units import questions_shard
from tests.otbench.campaigns import campaign

HOSTILE = (
    "<script>window.stolen = 1</script>",
    "<img src=x onerror='window.stolen = 1'>",
    "</script><script>window.stolen = 1</script>",
    "<!-- <svg/onload=window.stolen=1>",
    '"]);window.stolen=1;//',
    "javascript:window.stolen=1",
    "{{7*7}}${7*7}",
    "\u202egnirts \u2028 \u2029 \x00 \x1b[2J \ufeff",
    "<style>body{display:none}</style>",
    "&lt;b&gt;&#x3c;b&#x3e;",
)
"""What stands in questions, replies, answers and reasons of strangers."""

_TABLES = ("trajectories", "positions", "probes", "verdicts")


def hostile_campaign(folder):
    """Return a small campaign whose texts are hostile, as a folder."""
    url = campaign(folder, models=2, questions=(3, 2))
    store = Store(url)
    config, manifest = store.read_campaign()
    for model in {record.model for record in manifest.cells}:
        name = f"{tokenizer_folder(model)}/tokenizer.json"
        content = json.loads(store.read_bytes(name))
        words = HOSTILE[:2]
        content["model"]["vocab"] = {word: place for place, word in enumerate(words)}
        content["model"]["unk_token"] = words[0]
        content = json.dumps(content).encode()
        store.write_bytes(name, content)
        manifest.model_record(model).tokenizer_hash = files_hash([("tokenizer.json", content)])
    store.write_manifest(manifest)
    for record in manifest.cells:
        shard = questions_shard(record.cell)
        rows = store.read_shard("questions", shard)
        texts = [HOSTILE[place % len(HOSTILE)] for place in range(rows.num_rows)]
        for column in ("prompt", "reference"):
            rows = _with_column(rows, column, texts)
        store.write_shard("questions", shard, rows, source="")
        for unit in store.plan(config, record):
            _spoil(store, unit)
    return url


def _spoil(store, unit):
    """Let a unit's thinking and verdicts be hostile, and all that depends on them fit again."""
    shards = {table: store.read_checked(table, unit.shard(table)) for table in _TABLES}
    rows, info = shards["trajectories"]
    positions = shards["positions"][0].to_pandas()
    lengths = positions.groupby(["question", "trajectory"], sort=False)["tokens"].max()
    ids = [[place % 2 for place in range(length)] for length in lengths.tolist()]
    rows = _with_column(rows, "thinking_ids", ids)
    thought = store.write_shard(
        "trajectories", unit.shard("trajectories"), rows, source=info.source
    )
    source = probe_source(unit, trajectories=thought)
    store.write_shard("positions", unit.shard("positions"), shards["positions"][0], source=source)
    probed = store.write_shard("probes", unit.shard("probes"), shards["probes"][0], source=source)
    rows = shards["verdicts"][0]
    for column in ("answer", "reason"):
        rows = _with_column(
            rows, column, [HOSTILE[place % len(HOSTILE)] for place in range(rows.num_rows)]
        )
    source = verdict_source(trajectories=thought, probes=probed, checker_version=CHECKER_VERSION)
    store.write_shard("verdicts", unit.shard("verdicts"), rows, source=source)


def _with_column(rows, name, values):
    at = rows.schema.get_field_index(name)
    field = rows.schema.field(at)
    return rows.set_column(at, field, pa.array(values, field.type))


def columns_of(piece):
    """Return the columns of a cell's piece as lists of numbers."""
    return {
        name: np.frombuffer(base64.b64decode(packed), f"<{kind}").tolist()
        for name, (kind, packed) in piece["columns"].items()
    }


def naive_counts(reader, view):
    """Return the right probes at every position, counted one probe after the other."""
    return [
        sum(bool(probe.right) for probe in reader.probes_at(view, position))
        for position in range(len(view.tokens))
    ]


__all__ = ["HOSTILE", "campaign", "columns_of", "hostile_campaign", "naive_counts"]
