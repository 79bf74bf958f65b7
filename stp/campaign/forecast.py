"""From a warm-up to what a cell takes to its last sample, on one engine or several.

The warm-up's lengths, as they would be at the campaign's limits, and the engine's pace, as it held
for the warm-up's own work, go into the simulator (:mod:`stp.campaign.simulation`).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import CellRecord
from stp.campaign.pace import calibrated, whole_lengths
from stp.campaign.simulation import Load, Simulated, predict
from stp.engines.base import Branch, Engine, PromptTree
from stp.engines.clock import Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a cell asks, and how fast its engine is.

    Attributes
    ----------
    load
        What is asked.
    rows, repeats_exactly
        Of the engine.
    pace
        With the cell's own prompts.
    units_in_flight
        As the campaign sets it.
    """

    load: Load
    rows: int
    repeats_exactly: bool
    pace: Pace
    units_in_flight: int | None

    def on(self, engines: int) -> Simulated:
        """Return what it takes on a number of engines."""
        return predict(
            self.load,
            rows=self.rows,
            pace=self.pace,
            engines=engines,
            units_in_flight=self.units_in_flight,
            repeats_exactly=self.repeats_exactly,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """What a warm-up made, and how long that took.

    Attributes
    ----------
    prompt_tokens
        Of a question.
    trajectories, trajectories_seconds
        Its ``trajectories`` rows.
    per_question
        Trajectories of a question.
    probes, probes_seconds
        Its ``probes`` rows: of its first trajectories, none if nothing is probed.
    thinking_limit
        That of the campaign, mean over its questions.
    generated_tokens, probed_tokens
        Expected of the whole cell.
    positions
        Expected of a trajectory.
    """

    prompt_tokens: int
    trajectories: pa.Table
    trajectories_seconds: float
    per_question: int
    probes: pa.Table
    probes_seconds: float
    thinking_limit: float
    generated_tokens: int
    probed_tokens: int
    positions: float


def forecast_of(
    config: CampaignConfig, record: CellRecord, engine: Engine, pace: Pace, warm_up: WarmUp
) -> Forecast:
    """Return what a cell asks, with the pace that its warm-up showed."""
    rows = warm_up.trajectories
    thinking, answers = _lengths(rows["thinking_ids"]), _lengths(rows["answer_ids"])
    limit = warm_up.thinking_limit if thinking.any() else 0.0
    whole = whole_lengths(thinking, _is(rows["thinking_finish"], "limit"), limit)
    answered = answers > 0
    cut = ~_is(rows["answer_finish"], "stop")[answered]
    replies = whole_lengths(answers[answered], cut, config.generation.answer_tokens)
    phases = [
        _phase(thinking, warm_up.prompt_tokens, warm_up.per_question),
        _phase(answers[answered], 1, 1),
    ]
    factor = calibrated(pace, engine, phases, warm_up.trajectories_seconds)
    factors = [(factor, warm_up.generated_tokens)]
    probes = _lengths(warm_up.probes["answer_ids"])
    steps = float(config.probing.step_tokens)
    if warm_up.probed_tokens:
        phase = _probe_phase(warm_up, probes, config.probing.probes)
        factor = calibrated(pace, engine, [phase], warm_up.probes_seconds)
        factors.append((factor, warm_up.probed_tokens))
        cut = ~_is(warm_up.probes["finish"], "stop")
        probes = whole_lengths(probes, cut, config.probing.answer_tokens)
        steps = whole.mean() / max(warm_up.positions - 1, 1e-9)
    tokens = max(1, sum(weight for _, weight in factors))
    asked = record.questions - record.too_long
    questions = min(asked, config.shards.questions)
    lots = -(-config.generation.trajectories // config.trajectories_per_unit)
    return Forecast(
        load=Load(
            units=max(1, round(asked / questions * lots)),
            questions=questions,
            trajectories=config.trajectories_per_unit,
            thinking_tokens=whole,
            answer_tokens=replies,
            probe_tokens=probes if warm_up.probed_tokens else probes[:0],
            step_tokens=max(1, round(min(steps, 1 << 30))),
            probes=config.probing.probes,
            prompt_tokens=warm_up.prompt_tokens,
        ),
        rows=engine.rows,
        repeats_exactly=engine.repeats_exactly,
        pace=pace.times(sum(factor * weight for factor, weight in factors) / tokens),
        units_in_flight=config.engine.units_in_flight,
    )


def _probe_phase(
    warm_up: WarmUp, lengths: npt.NDArray[np.int64], probes: int
) -> tuple[list[PromptTree], list[int]]:
    """Return the trees of the trajectories that were probed, a trunk for each, read once."""
    positions = warm_up.probes["position"].to_numpy()[::probes]
    count = max(1, int((positions == 0).sum()))
    thought = _lengths(warm_up.trajectories["thinking_ids"])[:count]
    trunk = warm_up.prompt_tokens + int(thought.mean())
    return _phase(lengths, trunk, max(1, len(lengths) // count))


def _phase(
    lengths: npt.NDArray[np.int64], trunk_tokens: int, samples: int
) -> tuple[list[PromptTree], list[int]]:
    """Return trees with a number of samples each, whose seeds are places in the lengths."""
    trees = []
    for start in range(0, len(lengths), samples):
        seeds = tuple(range(start, min(start + samples, len(lengths))))
        branch = Branch(cut=trunk_tokens, suffix_ids=(), seeds=seeds)
        trees.append(PromptTree(trunk_ids=(0,) * trunk_tokens, branches=(branch,), max_tokens=1))
    return trees, lengths.tolist()


def _lengths(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.asarray(pc.list_value_length(column).to_numpy(), dtype=np.int64)


def _is(column: pa.ChunkedArray, value: str) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.equal(column, value).to_numpy(zero_copy_only=False), dtype=bool)
