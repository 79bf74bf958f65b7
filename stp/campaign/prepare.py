"""Before any model runs: find everything, check that it fits, and make or open the folder.

A campaign exists from the moment that its manifest is written, and that is the last thing here;
so whatever is wrong with a request is said before anything was spent on it.
"""

import contextlib
import logging
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from data import Benchmark, Question, get_benchmark
from data.errors import ConfigError, MisuseError, StoreError, StoreMismatchError, StpError
from data.prompts import Prompts
from evaluator.answers import check_reference
from stp.campaign.asked import check_questions, with_references
from stp.campaign.config import CampaignConfig
from stp.campaign.direct import fit_answer, unthinking_prompt_ids
from stp.campaign.fit import Fit, fit_prompt
from stp.campaign.growth import grown_lots
from stp.campaign.manifest import CellRecord, Manifest, ModelRecord, new_manifest
from stp.campaign.models import (
    LocatedModel,
    copy_tokenizer,
    locate_model,
    record_model,
    stored_tokenizer,
)
from stp.campaign.references import check_references, is_plain
from stp.campaign.sections import BenchmarkConfig
from stp.campaign.store import CONFIG, Store
from stp.campaign.tables import content_digest, make_table
from stp.campaign.units import Cell, questions_shard
from stp.engines.base import SamplingParameters
from stp.formats import ModelFamily, ThinkingFormat
from stp.formats.turn_end import require_turn_end
from stp.ragged import offsets_of
from stp.records import differences
from stp.segmentation import boundary_token_ids, content_token_ids
from stp.tokenizers import load_tokenizer

_LOG = logging.getLogger(__name__)

Ids = npt.NDArray[np.int32]
"""Token ids of a prompt, ``(tokens,)``."""

_MENDED_BOUNDARY_TOKENS = 2
"""Ids kept free beyond a boundary token's own for its text before the newlines, which stands for it
before the close. A vocabulary may spell a text in more; an answer there has less room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model as the stages see it: how it is prompted, and where its steps end.

    ``opening_ids`` is what of a probe's answer is written for it.
    """

    name: str
    format: ThinkingFormat
    boundary_ids: frozenset[int]
    content_ids: dict[int, tuple[int, ...]]
    sampling: SamplingParameters
    context_limit: int
    opening_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An open campaign: what the folder says, and where the models are on this machine."""

    config: CampaignConfig
    manifest: Manifest
    models: tuple[LocatedModel, ...]

    def located(self, name: str) -> LocatedModel:
        """Return a model's folder and family."""
        return next(model for model in self.models if model.name == name)


def prepare_campaign(store: Store, config: CampaignConfig, *, may_grow: bool = False) -> Prepared:
    """Open the campaign in a folder, or make it.

    The caller holds the folder's lock, alone where the campaign may grow.

    Raises
    ------
    data.errors.MisuseError
        If a model, a benchmark or a setting cannot be used, or the folder holds something else.
    data.errors.StoreMismatchError
        If the folder holds a campaign with another configuration or other weights.
    data.errors.StoreError
        If the folder cannot be written or read.
    """
    store.check_free()
    models = tuple(locate_model(model) for model in config.models)
    _check_samples_differ(config, models)
    # Without any row there is nothing that another configuration could be mixed with.
    if store.is_campaign() and store.has_rows():
        manifest = store.read_manifest()
        more = store.check_settings(config, manifest)
        _check_models(store, manifest, models, config)
        if more and not may_grow:
            raise MisuseError(
                f"{store.url}: the configuration asks for more than the campaign has; it grows "
                "when it is run whole: once without --shard, and for nothing but its rows"
            )
        if more:
            _grow(store, config, manifest, models)
        _mend_config(store, config)
        _mend_tokenizers(store, manifest, models)
        _check_questions(store, config, manifest, models)
    else:
        manifest = _create(store, config, models)
    return Prepared(config=config, manifest=manifest, models=models)


def _check_samples_differ(config: CampaignConfig, models: Sequence[LocatedModel]) -> None:
    """Refuse several samples of one prompt where all would be the same."""
    several = [
        f"{section}.{key} = {count}"
        for section, key, count in (
            ("generation", "trajectories", config.generation.trajectories),
            ("probing", "probes", config.probing.probes),
        )
        if count > 1
    ]
    for model in models:
        greedy = _sampling(config, model.family).greedy
        if greedy is not None and several:
            raise ConfigError(
                f"{model.name} is sampled with {greedy}, so that samples of one prompt are copies, "
                f"and {' and '.join(several)} would count copies as samples: set "
                "generation.trajectories and probing.probes to 1, or another [sampling]"
            )


