"""What a campaign will take: its units through the driver's own stream, over engines with a clock.

The jobs ask for trees of the shape that real ones ask for, with lengths drawn from a sample; the
engines count the time (:mod:`stp.engines.clock`). So what is begun when, and how long the last
samples leave rows empty, is decided by the code that will decide it in the run.

A campaign may have tens of millions of samples. The middle of it is all alike: enough units are
simulated for the beginning and the end, and what lies between goes at the pace of full rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pyarrow as pa

from data.errors import MisuseError
from stp.campaign.asks import Ask, Asking
from stp.campaign.backlog import Backlog
from stp.campaign.config import CampaignConfig
from stp.campaign.prepare import Subject
from stp.campaign.stream import Stream, may_wait
from stp.campaign.tables import Work
from stp.campaign.trajectories import OnProgress
from stp.campaign.units import Cell, Stage, Unit
from stp.engines.base import AnyTree, Branch, Engine, PromptTree
from stp.engines.clock import STEPS, ClockEngine, Pace
from stp.ragged import IntArray

_LENGTHS = 1 << 16
"""Lengths drawn for each kind of sample; samples share them by their seeds."""

_ROUNDS = 200
_LEAST_SAMPLES = 30_000
"""Simulated of a load that is too large to be simulated whole: samples for each row, and in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked of a model on a benchmark.

    Attributes
    ----------
    units
        Number of units.
    questions, trajectories
        Of a unit.
    prompt_tokens
        Of a question.
    thinking_tokens, answer_tokens, probe_tokens
        Samples of the lengths of thinkings, original answers and probes; int arrays. Without
        probes the last may be empty.
    step_tokens
        Thinking tokens between two positions.
    probes
        Samples at a position.
    """

    units: int
    questions: int
    trajectories: int
    thinking_tokens: IntArray
    answer_tokens: IntArray
    probe_tokens: IntArray
    step_tokens: int = 256
    probes: int = 16
    prompt_tokens: int = 150

    @property
    def unit_samples(self) -> float:
        """Samples that a unit is expected to have."""
        return self.questions * self.trajectories * (2 + self._positions * self.probes)

    @property
    def _positions(self) -> float:
        if not len(self.probe_tokens):
            return 0.0
        return float(np.mean(1 + self.thinking_tokens // self.step_tokens))

    @property
    def _probed(self) -> float:
        return self._positions * self.probes * _mean(self.probe_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What a simulated run took.

    Attributes
    ----------
    seconds
        Until the last engine was done.
    steps
        Of the engine that took the most.
    mean_rows
        Rows in use, averaged over the steps of all engines.
    tokens
        Generated.
    tail_seconds
        How much longer than if all rows of all engines had been in use to the end.
    most_units
        Units under way at once at most, over all engines.
    """

    seconds: float
    steps: int
    mean_rows: float
    tokens: int
    tail_seconds: float
    most_units: int


