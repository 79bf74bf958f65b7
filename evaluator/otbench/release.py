"""Writing a release: campaigns frozen into tables that anyone can read.

A folder of Parquet files, a manifest with checksums and a dataset card; ``pandas.read_parquet`` of
any of the folders is enough to read it. A cell (a model on a benchmark) has a file of its own in
each folder. Questions' texts and references are not in it: they belong to their publishers. The
same campaigns give the same bytes: a release that is made again is the same release.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import MisuseError, StoreError
from data.progress import NOBODY, Progress
from evaluator.analysis.groups import recorded_groups
from evaluator.analysis.share_tables import share_notes, shares_of_campaigns
from evaluator.otbench.card import dataset_card
from evaluator.otbench.columns import SIGNAL_COLUMNS
from evaluator.otbench.gather import Gathered, gather
from evaluator.otbench.integrity import write_manifest
from evaluator.otbench.release_tables import (
    Division,
    QuestionKey,
    cell_rows,
    questions_table,
    write_cell,
    write_table,
)
from evaluator.otbench.splits import (
    SPLITS,
    SplitRule,
    check_fractions,
    check_splits,
    divide,
    prompt_digest,
)
from stp.files import write_durably
from stp.records import package_versions
from stp.signals import Signals

_PACKAGES = ("stp-engine", "numpy", "pandas", "pyarrow")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSummary:
    """What was written.

    Attributes
    ----------
    folder
        The release.
    checksum
        SHA-256 of its manifest.
    questions
        By split.
    trajectories, positions
        Counts.
    signals
        Names of the signals that all cells have; empty if there are none.
    notes
        What a reader must know: what is missing.
    """

    folder: Path
    checksum: str
    questions: dict[str, int]
    trajectories: int
    positions: int
    signals: tuple[str, ...]
    notes: tuple[str, ...]


def write_release(
    campaigns: Sequence[str],
    folder: Path,
    *,
    name: str = "",
    rule: SplitRule | None = None,
    allow_incomplete: bool = False,
    allow_empty_splits: bool = False,
    progress: Progress = NOBODY,
) -> ReleaseSummary:
    """Freeze graded campaigns into a release.

    Parameters
    ----------
    campaigns
        Their folders or URLs; a cell may be in one of them only.
    folder
        A new folder.
    name
        What it is called; the campaigns' names when left out.
    rule
        How questions are divided.
    allow_incomplete
        Take what is graded.
    allow_empty_splits
        Write it where a model has no questions in a split too: tables to read, which
        :func:`evaluator.otbench.session.run_methods` refuses.
    progress
        Told of the campaigns as they are read.

    Raises
    ------
    data.errors.MisuseError
        If the folder is not free, the campaigns do not go together, or a model has no questions
        in a split.
    data.errors.StoreError
        If a campaign is incomplete or damaged, or the folder cannot be written.
    """
    rule = rule or SplitRule()
    if not allow_empty_splits:
        check_fractions(rule)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MisuseError(f"{folder}: there is something already; a release needs a new folder")
    gathered = [
        gather(
            url,
            allow_incomplete=allow_incomplete,
            progress=progress.stage(f"reading {Path(url).name}"),
        )
        for url in campaigns
    ]
    _check_together(gathered)
    notes = [*share_notes(shares_of_campaigns(campaigns)), *_notes(gathered)]
    groups = recorded_groups(campaigns)
    kept, left_out = _common_questions(gathered)
    if left_out:
        notes.append(
            f"{left_out} questions are left out: not every model has them (prompts too long, or "
            "not graded)."
        )
    division = _divide(gathered, kept, rule)
    if not allow_empty_splits:
        notes += check_splits(_splits_of(gathered, division))
    with _appearing(folder) as partial:
        write_table(partial, "questions.parquet", questions_table(division, groups, rule))
        taken: set[str] = set()
        cells = []
        for item in gathered:
            for model in sorted({model for model, _ in item.asked}):
                mine, signals = _of_model(item, model), _signals_of(item, model)
                for benchmark in sorted(b for m, b in item.asked if m == model):
                    stem = _stem(model, benchmark, taken)
                    cells.append(
                        write_cell(partial, stem, mine, signals, model, benchmark, division)
                    )
        content = _content(name, campaigns, gathered, cells, rule, division, notes)
        write_durably(partial / "README.md", dataset_card(content).encode())
        checksum = write_manifest(partial, content)
    return ReleaseSummary(
        folder=folder,
        checksum=checksum,
        questions=content["questions"],
        trajectories=content["trajectories"],
        positions=content["positions"],
        signals=tuple(content["signals"]),
        notes=tuple(notes),
    )


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """Yield a folder to write in, which becomes ``folder`` at the end, or of which nothing is left.

    Existing folders are left as they were, also one of a stopped run or of another user under the
    temporary name.
    """
    missing = [parent for parent in folder.parents if not parent.exists()]
    partial: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = _fresh(folder)
        yield partial
        # An empty folder that was there gives way in the same step, or stays.
        partial.replace(folder)
    except BaseException as error:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
        for parent in missing:
            with suppress(OSError):
                parent.rmdir()
        if isinstance(error, OSError):
            raise StoreError(f"{folder}: the release cannot be written: {error}") from error
        raise


def _fresh(folder: Path) -> Path:
    """Make and return a new folder beside another one, of a name that was free."""
    for number in count(1):
        path = folder.with_name(f"{folder.name}.partial{'' if number == 1 else number}")
        with suppress(FileExistsError):
            path.mkdir()
            return path
    raise AssertionError("numbers do not end")


def _check_together(gathered: Sequence[Gathered]) -> None:
    steps = {item.store.read_config().probing.steps for item in gathered}
    if len(steps) > 1:
        raise MisuseError(
            "the campaigns cut steps by two rules (probing.steps = merged and causal); a release "
            "has one"
        )
    probes = {item.curves.probes for item in gathered}
    if len(probes) > 1:
        raise MisuseError(
            f"the campaigns have {' and '.join(map(str, sorted(probes)))} probes a position; a "
            "release needs the same number everywhere"
        )
    seen: dict[QuestionKey, str] = {}
    for item in gathered:
        for cell in item.asked:
            if cell in seen:
                raise MisuseError(
                    f"{cell[0]} on {cell[1]} is in {seen[cell]} and in {item.store.url}; a cell "
                    "can be taken from one campaign only"
                )
            seen[cell] = item.store.url


def _has_signals(item: Gathered) -> bool:
    return _signal_settings(item) is not None


def _signals_of(item: Gathered, model: str) -> Signals | None:
    """Return the signals of one model: models may have states of different layers and widths."""
    from stp.campaign.signal_reader import load_signals

    if not _has_signals(item):
        return None
    return load_signals(item.store.url, model=model, allow_incomplete=item.incomplete)


def _of_model(item: Gathered, model: str) -> Gathered:
    keep_s = item.curves.model == item.curves.model_names.index(model)
    keep_k = item.curves.spread(keep_s)
    return replace(
        item,
        curves=item.curves.select(keep_s),
        answers=item.answers[keep_k],
        hedged=item.hedged[keep_k],
        answer_tokens=item.answer_tokens[keep_k],
    )


def _notes(gathered: Sequence[Gathered]) -> list[str]:
    return [
        f"{item.store.url} has no signals: methods that need them cannot run; make them with `stp "
        f"signals {item.store.argument}` and release again."
        for item in gathered
        if not _has_signals(item)
    ]


def _common_questions(gathered: Sequence[Gathered]) -> tuple[set[QuestionKey], int]:
    """Return the questions that every model of their benchmark has, and how many are left out."""
    having: dict[str, list[set[QuestionKey]]] = {}
    for item in gathered:
        for model, benchmark in item.asked:
            names = {
                (benchmark, item.curves.question_names[q])
                for q in np.unique(
                    item.curves.question[cell_rows(item.curves, model, benchmark)]
                ).tolist()
            }
            having.setdefault(benchmark, []).append(names)
    kept = {key for sets in having.values() for key in set.intersection(*sets)}
    every = {key for sets in having.values() for key in set.union(*sets)}
    return kept, len(every) - len(kept)


def _divide(gathered: Sequence[Gathered], kept: set[QuestionKey], rule: SplitRule) -> Division:
    division = Division()
    for item in gathered:
        for questions in item.asked.values():
            for question in questions.values():
                key = (question.benchmark, question.question_id)
                if key in kept:
                    division.asked.setdefault(key, question)
    prompts: dict[str, list[str]] = {}
    for (benchmark, _), question in sorted(division.asked.items()):
        prompts.setdefault(benchmark, []).append(prompt_digest(question.prompt))
    splits = {name: iter(found) for name, found in divide(prompts, rule).items()}
    for key in sorted(division.asked):
        division.split[key] = next(splits[key[0]])
    return division


def _splits_of(gathered: Sequence[Gathered], division: Division) -> dict[str, dict[str, list[str]]]:
    """Return the splits of all questions, by model and benchmark."""
    found: dict[str, dict[str, list[str]]] = {}
    for item in gathered:
        for (model, benchmark), questions in sorted(item.asked.items()):
            keys = [(benchmark, name) for name in questions]
            inside = [division.split[key] for key in keys if key in division.split]
            found.setdefault(model, {})[benchmark] = inside
    return found


def _stem(model: str, benchmark: str, taken: set[str]) -> str:
    """Return a file name for a cell: readable, and unlike all others."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{model}--{benchmark}")[:120]
    name, count = f"{base}.parquet", 1
    while name.lower() in taken:
        count += 1
        name = f"{base}-{count}.parquet"
    taken.add(name.lower())
    return name