def make_subject(config: CampaignConfig, model: LocatedModel, record: ModelRecord) -> Subject:
    """Return what the stages need to know of a model.

    Raises
    ------
    data.errors.MisuseError
        If its tokenizer cannot be used with its family, for instance without a thinking end.
    """
    tokenizer = load_tokenizer(model.folder)
    boundary_ids = boundary_token_ids(tokenizer)
    thinking_format = ThinkingFormat(model.family, tokenizer)
    require_turn_end(thinking_format.turn_end, model.name)
    return Subject(
        name=model.name,
        format=thinking_format,
        boundary_ids=boundary_ids,
        content_ids=content_token_ids(tokenizer, boundary_ids),
        sampling=_sampling(config, model.family),
        context_limit=record.context_limit,
        opening_ids=thinking_format.opening_ids(config.probing.answer_opening),
    )


def _sampling(config: CampaignConfig, family: ModelFamily) -> SamplingParameters:
    thinks = config.generation.mode == "thinking"
    own = family.sampling if thinks else family.sampling_off or family.sampling
    return replace(own, **config.sampling.model_dump(exclude_none=True))


def _create(store: Store, config: CampaignConfig, models: tuple[LocatedModel, ...]) -> Manifest:
    questions = {}
    for entry in config.benchmarks:
        benchmark, items = load_questions(entry, config.prompts.wording)
        check_references(benchmark.name, items)
        if benchmark.name in questions:
            raise MisuseError(
                f"two benchmarks are named {benchmark.name!r}; give each its own name"
            )
        questions[benchmark.name] = (benchmark, items)
    records = [
        record_model(model, context_limit=config.generation.context_limit) for model in models
    ]
    store.write_config(config)
    cells = []
    for model, record in zip(models, records, strict=True):
        subject = make_subject(config, model, record)
        copy_tokenizer(model, store)
        for benchmark, items in questions.values():
            rows = question_rows(config, subject, benchmark, items)
            _warn_of_control_tokens(subject, benchmark.name, items)
            cells.append(_write_questions(store, model.name, benchmark, rows))
    manifest = new_manifest(config, records, cells)
    store.write_manifest(manifest)
    return manifest


def load_questions(entry: BenchmarkConfig, prompts: Prompts) -> tuple[Benchmark, list[Question]]:
    """Return a benchmark and the questions asked for, in a campaign's wording.

    Raises
    ------
    data.errors.MisuseError
        If the benchmark is unknown, its questions cannot be read, or answers to one of them could
        not be judged.
    """
    benchmark = get_benchmark(entry.name)
    folder = Path(entry.data_dir).expanduser() if entry.data_dir is not None else None
    questions = benchmark.load(data_dir=folder, limit=entry.limit)
    for question in questions:
        if not is_plain(question):
            check_reference(question)
    benchmark = replace(benchmark, instruction=prompts.instruction(benchmark.instruction))
    return benchmark, questions


def question_rows(
    config: CampaignConfig, subject: Subject, benchmark: Benchmark, questions: list[Question]
) -> pa.Table:
    """Return the ``questions`` rows of a cell: prompts as ids, and how each fits the context."""
    make = _thinking_prompts if config.generation.mode == "thinking" else _unthinking_prompts
    prompts, fits = make(config, subject, benchmark, questions)
    count = len(questions)
    return make_table(
        "questions",
        {
            "model": [subject.name] * count,
            "benchmark": [benchmark.name] * count,
            "question": list(range(count)),
            "question_id": [question.id for question in questions],
            "prompt": [question.prompt for question in questions],
            "reference": [question.reference for question in questions],
            "answer_kind": [question.answer_kind for question in questions],
            "choices": [list(question.choices) for question in questions],
            "prompt_ids": prompts,
            "fit": [fit.kind for fit in fits],
            "thinking_limit": [fit.thinking_limit for fit in fits],
        },
    )


def _ids_column(prompts: Iterable[Ids]) -> tuple[pa.ListArray, list[int]]:
    """Return prompts as a column, and their lengths.

    The prompts of a large benchmark are in memory once: as Python numbers they take gigabytes.
    """
    values, lengths = array("i"), []
    for prompt in prompts:
        values.frombytes(prompt.tobytes())
        lengths.append(len(prompt))
    offsets = offsets_of(lengths).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, np.frombuffer(values, np.int32)), lengths


