"""The dataset card of a release: what a reader of the folder sees first."""

import json
from typing import Any

from evaluator.otbench.columns import COLUMNS, SIGNAL_COLUMNS
from evaluator.present.names import visible

_HEAD = """---
license: other
task_categories:
- text-generation
tags:
- reasoning
- overthinking
- early-exit
- stp
pretty_name: {quoted}
configs:
{configs}
---

# {name}

Frozen measurements of step-wise truncation probing, for comparing methods that end a reasoning
model's thinking. For every sampled reasoning (a trajectory), it holds the thinking tokens kept at
each step boundary, L(k), and how many of {probes} answers sampled there were right, C(k), with the
signals that such methods read.

{counts}

Read it with pandas alone:

```python
import pandas as pd

positions = pd.read_parquet("positions")        # L(k), C(k), signals; one row a position
questions = pd.read_parquet("questions.parquet")  # benchmark, split
test = positions.merge(questions.query("split == 'test'"), on=["benchmark", "question_id"])
```

or evaluate methods on it: `stp otbench run FOLDER`. On load, every file is checked against
`manifest.json`.
"""


def dataset_card(content: dict[str, Any]) -> str:
    """Return the card's Markdown for a manifest's content."""
    tables = ["trajectories", "positions", "answers", "prompts"]
    if any(cell["layers"] for cell in content["cells"]):
        tables.append("hidden")
    configs = "\n".join(
        ["- config_name: questions\n  data_files: questions.parquet"]
        + [f"- config_name: {table}\n  data_files: {table}/*.parquet" for table in tables]
    )
    questions = content["questions"]
    counts = (
        f"{len(content['cells'])} cells (a model on a benchmark), {sum(questions.values()):,} "
        f"questions, {content['trajectories']:,} trajectories, {content['positions']:,} positions."
    )
    head = _HEAD.format(
        name=_plain(content["name"]),
        quoted=json.dumps(_plain(content["name"])),
        configs=configs,
        probes=content["probes"],
        counts=counts,
    )
    return "\n".join(
        [
            head,
            *_cells(content),
            *_splits(content),
            *_tables(content, tables),
            *_notes(content),
        ]
    )


def _cells(content: dict[str, Any]) -> list[str]:
    lines = ["## Cells", "", "| model | benchmark | questions | trajectories | layers |"]
    lines.append("| --- | --- | ---: | ---: | --- |")
    for cell in content["cells"]:
        layers = ", ".join(map(str, cell["layers"])) or "none"
        lines.append(
            f"| {_plain(cell['model'])} | {_plain(cell['benchmark'])} | {cell['questions']:,} "
            f"| {cell['trajectories']:,} | {layers} |"
        )
    return [*lines, ""]


def _splits(content: dict[str, Any]) -> list[str]:
    questions, rule = content["questions"], content["splits"]
    return [
        "## Splits",
        "",
        "By question, with all its trajectories and models together: "
        f"{questions['train']:,} train, {questions['validation']:,} validation, "
        f"{questions['test']:,} test. Within each benchmark "
        f"the questions are put in the order of a digest of the seed ({rule['seed']}) and the "
        f"question's text, and cut after {rule['train']} and a further {rule['validation']}. "
        "Questions with the same text are never on two sides. Thresholds are chosen on validation "
        "questions; test questions are for the final figures only.",
        "",
    ]


def _tables(content: dict[str, Any], tables: list[str]) -> list[str]:
    lines = ["## Tables", ""]
    for table in ["questions", *tables]:
        place = "questions.parquet" if table == "questions" else f"{table}/"
        lines += [f"`{place}`", "", "| column | type | meaning |", "| --- | --- | --- |"]
        columns = list(COLUMNS[table])
        if table == "positions":
            columns += [c for c in SIGNAL_COLUMNS if c[0] in content["signals"]]
        lines += [f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning in columns]
        if table in ("prompts", "hidden"):
            where = "last prompt token" if table == "prompts" else "prefix's last token"
            lines.append(f"| `layer_i` | halffloat list | hidden state of layer i at the {where} |")
        lines.append("")
    return lines


def _notes(content: dict[str, Any]) -> list[str]:
    fixed = [
        "The questions' texts and references are not here; they keep their publishers' licences. "
        "Answers are model output: do not trust them.",
        "Log-probabilities and entropies are the model's own (temperature 1, no nucleus).",
        "Sampling settings of every campaign, hashes of models and tokenizers, and package "
        "versions are in `manifest.json`.",
    ]
    notes = [f"- {_plain(note)}" for note in [*fixed, *content["notes"]]]
    return ["## To know", "", *notes, ""]


def _plain(text: str) -> str:
    """Return an untrusted text on one line, so that it breaks neither a table nor the head."""
    line = " ".join(visible(text, 400).split())
    return "".join(f"\\{c}" if c in "|<>`*[]\\" else c for c in line)
