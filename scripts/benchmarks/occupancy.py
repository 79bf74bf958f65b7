"""How full an engine is over a whole campaign: units flowing through it, against one after another.

Two measurements, each against (a) the same requests handed over in one call a phase (thinking,
original answers, probes) and (b) one unit at a time:

``clock``: lengths as papers report them, through the driver's own stream and backlog, over engines
that count steps instead of making tokens (:mod:`stp.engines.clock`): one engine, one with eight
rows (a server with ``concurrency`` 8), and two engines that share the units. Seconds.

``vllm``: campaigns of the demo model on a real vLLM (a CPU build is enough), whose scheduler is
asked for the rows of every step. Minutes.

    PYTHONPATH=. .venv/bin/python scripts/benchmarks/occupancy.py clock
    PYTHONPATH=. OMP_NUM_THREADS=1 .venv-vllm/bin/python scripts/benchmarks/occupancy.py vllm
"""

import argparse
import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stp.campaign.config import CampaignConfig, parse_config
from stp.campaign.run import SilentObserver, run_campaign
from stp.campaign.simulation import Load, Simulated, handed_over, simulate
from stp.engines import Engine, open_engine

THINKING_LIMIT = 32_768
ANSWER_LIMIT = 4_096
DRAWN = 20_000

# Mean thinking tokens, the spread between questions, and within one: both of the logarithm.
WORKLOADS = {"aime": (13_000, 0.45, 0.35), "math500": (4_000, 0.7, 0.45)}


@dataclass(frozen=True, slots=True)
class Setting:
    """A campaign to simulate: its units, and the engines that run them."""

    workload: str
    units: int
    questions: int
    rows: int
    engines: int
    probes: int


SETTINGS = [
    Setting("aime", 10, 1, 64, 1, 2),
    Setting("aime", 30, 1, 256, 1, 2),
    Setting("math500", 25, 4, 256, 1, 2),
    Setting("math500", 60, 1, 256, 1, 2),
    Setting("math500", 20, 1, 8, 1, 1),
    Setting("aime", 30, 1, 128, 2, 2),
    Setting("math500", 60, 1, 128, 2, 2),
]


def lengths(
    draws: np.random.Generator, mean: float, between: float, within: float, limit: int
) -> npt.NDArray[np.int64]:
    """Return log-normal lengths with this mean, cut at a limit."""
    spread = np.hypot(between, within)
    drawn = draws.lognormal(np.log(mean) - spread**2 / 2, spread, DRAWN)
    return np.clip(drawn, 1, limit).astype(np.int64)


def load_of(setting: Setting) -> Load:
    """Return what a setting asks for, with fewer positions and probes than the paper's."""
    draws = np.random.default_rng(20_260_721)
    mean, between, within = WORKLOADS[setting.workload]
    return Load(
        units=setting.units,
        questions=setting.questions,
        trajectories=16,
        thinking_tokens=lengths(draws, mean, between, within, THINKING_LIMIT),
        answer_tokens=lengths(draws, 450, 0.4, 0.4, ANSWER_LIMIT),
        probe_tokens=lengths(draws, 250, 0.6, 0.6, ANSWER_LIMIT),
        step_tokens=1024,
        probes=setting.probes,
    )


def on_the_clock() -> Iterable[dict[str, Any]]:
    """Yield a line for every setting."""
    for setting in SETTINGS:
        load = load_of(setting)
        once = handed_over(load, rows=setting.rows, engines=setting.engines)
        flowing = simulate(load, rows=setting.rows, engines=setting.engines)
        alone = simulate(load, rows=setting.rows, engines=setting.engines, units_in_flight=1)
        yield {
            "workload": setting.workload,
            "units": setting.units,
            "questions_per_unit": setting.questions,
            "rows": setting.rows,
            "engines": setting.engines,
            "samples": round(load.units * load.unit_samples),
            "most_units_under_way": flowing.most_units,
            **_figures("in_one_call", once, once),
            **_figures("flowing", flowing, once),
            **_figures("one_at_a_time", alone, once),
        }