def _thinking_prompts(
    config: CampaignConfig, subject: Subject, benchmark: Benchmark, questions: list[Question]
) -> tuple[pa.ListArray, list[Fit]]:
    closing_tokens = (
        len(subject.format.close_ids) + len(subject.opening_ids) + _MENDED_BOUNDARY_TOKENS
    )
    asked = [question.prompt for question in questions]
    prompts, lengths = _ids_column(subject.format.prompts_ids(asked, benchmark.instruction))
    fits = [
        fit_prompt(
            length,
            closing_tokens=closing_tokens,
            thinking_limit=config.generation.thinking_limit,
            answer_tokens=max(config.generation.answer_tokens, config.probing.answer_tokens),
            context_limit=subject.context_limit,
        )
        for length in lengths
    ]
    _check_room(config, subject, benchmark.name, lengths, fits, closing_tokens)
    return prompts, fits


def _unthinking_prompts(
    config: CampaignConfig, subject: Subject, benchmark: Benchmark, questions: list[Question]
) -> tuple[pa.ListArray, list[Fit]]:
    mode = config.generation.mode
    prompts, lengths = _ids_column(
        np.array(
            unthinking_prompt_ids(
                mode, subject.format, benchmark, question, config.prompts.wording
            ),
            np.int32,
        )
        for question in questions
    )
    fits = [
        fit_answer(
            length,
            answer_tokens=config.generation.answer_tokens,
            context_limit=subject.context_limit,
        )
        for length in lengths
    ]
    return prompts, fits


def _check_room(
    config: CampaignConfig,
    subject: Subject,
    benchmark: str,
    lengths: Sequence[int],
    fits: Sequence[Fit],
    closing_tokens: int,
) -> None:
    """Refuse a cell in which no question has room to think: its curves would mean nothing."""
    if not fits or any(fit.kind != "too_long" for fit in fits):
        return
    shortest, longest = min(lengths), max(lengths)
    answer = max(config.generation.answer_tokens, config.probing.answer_tokens)
    room = subject.context_limit - longest - closing_tokens
    advice = "take a model with a longer context"
    if subject.context_limit == config.generation.context_limit:
        advice = "raise generation.context_limit"
    if room > 1:
        advice = (
            "lower answer_tokens under [generation] and [probing], or --answer-tokens (together "
            f"with the thinking they must stay below {room:,}), or {advice}"
        )
    raise MisuseError(
        f"{subject.name} on {benchmark}: no room to think: of a context of "
        f"{subject.context_limit:,} tokens, the prompts take {shortest:,} or more, the end of the "
        f"thinking {closing_tokens:,} and answer_tokens {answer:,}; {advice}"
    )


def _warn_of_control_tokens(subject: Subject, benchmark: str, questions: list[Question]) -> None:
    """Say which questions hold text that the model reads as its own markers."""
    held = [
        (question.id, token)
        for question in questions
        if (token := subject.format.control_token_in(question.prompt)) is not None
    ]
    if held:
        _LOG.warning(
            "%s on %s: %d questions hold text that the model reads as a control token, such as %s "
            "in %s",
            subject.name,
            benchmark,
            len(held),
            held[0][1],
            held[0][0],
        )


def _write_questions(store: Store, model: str, benchmark: Benchmark, rows: pa.Table) -> CellRecord:
    cell = Cell(model=model, benchmark=benchmark.name, questions=rows.num_rows)
    digest = store.write_shard("questions", questions_shard(cell), rows, source="")
    return _cell_record(model, benchmark, rows, digest=digest)


def _cell_record(model: str, benchmark: Benchmark, rows: pa.Table, *, digest: str) -> CellRecord:
    kinds = rows["fit"].to_pylist()
    record = CellRecord(
        model=model,
        benchmark=benchmark.name,
        questions=rows.num_rows,
        shortened=kinds.count("shortened"),
        too_long=kinds.count("too_long"),
        digest=digest,
        group=benchmark.group,
    )
    if record.shortened or record.too_long:
        limits = [limit for limit in rows["thinking_limit"].to_pylist() if limit]
        _LOG.warning(
            "%s on %s: of %d prompts, %d leave less room in the context than was asked for%s and "
            "are marked as shortened, %d are too long and are not run",
            model,
            benchmark.name,
            record.questions,
            record.shortened,
            f" (for thinking, {min(limits)} tokens or more)" if limits else "",
            record.too_long,
        )
    return record


