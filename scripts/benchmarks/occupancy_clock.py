"""The parts of ``occupancy.py`` that need no model: engines that count steps instead.

Lengths are as papers report them; units go through the driver's own stream and backlog.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from stp.asking.base import Request, RequestGroup, Response, Settings
from stp.asking.chat import Chat, Parts
from stp.asking.engine import EngineResponder
from stp.campaign.simulation import Load, Simulated, handed_over, simulate
from stp.engines.base import SamplingParameters
from stp.engines.clock import ClockEngine

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


def load_of(setting: Setting, seed: int = 20_260_721) -> Load:
    """Return what a setting asks for, with fewer positions and probes than the paper's."""
    draws = np.random.default_rng(seed)
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
    yield on_shards()
    yield on_study()


def on_shards() -> dict[str, Any]:
    """Return the figures of two shards, each with an engine and half of the units of its own."""
    load = load_of(Setting("math500", 30, 1, 128, 1, 2))
    steps = {
        "in_one_call": [handed_over(load, rows=128, seed=seed).steps for seed in (0, 1)],
        "flowing": [simulate(load, rows=128, seed=seed).steps for seed in (0, 1)],
        "one_at_a_time": [
            simulate(load, rows=128, seed=seed, units_in_flight=1).steps for seed in (0, 1)
        ],
    }
    longest = {f"{name}_steps": max(each) for name, each in steps.items()}
    return {"workload": "math500, two shards of 30 units", "rows": 128} | _of_one_call(longest)


class PlainChat:
    """A model that only answers; nobody looks at its texts."""

    thinks = False
    stop_ids = frozenset({0})
    close_ids = ()
    sampling = SamplingParameters()

    def prompt_ids(self, prompt: str, system: str | None) -> tuple[int, ...]:
        """Return some id."""
        return (0,)

    def split(self, output_ids: Sequence[int]) -> Parts:
        """Say that all of it is the answer."""
        return cast(
            "Parts",
            SimpleNamespace(thinking_ids=(), answer_ids=output_ids, answered=True, written=False),
        )

    def text(self, ids: Sequence[int]) -> str:
        """Return none."""
        return ""

    answer_text = text

    def ids(self, text: str) -> tuple[int, ...]:
        """Return none."""
        return ()


def on_study(runs: int = 12, requests: int = 100, rows: int = 64) -> dict[str, Any]:
    """Return the figures of a study of ``stp think``: so many runs, asked in one stream."""
    draws = np.random.default_rng(20_260_721)
    drawn = lengths(draws, *WORKLOADS["math500"], THINKING_LIMIT).tolist()

    def take(response: Response) -> None:
        """Keep nothing."""

    def steps(ways: Sequence[Sequence[tuple[int, int]]]) -> int:
        """Return the steps of calls, each with so many groups of requests."""
        engine = ClockEngine(rows=rows, length_of=drawn.__getitem__)
        responder = EngineResponder(engine, lambda _: cast("Chat", PlainChat()), batch=rows)
        for groups in ways:
            responder.respond(
                *(
                    RequestGroup(
                        requests=[Request(id=str(n), prompt="", seed=n) for n in range(*group)],
                        settings=Settings(),
                        on_response=take,
                    )
                    for group in groups
                )
            )
        return engine.steps

    each = [(run * requests, (run + 1) * requests) for run in range(runs)]
    figures = {
        "in_one_call_steps": steps([[(0, runs * requests)]]),
        "flowing_steps": steps([each]),
        "one_at_a_time_steps": steps([[group] for group in each]),
    }
    return {"workload": f"stp think, {runs} runs", "rows": rows} | _of_one_call(figures)


def _of_one_call(steps: dict[str, int]) -> dict[str, Any]:
    once = steps["in_one_call_steps"]
    shares = {f"{name}_of_one_call": round(count / once, 3) for name, count in steps.items()}
    return steps | {name.replace("_steps", ""): share for name, share in shares.items()}


def over_draws(seeds: int) -> Iterable[dict[str, Any]]:
    """Yield for few units of each workload what two engines take over many draws of lengths."""
    for workload, units in itertools.product(WORKLOADS, (10, 12, 16, 24)):
        setting = Setting(workload, units, 1, 64, 2, 2)
        of_one_call, of_least = [], []
        for seed in range(seeds):
            load = load_of(setting, seed)
            flowing = simulate(load, rows=64, engines=2, seed=seed)
            once = handed_over(load, rows=64, engines=2, seed=seed)
            alone = simulate(load, rows=1 << 30, seed=seed, units_in_flight=units)
            of_one_call.append(flowing.steps / once.steps)
            of_least.append(flowing.steps / max(alone.steps, flowing.tokens / 128))
        yield {
            "workload": workload,
            "units": units,
            "draws": seeds,
            **_spread("of_one_call", of_one_call),
            **_spread("of_the_least", of_least),
        }


def _spread(name: str, shares: Sequence[float]) -> dict[str, float]:
    return {
        f"{name}_median": round(float(np.median(shares)), 3),
        f"{name}_worst": round(max(shares), 3),
    }


def _figures(name: str, run: Simulated, once: Simulated) -> dict[str, float]:
    return {
        f"{name}_steps": run.steps,
        f"{name}_rows": round(run.mean_rows, 1),
        f"{name}_of_one_call": round(run.steps / once.steps, 3),
    }