def _figures(name: str, run: Simulated, once: Simulated) -> dict[str, float]:
    return {
        f"{name}_steps": run.steps,
        f"{name}_rows": round(run.mean_rows, 1),
        f"{name}_of_one_call": round(run.steps / once.steps, 3),
    }


CAMPAIGN = """
name = "occupancy"
models = [{{ path = "demo" }}]
benchmarks = [{{ name = "demo", limit = {questions} }}]

[generation]
trajectories = 4
thinking_limit = 512
answer_tokens = 64
context_limit = 1024

[probing]
step_tokens = 64
probes = 4
answer_tokens = 32

[shards]
questions = {per_unit}

[engine]
name = "vllm"
options = {{ max_num_seqs = {rows}, kv_cache_memory_bytes = 134217728 }}
"""


class Rows:
    """Counts the steps of a vLLM engine's scheduler, and the requests in each."""

    def __init__(self, engine: Any) -> None:
        self.steps = self.rows = 0
        scheduler = engine._engine.engine_core.engine_core.scheduler
        schedule = scheduler.schedule

        def counting(*args: Any, **named: Any) -> Any:
            output = schedule(*args, **named)
            if output.num_scheduled_tokens:
                self.steps += 1
                self.rows += len(output.num_scheduled_tokens)
            return output

        scheduler.schedule = counting


class MostUnits(SilentObserver):
    """Remembers how many units were under way at once."""

    def __init__(self) -> None:
        self.most = 0
        self._under_way: set[Any] = set()

    def unit_progressed(
        self, stage: Any, unit: Any, fraction: float, samples: int, tokens: int
    ) -> None:
        """Count the unit."""
        if stage != "grade":
            self._under_way.add((stage, unit))
            self.most = max(self.most, len(self._under_way))

    def unit_finished(self, stage: Any, unit: Any, work: Any) -> None:
        """Leave the unit out."""
        self._under_way.discard((stage, unit))


def on_vllm(questions: int, per_unit: int, rows: int) -> dict[str, Any]:
    """Run the same campaign in three ways on one engine."""
    config = parse_config(
        CAMPAIGN.format(questions=questions, per_unit=per_unit, rows=rows), source="occupancy"
    )
    at_once = config.shards.model_copy(update={"questions": questions})
    alone = config.engine.model_copy(update={"units_in_flight": 1})
    ways = {
        "in_one_call": config.model_copy(update={"shards": at_once}),
        "flowing": config,
        "one_at_a_time": config.model_copy(update={"engine": alone}),
    }
    line: dict[str, Any] = {"units": -(-questions // per_unit), "rows": rows}
    for name, way in ways.items():
        engine, counted, seen = _run(way)
        line |= {
            f"{name}_steps": counted.steps,
            f"{name}_rows": round(counted.rows / counted.steps, 2),
            f"{name}_of_one_call": round(
                counted.steps / line.get("in_one_call_steps", counted.steps), 3
            ),
            f"{name}_prefill": round(engine.usage.block_amplification, 3),
            f"{name}_units_under_way": seen.most,
        }
    return line


def _run(config: CampaignConfig) -> tuple[Engine, Rows, MostUnits]:
    opened: list[Engine] = []
    counted: list[Rows] = []

    def open_model(name: str, folder: Path) -> Engine:
        options = {"context_limit": 1024, **config.engine.options}
        opened.append(open_engine("vllm", folder, **options))
        counted.append(Rows(opened[-1]))
        return opened[-1]

    seen = MostUnits()
    with tempfile.TemporaryDirectory() as folder:
        run_campaign(
            config,
            folder,
            stages=("generate", "probe"),
            open_model=open_model,
            observer=seen,
        )
    return opened[-1], counted[-1], seen


def main() -> None:
    """Print a line of JSON for every measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("clock", "vllm"))
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--per-unit", type=int, default=1)
    parser.add_argument("--rows", type=int, default=16)
    arguments = parser.parse_args()
    if arguments.what == "clock":
        for line in on_the_clock():
            print(json.dumps(line), flush=True)
    else:
        line = on_vllm(arguments.questions, arguments.per_unit, arguments.rows)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