def _check_models(
    store: Store, manifest: Manifest, models: tuple[LocatedModel, ...], config: CampaignConfig
) -> None:
    """Refuse models that are not the ones that the campaign was made with."""
    for model in models:
        stored = manifest.model_record(model.name)
        found = record_model(model, context_limit=config.generation.context_limit)
        if (what := stored.difference(found)) is not None:
            was, now = getattr(stored, what), getattr(found, what)
            values = f": {was} in the folder and {now} now" if what != "family" else ""
            raise StoreMismatchError(
                f"{store.url}: the model {model.name!r} in {model.folder} is not the one of "
                f"this campaign (its {what} differs{values}); give the run a folder of its own"
            )
        _check_turn_end(store, stored, found)


def _check_turn_end(store: Store, stored: ModelRecord, found: ModelRecord) -> None:
    """Refuse a model whose answers would end elsewhere than those in the folder.

    Campaigns from before this was recorded ended answers at the tokens of family and tokenizer.
    """
    now = {token_id for ids in found.turn_end.values() for token_id in ids}
    before = {token_id for ids in stored.turn_end.values() for token_id in ids}
    if not stored.turn_end:
        names = ("family", "tokenizer")
        before = {token_id for name in names for token_id in found.turn_end.get(name, ())}
    if before != now:
        raise StoreMismatchError(
            f"{store.url}: answers of {stored.name!r} ended at the token ids {sorted(before)} when "
            f"this campaign began, and would end at {sorted(now)} now (generation_config.json, "
            "config.json or this release differ); give the run a folder of its own"
        )


def _mend_config(store: Store, config: CampaignConfig) -> None:
    """Write again a campaign file that is gone, damaged or changed; the settings are checked."""
    with contextlib.suppress(StpError):
        store.read_campaign()
        return
    store.write_config(config)
    _LOG.warning("%s/%s was not the campaign's and is written again", store.url, CONFIG)


def _mend_tokenizers(store: Store, manifest: Manifest, models: tuple[LocatedModel, ...]) -> None:
    """Copy again tokenizers that are gone or damaged; that the models have the same is checked."""
    for model in models:
        try:
            stored_tokenizer(store, manifest.model_record(model.name))
        except StoreError:
            copy_tokenizer(model, store)
            _LOG.warning("%s: the tokenizer of %s is copied again", store.url, model.name)


def _grow(
    store: Store, config: CampaignConfig, manifest: Manifest, models: tuple[LocatedModel, ...]
) -> None:
    """Write down what a campaign is to have from now on; what is there is kept.

    The manifest is written after the questions: if killed in between, the same command does it
    again.
    """
    loaded = _loaded(config)
    cells = []
    for record in manifest.cells:
        model = next(model for model in models if model.name == record.model)
        subject = make_subject(config, model, manifest.model_record(model.name))
        benchmark, items = loaded[record.benchmark]
        check_references(benchmark.name, items)
        rows = question_rows(config, subject, benchmark, items)
        check_questions(store, record, rows.slice(0, record.questions))
        found = _cell_record(model.name, benchmark, rows, digest=content_digest(rows))
        mended = with_references(rows, record.references)
        lots = grown_lots(config, manifest, record, questions=rows.num_rows, digest=found.digest)
        update = {
            "references": record.references,
            "mendings": record.mendings,
            "mended_digest": content_digest(mended) if record.references else "",
            "lots": lots,
        }
        cells.append(found.model_copy(update=update))
        if rows.num_rows > record.questions:
            store.write_shard("questions", questions_shard(found.cell), mended, source="")
    phrases = differences(manifest.settings, config.settings())
    manifest.cells, manifest.settings = cells, config.settings()
    manifest.config_hash = config.content_hash()
    store.write_manifest(manifest)
    store.write_config(config)
    _LOG.warning("%s grows, and keeps what it has: %s", store.url, "; ".join(phrases))


def _loaded(config: CampaignConfig) -> dict[str, tuple[Benchmark, list[Question]]]:
    """Return the benchmarks of a campaign with the questions asked for, by name."""
    return {
        benchmark.name: (benchmark, items)
        for entry in config.benchmarks
        for benchmark, items in [load_questions(entry, config.prompts.wording)]
    }


def _check_questions(
    store: Store, config: CampaignConfig, manifest: Manifest, models: tuple[LocatedModel, ...]
) -> None:
    """Refuse questions that are not those of the campaign any more."""
    loaded = _loaded(config)
    for model in models:
        subject = make_subject(config, model, manifest.model_record(model.name))
        for record in manifest.cells:
            if record.model == model.name:
                benchmark, items = loaded[record.benchmark]
                check_questions(store, record, question_rows(config, subject, benchmark, items))