def _content(
    name: str,
    campaigns: Sequence[str],
    gathered: Sequence[Gathered],
    cells: list[dict[str, Any]],
    rule: SplitRule,
    division: Division,
    notes: list[str],
) -> dict[str, Any]:
    configs = [item.store.read_config() for item in gathered]
    manifests = [item.store.read_manifest() for item in gathered]
    counts = {split: list(division.split.values()).count(split) for split in SPLITS}
    shared = [set(cell["signals"]) for cell in cells]
    return {
        "name": name or " + ".join(dict.fromkeys(config.name for config in configs)),
        "probes": gathered[0].curves.probes,
        "questions": counts,
        "trajectories": sum(cell["trajectories"] for cell in cells),
        "positions": sum(cell["positions"] for cell in cells),
        "splits": {
            "train": str(rule.train),
            "validation": str(rule.validation),
            "seed": rule.seed,
            "stratified_by": "benchmark",
        },
        "signals": [n for n, _, _ in SIGNAL_COLUMNS if all(n in found for found in shared)],
        "notes": notes,
        "cells": cells,
        "campaigns": [
            {
                "name": config.name,
                "created": manifest.created,
                "config_hash": manifest.config_hash,
                "settings": manifest.settings,
                "steps": config.probing.steps,
                "signals": _signal_settings(item),
                "models": [
                    {
                        key: getattr(record, key)
                        for key in ("name", "revision", "weights_hash", "tokenizer_hash")
                    }
                    | {"family": record.family["name"]}
                    for record in manifest.models
                ],
                "checker_version": manifest.checker_version,
                "packages": manifest.packages,
            }
            for item, config, manifest in zip(gathered, configs, manifests, strict=True)
        ],
        "packages": package_versions(_PACKAGES),
    }


def _signal_settings(item: Gathered) -> dict[str, Any] | None:
    """Return how a campaign's signals were read; None if they were not."""
    from stp.campaign.signal_record import read_signals_record

    record = read_signals_record(item.store)
    return None if record is None else record.settings.model_dump(mode="json")