class _Lengths:
    """Lengths by seed: a seed names the kind of a sample and a place among those drawn."""

    def __init__(self, load: Load, seed: int) -> None:
        draws = np.random.default_rng(seed)
        kinds = (load.thinking_tokens, load.answer_tokens, load.probe_tokens)
        self._tables = [
            draws.choice(kind, _LENGTHS) if len(kind) else np.ones(1, np.int64) for kind in kinds
        ]

    def seed(self, kind: int, number: int) -> int:
        """Return the seed of a sample: kind 0 thinks, 1 answers, 2 probes."""
        return 3 * number + kind

    def __call__(self, seed: int) -> int:
        table = self._tables[seed % 3]
        return int(table[seed // 3 % len(table)])


@dataclass(frozen=True, slots=True)
class _ShadowJob:
    """Asks for trees of the shape of a unit's, and has no rows."""

    unit: Unit
    stage: Stage
    load: Load
    lengths: _Lengths

    def ask(
        self, engine: Engine, subject: Subject, config: CampaignConfig, on_progress: OnProgress
    ) -> Asking[tuple[pa.Table, ...]]:
        """Ask, and have no rows."""
        yield from self.asks()
        return ()

    def asks(self) -> Iterator[Ask]:
        """Yield what is asked, phase after phase."""
        load, of = self.load, self.lengths
        count = load.questions * load.trajectories
        first = self.unit.number * count
        numbers = range(first, first + count)
        prompt = (0,) * load.prompt_tokens
        if self.stage == "probe":
            yield Ask([self._probe_tree(number) for number in numbers], _quiet)
        elif load.thinking_tokens.any():
            yield Ask(self._by_question(prompt, numbers, 0), _quiet)
            yield Ask([_tree((0,), (1,), (of.seed(1, n),)) for n in numbers], _quiet)
        else:
            yield Ask(self._by_question(prompt, numbers, 1), _quiet)

    def _probe_tree(self, number: int) -> PromptTree:
        load, of = self.load, self.lengths
        positions = 1 + of(of.seed(0, number)) // load.step_tokens
        cuts = [load.prompt_tokens + k * load.step_tokens for k in range(positions)]
        # Every position of every trajectory has samples of its own.
        at = [(number * 997 + k) * load.probes for k in range(positions)]
        branches = tuple(
            Branch(
                cut=cut,
                suffix_ids=(0, 0),
                seeds=tuple(of.seed(2, place + p) for p in range(load.probes)),
            )
            for cut, place in zip(cuts, at, strict=True)
        )
        return PromptTree(trunk_ids=(0,) * cuts[-1], branches=branches, max_tokens=1)

    def _by_question(self, prompt: tuple[int, ...], numbers: range, kind: int) -> list[PromptTree]:
        width = self.load.trajectories
        return [
            _tree(
                prompt,
                (len(prompt),),
                tuple(self.lengths.seed(kind, n) for n in numbers[start : start + width]),
            )
            for start in range(0, len(numbers), width)
        ]


def _tree(trunk: tuple[int, ...], cuts: tuple[int, ...], seeds: tuple[int, ...]) -> PromptTree:
    branches = tuple(Branch(cut=cut, suffix_ids=(), seeds=seeds) for cut in cuts)
    return PromptTree(trunk_ids=trunk, branches=branches, max_tokens=1)


def _quiet(samples: int, tokens: int) -> None:
    """Report nothing."""


class _ShadowWorker:
    """A stage whose source is always available."""

    again = False

    def __init__(self, stage: Stage, load: Load, lengths: _Lengths) -> None:
        self._stage: Stage = stage
        self._load = load
        self._lengths = lengths

    def source(self, unit: Unit) -> str:
        return ""

    def job(self, unit: Unit) -> _ShadowJob:
        return _ShadowJob(unit, self._stage, self._load, self._lengths)


class _ClockRoom:
    """A room whose one engine is there already."""

    attempts = 1
    retry_seconds = 0.0

    def __init__(self, engine: ClockEngine) -> None:
        self._engine = engine

    def engine(self, name: str) -> ClockEngine:
        return self._engine

    def subject(self, name: str) -> Subject:
        """Never called: the simulated jobs need no subject."""
        return cast("Subject", None)

    def drop(self) -> None:
        """Do nothing: the engine does not fail."""


def simulate(
    load: Load,
    *,
    rows: int,
    pace: Pace = STEPS,
    engines: int = 1,
    units_in_flight: int | None = None,
    repeats_exactly: bool = False,
    seed: int = 0,
) -> Simulated:
    """Run the units of a load over engines with clocks.

    Parameters
    ----------
    load
        What is asked.
    rows
        Samples that an engine runs at once.
    pace
        How fast an engine is; by default a step takes a second.
    engines
        Engines side by side, each of which is given units as it wants them.
    units_in_flight
        As in a campaign file; None leaves it to the engine.
    repeats_exactly
        Whether the engine gets one unit at a time where the window is left to it.
    seed
        Of the lengths.

    Raises
    ------
    data.errors.MisuseError
        If there is nothing to simulate.
    """
    lengths, clocks = _clocks(
        load, rows=rows, pace=pace, engines=engines, repeats_exactly=repeats_exactly, seed=seed
    )
    config = CampaignConfig.model_validate(
        {
            "models": [{"path": "m"}],
            "benchmarks": [{"name": "b"}],
            "engine": {"units_in_flight": units_in_flight},
        }
    )
    most = _drive(load, lengths, clocks, config)
    return _simulated(clocks, rows=rows, pace=pace, most_units=most)


def handed_over(
    load: Load, *, rows: int, pace: Pace = STEPS, engines: int = 1, seed: int = 0
) -> Simulated:
    """Hand all requests of a load over in one call a phase: thinking, original answers, probes.

    What :func:`simulate` is measured against: no engine can be fuller within a phase. Several
    engines get every n-th unit.

    Parameters
    ----------
    load, rows, pace, engines, seed
        As :func:`simulate`.
    """
    lengths, clocks = _clocks(
        load, rows=rows, pace=pace, engines=engines, repeats_exactly=False, seed=seed
    )
    for number, clock in enumerate(clocks):
        phases: dict[tuple[Stage, int], list[AnyTree]] = {}
        for unit in list(_units(load))[number::engines]:
            for stage in _stages(load):
                asking = _ShadowJob(unit, stage, load, lengths).asks()
                for phase, ask in enumerate(asking):
                    phases.setdefault((stage, phase), []).extend(ask.trees)
        for trees in phases.values():
            clock.run(trees)
    return _simulated(clocks, rows=rows, pace=pace, most_units=load.units)


def _clocks(
    load: Load, *, rows: int, pace: Pace, engines: int, repeats_exactly: bool, seed: int
) -> tuple[_Lengths, list[ClockEngine]]:
    if load.units < 1 or engines < 1:
        raise MisuseError("a simulation needs at least one unit and one engine")
    lengths = _Lengths(load, seed)
    return lengths, [
        ClockEngine(rows=rows, length_of=lengths, pace=pace, repeats_exactly=repeats_exactly)
        for _ in range(engines)
    ]


def _simulated(
    clocks: Sequence[ClockEngine], *, rows: int, pace: Pace, most_units: int
) -> Simulated:
    tokens = sum(clock.row_steps for clock in clocks)
    seconds = max(clock.seconds for clock in clocks)
    prefill = sum(clock.prefilled for clock in clocks)
    full = tokens / rows * pace.step(rows) + prefill * pace.prefill_seconds
    return Simulated(
        seconds=seconds,
        steps=max(clock.steps for clock in clocks),
        mean_rows=tokens / max(1, sum(clock.steps for clock in clocks)),
        tokens=tokens,
        tail_seconds=max(0.0, seconds - full / len(clocks)),
        most_units=most_units,
    )


def _stages(load: Load) -> list[Stage]:
    return ["generate", "probe"] if len(load.probe_tokens) else ["generate"]


def _units(load: Load) -> Iterator[Unit]:
    cell = Cell(model="m", benchmark="b", questions=load.units * load.questions)
    for number in range(load.units):
        yield Unit(
            cell=cell,
            number=number,
            question_start=0,
            question_stop=load.questions,
            trajectory_start=0,
            trajectory_stop=load.trajectories,
        )


def _drive(
    load: Load, lengths: _Lengths, clocks: Sequence[ClockEngine], config: CampaignConfig
) -> int:
    """Run everything; return the most units that were under way at once."""
    workers = {stage: _ShadowWorker(stage, load, lengths) for stage in _stages(load)}
    backlog = Backlog(workers, _units(load), _none_finished)
    streams = [Stream(_ClockRoom(clock), config, lambda *_: None) for clock in clocks]
    most = 0
    while True:
        # The engine whose clock is behind continues; one without work waits for the others.
        for index in sorted(range(len(clocks)), key=lambda i: clocks[i].seconds):
            stream = streams[index]
            while stream.wants:
                ready, under_way = backlog.ready(stream.model), len(stream)
                enough = not stream.runs_short
                if enough and not may_wait(ready, engines=len(streams), under_way=under_way):
                    break
                task = backlog.take(stream.model, sum(each.window for each in streams))
                if task is None:
                    break
                stream.begin(task)
            if not stream.empty:
                break
        else:
            return most
        now = min(c.seconds for s, c in zip(streams, clocks, strict=True) if not s.empty)
        for other, idle in zip(streams, clocks, strict=True):
            if other.empty:
                idle.seconds = max(idle.seconds, now)
        most = max(most, sum(len(each) for each in streams))
        for done in stream.step():
            backlog.written(done.task.stage, done.task.unit)


def _none_finished(stage: Stage, unit: Unit, source: str, again: bool) -> Work | None:
    return None


def predict(
    load: Load,
    *,
    rows: int,
    pace: Pace,
    engines: int = 1,
    units_in_flight: int | None = None,
    repeats_exactly: bool = False,
    most_samples: int = 150_000,
    seed: int = 0,
) -> Simulated:
    """Return what a load takes, however large it is.

    Parameters
    ----------
    load, rows, pace, engines, units_in_flight, repeats_exactly, seed
        As :func:`simulate`.
    most_samples
        Of a load that is simulated whole. Of a larger one, as many units are simulated as fill the
        rows :data:`_ROUNDS` times (half of that where one unit at a time is under way), and half as
        many: what the second half took is what the units between take.
    """
    keywords = {
        "rows": rows,
        "pace": pace,
        "engines": engines,
        "units_in_flight": units_in_flight,
        "repeats_exactly": repeats_exactly,
        "seed": seed,
    }
    samples = most_samples
    if load.units * load.unit_samples > most_samples:
        asked = 1 if repeats_exactly else None
        under_way = asked if units_in_flight is None else units_in_flight
        # One unit after the other has no rows to share: fewer of them show the pace as well.
        rounds = _ROUNDS if under_way != 1 else _ROUNDS // 2
        used = rows if under_way is None else min(rows, under_way * load.unit_samples)
        samples = min(most_samples, max(_LEAST_SAMPLES, int(rounds * used * engines)))
    units = max(2, min(load.units, int(samples / max(1.0, load.unit_samples))))
    whole = simulate(replace(load, units=min(units, load.units)), **keywords)  # type: ignore[arg-type]
    if units >= load.units:
        return whole
    half = simulate(replace(load, units=max(1, units // 2)), **keywords)  # type: ignore[arg-type]
    between = (load.units - units) / (units - max(1, units // 2))
    return Simulated(
        seconds=whole.seconds + between * (whole.seconds - half.seconds),
        steps=round(whole.steps + between * (whole.steps - half.steps)),
        mean_rows=whole.mean_rows,
        tokens=round(whole.tokens + between * (whole.tokens - half.tokens)),
        tail_seconds=max(
            0.0, whole.tail_seconds + between * (whole.tail_seconds - half.tail_seconds)
        ),
        most_units=whole.most_units,
    )


def _mean(lengths: IntArray) -> float:
    return float(lengths.mean()) if len(lengths) else 0.0
