"""A data set of OvT-General on disk: questions, what was dropped, statistics, and a card."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.optimal.general import QUESTIONS_FILE
from evaluator.optimal.recipe import Built, Recipe, statistics
from stp.files import json_bytes, json_lines, write_durably

if TYPE_CHECKING:
    Described = Mapping[str, Mapping[str, Any]]

DROPPED_FILE = "dropped.jsonl"
STATISTICS_FILE = "statistics.json"
CARD_FILE = "README.md"


def write_data_set(folder: Path, recipe: Recipe, built: Built, models: "Described") -> None:
    """Write the files of a data set.

    Parameters
    ----------
    folder
        Where to.
    recipe, built
        What was asked for, and what came of it.
    models
        What each of the three responders says of itself.

    Raises
    ------
    data.errors.StoreError
        If they cannot be written.
    """
    counts = statistics(built)
    # A data set is for others: where a model was served from is nobody's concern.
    models = {
        role: {key: value for key, value in said.items() if key not in ("base_url", "path")}
        for role, said in models.items()
    }
    files = {
        QUESTIONS_FILE: json_lines(question.as_row() for question in built.questions),
        DROPPED_FILE: json_lines(asdict(item) for item in built.dropped),
        STATISTICS_FILE: json_bytes({**counts, "models": dict(models)}, indent=1) + b"\n",
        CARD_FILE: card(recipe, built, counts, models).encode(),
    }
    for name, content in files.items():
        write_durably(folder / name, content)


def card(recipe: Recipe, built: Built, counts: Mapping[str, Any], models: "Described") -> str:
    """Return the data set's card: front matter as the hub reads it, then what it is."""
    total = counts["questions"]
    kinds = "\n".join(f"| {kind} | {n} |" for kind, n in counts["by_answer_type"].items())
    losses = "\n".join(f"| {stage} | {n} |" for stage, n in counts["dropped"].items())
    who = "\n".join(
        f"- {role}: `{json.dumps(dict(described), ensure_ascii=False)}`"
        for role, described in models.items()
    )
    agreed = built.agreement
    repeats = (
        f"Of {agreed.cases} answers judged {recipe.judge_repeats} times, {agreed.unanimous} got "
        f"the same verdict throughout ({agreed.agreeing_pairs} of {agreed.pairs} pairs agree)."
        if agreed.cases
        else "Each answer was judged once."
    )
    size = "n<1K" if total < 1000 else "1K<n<10K" if total < 10_000 else "10K<n<100K"
    return f"""---
pretty_name: OvT-General
task_categories: [question-answering]
language: [en]
size_categories: ["{size}"]
configs:
- config_name: default
  data_files: {QUESTIONS_FILE}
---

# OvT-General: simple questions that need no thinking

{total} questions in {len(counts["by_domain"])} domains, made by the recipe of OptimalThinkingBench
(arXiv 2508.13141, section 2.1) with STP Engine. Written, answered and judged by models, not by
people: expect a few wrong references.

## What is in it

`{QUESTIONS_FILE}`: one object a line with `id`, `domain`, `discipline`, `answer_type`, `question`,
`options`, `answer` and `provenance` (models, reply, round, seed, hash of the prompt, how many
answers agreed and how many of these by rule). `{DROPPED_FILE}` holds what was left out, with
reasons; `{STATISTICS_FILE}` all counts; `replies/` every reply of the three models.

| answer type | questions |
| --- | ---: |
{kinds}

## How it was made

For each of {len(recipe.pairs())} pairs of a domain and an answer type up to {recipe.per_pair}
questions were asked for, in at most {recipe.rounds} rounds ({built.rounds} were needed). Each that
passed the format checks and repeated no other was answered {recipe.k} times; it stayed only if all
{recipe.k} answers agree with its reference. {built.by_rule} answers were decided by rule,
{built.by_judge} by the judge. {repeats}

| dropped by | count |
| --- | ---: |
{losses}

Models:

{who}

## Licence

The questions are output of the models above; their terms apply.
"""
