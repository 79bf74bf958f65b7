"""Before a GPU hour is spent: whether everything fits, what is sent, what it will take.

Prompts are made and checked as in a run, each model is opened, and a short warm-up measures it: the
first unit of each cell, with thinking and answers cut short. What a whole campaign takes follows
from it: lengths are expectations from samples of which some were cut (the maximum-likelihood mean
of an exponential length: all tokens over the samples that ended), paces are those of the warm-up,
and the campaign's units are simulated at these paces to their last sample
(:mod:`stp.campaign.forecast`). Nothing is written where the campaign would go.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from data.errors import MisuseError
from stp.campaign.asks import answered
from stp.campaign.config import CampaignConfig
from stp.campaign.forecast import Forecast, WarmUp, forecast_of
from stp.campaign.jobs import GenerateJob, ProbeJob
from stp.campaign.manifest import CellRecord
from stp.campaign.pace import Clock, measured_pace
from stp.campaign.prepare import Prepared, Subject, make_subject, prepare_campaign
from stp.campaign.shares import CellShares
from stp.campaign.store import Store
from stp.campaign.tables import Work, content_digest, encode_shard
from stp.campaign.units import TableName, Unit, questions_shard
from stp.campaign.warm_up_shares import warm_up_shares
from stp.campaign.workers import EngineOpener
from stp.engines.base import Engine
from stp.engines.clock import Pace
from stp.tokenizers import backend, load_tokenizer

OPENING = r"\boxed{"
"""What opened answers begin with where a campaign names no opening."""

_FEW_PROBES = 4
_WARM_UP_TRAJECTORIES = 64
_WARM_UP_THINKING_TOKENS = 256
_WARM_UP_PROBES = 512
_WARM_UP_ANSWER_TOKENS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedWork:
    """What a stage of a cell is expected to take.

    Attributes
    ----------
    samples, tokens
        Samples, and the tokens generated in them.
    most_tokens
        The same if every sample reached its limit.
    seconds
        At the pace of the warm-up, in one process.
    bytes
        On the disk.
    """

    samples: int = 0
    tokens: int = 0
    most_tokens: int = 0
    seconds: float = 0.0
    bytes: int = 0

    def times(self, factor: float) -> "ExpectedWork":
        """Return the work of ``factor`` times as many samples."""
        return ExpectedWork(
            samples=round(self.samples * factor),
            tokens=round(self.tokens * factor),
            most_tokens=round(self.most_tokens * factor),
            seconds=self.seconds * factor,
            bytes=round(self.bytes * factor),
        )

    def __add__(self, other: "ExpectedWork") -> "ExpectedWork":
        return ExpectedWork(
            samples=self.samples + other.samples,
            tokens=self.tokens + other.tokens,
            most_tokens=self.most_tokens + other.most_tokens,
            seconds=self.seconds + other.seconds,
            bytes=self.bytes + other.bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlan:
    """What a cell would do.

    Attributes
    ----------
    record
        Its questions.
    first_id, first_text, first_ids
        The first prompt that fits, as it would be sent.
    longest_prompt_tokens
        The longest prompt that fits.
    longest_prefix_tokens
        The longest prefix that could be probed, with its answer.
    context_limit
        What they must fit.
    shortened_ids, too_long_ids
        Questions with less room than was asked for, and those that are not run.
    first_rows, mean_limit
        The first ``questions`` rows that fit, as many as a warm-up may ask; and the tokens that
        thinking may take, averaged over all that fit.
    warm_up_seconds, warm_up_ended, warm_up_trajectories
        How long the warm-up took, and how many of its trajectories ended by themselves.
    generate, probe
        What the stages are expected to take.
    other_probe
        What probing would take with answers of the other kind: opened with :data:`OPENING` where
        the campaign's are free, free where they are opened.
    turn_end
        The tokens that end an answer, by the place that names them.
    shares
        Which of the warm-up's rows may mislead.
    forecast
        What the cell takes to its last sample.
    """

    record: CellRecord
    first_id: str
    first_text: str
    first_ids: tuple[int, ...]
    longest_prompt_tokens: int
    longest_prefix_tokens: int
    context_limit: int
    shortened_ids: tuple[str, ...]
    too_long_ids: tuple[str, ...]
    first_rows: pa.Table
    mean_limit: float
    warm_up_seconds: float = 0.0
    warm_up_ended: int = 0
    warm_up_trajectories: int = 0
    generate: ExpectedWork = field(default_factory=ExpectedWork)
    probe: ExpectedWork = field(default_factory=ExpectedWork)
    other_probe: ExpectedWork = field(default_factory=ExpectedWork)
    turn_end: dict[str, tuple[str, ...]] = field(default_factory=dict)
    shares: CellShares | None = None
    forecast: Forecast | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunPlan:
    """What a campaign would do. ``free_bytes`` is None if the folder is not on a disk here."""

    cells: tuple[CellPlan, ...]
    free_bytes: int | None

    @property
    def total(self) -> ExpectedWork:
        """All stages of all cells."""
        total = ExpectedWork()
        for cell in self.cells:
            total = total + cell.generate + cell.probe
        return total

    def seconds(self, engines: int) -> tuple[float, float]:
        """Return the time of all cells on several engines, and how much of it empty rows cost."""
        runs = [cell.forecast.on(engines) for cell in self.cells if cell.forecast is not None]
        return sum(run.seconds for run in runs), sum(run.tail_seconds for run in runs)


def plan_campaign(
    config: CampaignConfig,
    *,
    open_model: EngineOpener,
    folder: str | Path | None = None,
    on_cell: Callable[[CellRecord], None] = lambda record: None,
    clock: Clock = time.monotonic,
) -> DryRunPlan:
    """Check a campaign and measure what it would take, without starting it.

    Parameters
    ----------
    config
        What would be done.
    open_model
        Opens an engine for a model.
    folder
        Where the campaign would go: its disk must have room.
    on_cell
        Called before each cell's warm-up.
    clock
        What seconds are taken from.

    Raises
    ------
    data.errors.MisuseError
        If something cannot fit: all prompts of a cell, the engine's context, the disk. Whatever a
        run refuses at its start is refused here too.
    """
    with tempfile.TemporaryDirectory(prefix="stp-dry-run-") as scratch:
        store = Store(scratch)
        prepared = prepare_campaign(store, config)
        cells = [
            cell
            for model in prepared.models
            for cell in _plan_model(store, prepared, model.name, open_model, on_cell, clock)
        ]
    plan = DryRunPlan(cells=tuple(cells), free_bytes=_free_bytes(folder))
    if plan.free_bytes is not None and plan.total.bytes > plan.free_bytes:
        raise MisuseError(
            f"the disk of {folder} has {plan.free_bytes / 1e9:.1f} GB free, and the campaign needs "
            f"about {plan.total.bytes / 1e9:.1f} GB; choose another folder or make room"
        )
    return plan


def _plan_model(
    store: Store,
    prepared: Prepared,
    name: str,
    open_model: EngineOpener,
    on_cell: Callable[[CellRecord], None],
    clock: Clock,
) -> list[CellPlan]:
    record = prepared.manifest.model_record(name)
    located = prepared.located(name)
    subject = make_subject(prepared.config, located, record)
    decode = backend(load_tokenizer(located.folder)).decode
    mine = [cell for cell in prepared.manifest.cells if cell.model == name]
    checked = [_check_cell(store, prepared.config, subject, cell, decode) for cell in mine]
    engine = open_model(name, located.folder)
    try:
        if engine.context_limit < record.context_limit:
            raise MisuseError(
                f"the engine gives {name} a context of {engine.context_limit} tokens, and the "
                f"campaign asks for {record.context_limit}; set generation.context_limit = "
                f"{engine.context_limit}"
            )
        plans = []
        pace: Pace | None = None
        for cell, plan in zip(mine, checked, strict=True):
            on_cell(cell)
            pace = pace or measured_pace(engine, plan.first_ids, clock=clock)
            plans.append(_warm_up(prepared.config, subject, cell, plan, engine, pace, clock))
        return plans
    finally:
        engine.close()


def _check_cell(
    store: Store,
    config: CampaignConfig,
    subject: Subject,
    record: CellRecord,
    decode: Callable[..., str],
) -> CellPlan:
    """Check every prompt of a cell, and every prefix that it can lead to, against the context."""
    room = _room(store, record)
    prompt_tokens = room["tokens"].to_numpy()
    fits = np.asarray(pc.not_equal(room["fit"], "too_long").to_numpy())
    if not fits.any():
        shortest = int(prompt_tokens.argmin())
        raise MisuseError(
            f"{record.model} on {record.benchmark}: no prompt fits the context of "
            f"{subject.context_limit} tokens with room for thinking and an answer (the shortest, "
            f"{room['question_id'][shortest].as_py()}, has {prompt_tokens[shortest]}); raise "
            "generation.context_limit or lower the answer limits"
        )
    answer_tokens = max(config.generation.answer_tokens, config.probing.answer_tokens)
    first_rows = _first_rows(store, record)
    first = first_rows.slice(0, 1).to_pylist()[0]
    fitting_tokens = prompt_tokens[fits]
    limits = room["thinking_limit"].to_numpy()[fits]
    longest = int((fitting_tokens + limits).max())

    def ids_of(kind: str) -> tuple[str, ...]:
        return tuple(room["question_id"].filter(pc.equal(room["fit"], kind)).to_pylist())

    return CellPlan(
        record=record,
        first_id=first["question_id"],
        first_text=decode(first["prompt_ids"], skip_special_tokens=False),
        first_ids=tuple(first["prompt_ids"]),
        longest_prompt_tokens=int(fitting_tokens.max()),
        longest_prefix_tokens=longest
        + len(subject.format.close_ids)
        + len(subject.opening_ids)
        + answer_tokens,
        context_limit=subject.context_limit,
        shortened_ids=ids_of("shortened"),
        too_long_ids=ids_of("too_long"),
        first_rows=first_rows,
        mean_limit=float(np.mean(limits)),
        turn_end={
            source: tuple(decode([token_id], skip_special_tokens=False) for token_id in ids)
            for source, ids in subject.format.turn_end.sources.items()
        },
    )


def _room(store: Store, record: CellRecord) -> pa.Table:
    """Return of a cell's questions what says how they fit; ``tokens`` are those of the prompt.

    Read in batches: all prompts of a large benchmark at once would be most of the memory.
    """
    columns = ["question_id", "fit", "thinking_limit", "prompt_ids"]
    batches = store.read_batches("questions", questions_shard(record.cell), columns)
    parts = [
        pa.table(
            {
                **{name: batch[name] for name in columns[:-1]},
                "tokens": pc.list_value_length(batch["prompt_ids"]).cast(pa.int64()),
            }
        )
        for batch in batches
    ]
    return pa.concat_tables(parts)


def _first_rows(store: Store, record: CellRecord) -> pa.Table:
    """Return the first questions of a cell that fit, as many as a warm-up may ask."""

    def fitting() -> Iterator[pa.RecordBatch]:
        found = 0
        for batch in store.read_batches("questions", questions_shard(record.cell), None):
            rows = batch.filter(pc.not_equal(batch["fit"], "too_long"))
            yield rows.slice(0, _WARM_UP_TRAJECTORIES - found)
            found += rows.num_rows
            if found >= _WARM_UP_TRAJECTORIES:
                return

    return pa.Table.from_batches(list(fitting()))


def _warm_up(
    config: CampaignConfig,
    subject: Subject,
    record: CellRecord,
    plan: CellPlan,
    engine: Engine,
    pace: Pace,
    clock: Clock,
) -> CellPlan:
    """Run a part of the cell's first unit, cut short, and extrapolate."""
    begin = clock()
    short, questions = _cut_short(config, plan.first_rows)
    asked = record.questions - record.too_long
    per_question = min(config.trajectories_per_unit, _WARM_UP_TRAJECTORIES)
    most = min(config.shards.questions, max(1, _WARM_UP_TRAJECTORIES // per_question))
    unit = Unit(
        cell=record.cell,
        number=0,
        question_start=0,
        question_stop=min(questions.num_rows, most),
        trajectory_start=0,
        trajectory_stop=per_question,
    )
    # What is compiled or allocated at the first call is not the pace of a campaign.
    one = replace(unit, question_stop=1, trajectory_stop=1)
    answered(GenerateJob(unit=one, questions=questions).ask(engine, subject, short, _quiet), engine)
    job = GenerateJob(unit=unit, questions=questions)
    trajectories, seconds = _timed(
        lambda: answered(job.ask(engine, subject, short, _quiet), engine), clock
    )
    thinking = _lengths(trajectories[0], "thinking_ids")
    answers = _lengths(trajectories[0], "answer_ids")
    ended = int(pc.sum(pc.not_equal(trajectories[0]["thinking_finish"], "limit")).as_py() or 0)
    thinks = _expected_length(thinking, ended, plan.mean_limit)
    closed = int(pc.sum(pc.equal(trajectories[0]["answer_finish"], "stop")).as_py() or 0)
    answer_limit = config.generation.answer_tokens
    replies = _expected_length(answers[answers > 0], closed, answer_limit)
    count = asked * config.generation.trajectories
    generated = int(count * (thinks + replies))
    made = int(thinking.sum() + answers.sum())
    generate = ExpectedWork(
        samples=2 * count if config.generation.mode == "thinking" else count,
        tokens=generated,
        most_tokens=int(count * (plan.mean_limit + answer_limit)),
        seconds=generated * seconds / max(1, made),
        bytes=_bytes("trajectories", trajectories[0], generated / max(1, made)),
    )
    probing = _ProbeWarmUp(
        config=config,
        short=short,
        unit=unit,
        questions=questions,
        trajectories=trajectories[0],
        engine=engine,
        count=count,
        thinks=thinks,
        clock=clock,
    )
    probe, answers_made, probing_seconds = probing.measured(subject)
    other, *_ = probing.measured(_otherwise(subject))
    warm_up = WarmUp(
        prompt_tokens=len(plan.first_ids),
        trajectories=trajectories[0],
        trajectories_seconds=seconds,
        per_question=per_question,
        probes=answers_made,
        probes_seconds=probing_seconds,
        thinking_limit=plan.mean_limit,
        generated_tokens=generated,
        probed_tokens=probe.tokens,
        positions=probe.samples / max(1, count * answers_per_position(config)),
    )
    return replace(
        plan,
        warm_up_seconds=clock() - begin,
        warm_up_ended=ended,
        warm_up_trajectories=len(thinking),
        generate=generate,
        probe=probe,
        other_probe=other,
        shares=warm_up_shares(
            config, short, subject, record, unit, questions, trajectories[0], answers_made
        ),
        forecast=forecast_of(config, record, engine, pace, warm_up),
    )


def answers_per_position(config: CampaignConfig) -> float:
    """Return how many answers a campaign's plan samples at a position, on average."""
    probing = config.probing
    return probing.probes if probing.plan == "uniform" else probing.share * probing.probes


def costs_of_plans(config: CampaignConfig, plan: DryRunPlan) -> dict[tuple[str, str], ExpectedWork]:
    """Return what probing is expected to take by plan and kind of answers.

    Returns
    -------
    dict
        By the plan in words, and ``"free"`` or ``"opened"`` answers. The adaptive plan is the
        campaign's, or the one that it would get by ``plan = "adaptive"`` alone; it is left out
        where the share would not pay for its first pass.
    """
    probing = config.probing
    share: dict[str, float] = {f"uniform {count}": count for count in (probing.probes, _FEW_PROBES)}
    spent = probing.share * probing.probes
    if probing.first_probes < spent:
        share[f"adaptive, {probing.share:.0%}"] = spent
    own = sum((cell.probe for cell in plan.cells), ExpectedWork())
    other = sum((cell.other_probe for cell in plan.cells), ExpectedWork())
    kinds = {"free": other, "opened": own} if probing.answer_opening else {}
    kinds = kinds or {"free": own, "opened": other}
    return {
        (name, kind): expected.times(count / answers_per_position(config))
        for name, count in share.items()
        if count <= probing.probes
        for kind, expected in kinds.items()
    }


def _otherwise(subject: Subject) -> Subject:
    """Return a subject whose probes' answers are opened where they were free, and free else."""
    opening = () if subject.opening_ids else subject.format.opening_ids(OPENING)
    return replace(subject, opening_ids=opening)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProbeWarmUp:
    """Probes a few of the warm-up's trajectories, and extrapolates to ``count`` of them."""

    config: CampaignConfig
    short: CampaignConfig
    unit: Unit
    questions: pa.Table
    trajectories: pa.Table
    engine: Engine
    count: int
    thinks: float
    clock: Clock

    def measured(self, subject: Subject) -> tuple[ExpectedWork, pa.Table, float]:
        """Return what probing is expected to take, the probes' rows, and their seconds."""
        probing, engine = self.config.probing, self.engine
        here = max(1, _WARM_UP_THINKING_TOKENS // probing.step_tokens + 1)
        few = self.trajectories.slice(0, max(1, _WARM_UP_PROBES // (probing.probes * here)))
        job = ProbeJob(unit=self.unit, questions=self.questions, trajectories=few)
        first = replace(job, trajectories=few.slice(0, 1))
        answered(first.ask(engine, subject, self.short, _quiet), engine)
        (positions, answers), seconds = _timed(
            lambda: answered(job.ask(engine, subject, self.short, _quiet), engine), self.clock
        )
        if self.config.generation.mode != "thinking" or not answers.num_rows:
            return ExpectedWork(), answers, seconds
        opened = len(subject.opening_ids)
        lengths = np.maximum(_lengths(answers, "answer_ids") - opened, 0)
        stopped = int(pc.sum(pc.equal(answers["finish"], "stop")).as_py() or 0)
        answer = _expected_length(lengths, stopped, probing.answer_tokens)
        # A step has the target length or more: there are no more steps than blocks. The position
        # before the first step is not one.
        steps_made = positions.num_rows - few.num_rows
        per_token = steps_made / max(1, int(_lengths(few, "thinking_ids").sum()))
        steps = min(self.thinks / probing.step_tokens, self.thinks * per_token)
        samples = int(self.count * (1 + steps) * answers_per_position(self.config))
        tokens = int(samples * answer)
        made = max(1, int(lengths.sum()))
        expected = ExpectedWork(
            samples=samples,
            tokens=tokens,
            most_tokens=samples * probing.answer_tokens,
            seconds=tokens * seconds / made,
            bytes=_bytes("probes", answers, tokens / made)
            + _bytes("positions", positions, samples / max(1, answers.num_rows)),
        )
        return expected, answers, seconds


def _cut_short(config: CampaignConfig, fitting: pa.Table) -> tuple[CampaignConfig, pa.Table]:
    """Return the campaign, and questions that fit, with the warm-up's limits."""
    index = fitting.schema.get_field_index("thinking_limit")
    limits = pc.min_element_wise(fitting["thinking_limit"], pa.scalar(_WARM_UP_THINKING_TOKENS))
    fitting = fitting.set_column(index, "thinking_limit", limits.cast(pa.int32()))
    # Rows are found by their number in the table.
    index = fitting.schema.get_field_index("question")
    fitting = fitting.set_column(index, "question", pa.array(range(fitting.num_rows), pa.int32()))
    return config.model_copy(
        update={
            "generation": config.generation.model_copy(
                update={
                    "thinking_limit": min(
                        config.generation.thinking_limit, _WARM_UP_THINKING_TOKENS
                    ),
                    "answer_tokens": min(config.generation.answer_tokens, _WARM_UP_ANSWER_TOKENS),
                }
            ),
            "probing": config.probing.model_copy(
                update={"answer_tokens": min(config.probing.answer_tokens, _WARM_UP_ANSWER_TOKENS)}
            ),
        }
    ), fitting


def _timed(
    work: Callable[[], tuple[pa.Table, ...]], clock: Clock
) -> tuple[tuple[pa.Table, ...], float]:
    begin = clock()
    made = work()
    return made, clock() - begin


def _quiet(fraction: float, samples: int, tokens: int = 0, /) -> None:
    """Show nothing: a warm-up is short."""


def _lengths(table: pa.Table, column: str) -> np.ndarray:
    return np.asarray(pc.list_value_length(table[column]).to_numpy(), dtype=np.int64)


def _expected_length(lengths: np.ndarray, ended: int, limit: float) -> float:
    """Return the expected length of samples up to a limit, from some of which only part is known.

    An exponential length with mean m that is cut at a limit c has the mean m (1 - exp(-c / m)).
    """
    if not len(lengths):
        return 0.0
    if not ended:
        return float(limit)
    mean = float(lengths.sum()) / ended
    if ended == len(lengths):
        return min(mean, float(limit))
    return float(mean * -np.expm1(-limit / mean)) if mean > 0 else 0.0


def _bytes(table: TableName, rows: pa.Table, factor: float) -> int:
    content = encode_shard(table, rows, digest=content_digest(rows), source="", work=Work())
    return int(len(content) * factor)


def _free_bytes(folder: str | Path | None) -> int | None:
    if folder is None or "://" in str(folder):
        return None
    path = Path(folder).expanduser().absolute()
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free
