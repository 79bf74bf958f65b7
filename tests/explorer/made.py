"""Small campaigns, also with texts that try to be more than text."""

import json

from stp.campaign.models import files_hash, tokenizer_folder
from stp.campaign.store import Store
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
            at = rows.schema.get_field_index(column)
            rows = rows.set_column(at, rows.schema.field(at), [texts])
        store.write_shard("questions", shard, rows, source="")
        for unit in store.plan(config, record):
            _spoil_verdicts(store, unit)
    return url


def _spoil_verdicts(store, unit):
    name = unit.shard("verdicts")
    rows, info = store.read_checked("verdicts", name)
    answers = [HOSTILE[place % len(HOSTILE)] for place in range(rows.num_rows)]
    for column in ("answer", "reason"):
        at = rows.schema.get_field_index(column)
        rows = rows.set_column(at, rows.schema.field(at), [answers])
    store.write_shard("verdicts", name, rows, source=info.source)


def naive_counts(reader, view):
    """Return the right probes at every position, counted one probe after the other."""
    return [
        sum(bool(probe.right) for probe in reader.probes_at(view, position))
        for position in range(len(view.tokens))
    ]


__all__ = ["HOSTILE", "campaign", "hostile_campaign", "naive_counts"]
