r"""How full an engine is over a whole campaign: units flowing through it, or one after another.

Four measurements, each against (a) the same requests handed over in one call a phase (thinking,
original answers, probes) and (b) one unit at a time:

``clock``: lengths as papers report them, through the driver's own stream and backlog, over engines
that count steps instead of making tokens (:mod:`stp.engines.clock`): one engine, one with eight
rows (a server with ``concurrency`` 8), and two engines that share the units. Seconds.

``vllm``: campaigns of the demo model on a real vLLM (a CPU build is enough), whose scheduler is
asked for the rows of every step. Minutes.

``ray``: the same on two transformers engines that a Ray pool gives units, as ``stp run --ray``
does. (a) gives each engine one unit of half the questions. Minutes.

``server``: the same on a real vLLM server with ``concurrency`` 8, and the share of the time in
which all 8 requests were under way until the last one was sent. The demo model's step takes some
milliseconds, less than a request's way to the server and back, so that even requests that are all
there find a server that has gone on without them. So every step is made to last as long as one of a
large model does (``--step-ms 0``: as it is). Minutes.

    PYTHONPATH=. .venv/bin/python scripts/benchmarks/occupancy.py clock
    PYTHONPATH=. OMP_NUM_THREADS=1 .venv-vllm/bin/python scripts/benchmarks/occupancy.py vllm
    PYTHONPATH=. OMP_NUM_THREADS=1 .venv/bin/python scripts/benchmarks/occupancy.py ray
    PYTHONPATH=. OMP_NUM_THREADS=1 .venv-vllm/bin/python scripts/benchmarks/occupancy.py server
"""

import argparse
import contextlib
import json
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import data
from stp.campaign.config import CampaignConfig, parse_config
from stp.campaign.pool import RayPool
from stp.campaign.run import PoolOpener, SilentObserver, configured_engine, run_campaign
from stp.campaign.simulation import Load, Simulated, handed_over, simulate
from stp.campaign.store import Store
from stp.engines import Engine

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
"""

ENGINE = {
    "vllm": """
name = "vllm"
options = {{ max_num_seqs = {rows}, kv_cache_memory_bytes = 134217728 }}
""",
    # An engine of its own accord takes one unit at a time here: on a CPU it repeats exactly.
    "ray": """
name = "transformers"
actors = {engines}
units_in_flight = {units}
options = {{ max_rows = {rows}, threads = 1 }}
""",
    "server": """
name = "server"
options = {{ url = "{url}", concurrency = {rows} }}
""",
}

COUNTS = "STP_OCCUPANCY_COUNTS"
STEP_MS = "STP_OCCUPANCY_STEP_MS"
"""Environment variables of a server: where its steps are counted, and how long they last."""


class Counts:
    """Steps of an engine, and the rows in them, in a folder.

    An engine may live in another process, which is killed in the end: what it has counted must be
    on the disk by then.
    """

    def __init__(self, folder: str) -> None:
        path = Path(folder) / f"{os.getpid()}"
        self._counts = np.memmap(path, np.int64, "w+", shape=(2,))

    def step(self, rows: int) -> None:
        """Count a step."""
        self._counts[:] += 1, rows

    @staticmethod
    def read(folder: str) -> npt.NDArray[np.int64]:
        """Return what engines have counted: shape (engines, 2)."""
        files = sorted(Path(folder).iterdir())
        counts = [np.fromfile(file, np.int64) for file in files]
        return np.array(counts, np.int64).reshape(-1, 2)


def counting_opener(config: CampaignConfig, folder: str) -> Callable[[str, Path], Engine]:
    """Return what opens an engine that counts its steps into a folder."""
    opens = configured_engine(config)

    def open_model(name: str, model: Path) -> Engine:
        engine: Any = opens(name, model)
        counts = Counts(folder)
        if config.engine.name == "vllm":
            scheduler = engine._engine.engine_core.engine_core.scheduler
            schedule = scheduler.schedule

            def counted_schedule(*args: Any, **named: Any) -> Any:
                output = schedule(*args, **named)
                if output.num_scheduled_tokens:
                    counts.step(len(output.num_scheduled_tokens))
                return output

            scheduler.schedule = counted_schedule
        else:
            decoder = engine._decoder
            advance = decoder._advance

            def counted_advance() -> None:
                counts.step(sum(row is not None for row in decoder._rows))
                advance()

            decoder._advance = counted_advance
        opened: Engine = engine
        return opened

    return open_model


class MostUnits(SilentObserver):
    """Remembers how many units were under way at once."""

    def __init__(self) -> None:
        self.most = 0
        self._under_way: set[Any] = set()

    def unit_progressed(
        self, stage: Any, unit: Any, fraction: float, samples: int, tokens: int
    ) -> None:
        """Count the unit."""
        self._under_way.add((stage, unit))
        self.most = max(self.most, len(self._under_way))

    def unit_finished(self, stage: Any, unit: Any, work: Any) -> None:
        """Leave the unit out."""
        self._under_way.discard((stage, unit))


def run(
    config: CampaignConfig,
    counts: str,
    open_model: Callable[[str, Path], Engine],
    open_pool: PoolOpener | None = None,
) -> dict[str, Any]:
    """Run the engine stages of a campaign in a folder that is then removed; return figures."""
    seen = MostUnits()
    before = Counts.read(counts).sum(axis=0)
    with tempfile.TemporaryDirectory() as folder:
        run_campaign(
            config,
            folder,
            stages=("generate", "probe"),
            open_model=open_model,
            open_pool=open_pool,
            observer=seen,
        )
        stages = Store(folder).read_manifest().stages
    usage = stages["generate"].usage + stages["probe"].usage
    steps, rows = (Counts.read(counts).sum(axis=0) - before).tolist()
    return {
        "steps": steps,
        "rows": round(rows / steps, 2),
        "prefill": round(usage.block_amplification, 3),
        "units_under_way": seen.most,
    }


@dataclass(frozen=True, slots=True)
class Size:
    """Of a campaign that is really run: questions, questions of a unit, rows of an engine."""

    questions: int
    per_unit: int
    rows: int

    def compared(
        self,
        engine: str,
        run_way: Callable[[CampaignConfig], dict[str, Any]],
        *,
        engines: int = 1,
        url: str = "",
    ) -> dict[str, Any]:
        """Run the campaign in three ways; return their figures, beside those of one call."""
        units = -(-self.questions // self.per_unit)
        text = (CAMPAIGN + ENGINE[engine]).format(
            questions=self.questions,
            per_unit=self.per_unit,
            rows=self.rows,
            units=units,
            engines=engines,
            url=url,
        )
        config = parse_config(text, source="occupancy")
        share = -(-self.questions // engines)
        alone = config.engine.model_copy(update={"units_in_flight": 1})
        at_once = config.shards.model_copy(update={"questions": share})
        ways = {
            "in_one_call": config.model_copy(update={"shards": at_once, "engine": alone}),
            "flowing": config,
            "one_at_a_time": config.model_copy(update={"engine": alone}),
        }
        line: dict[str, Any] = {"units": units, "rows": self.rows, "engines": engines}
        for name, way in ways.items():
            line |= {f"{name}_{key}": value for key, value in run_way(way).items()}
            steps, once = line[f"{name}_steps"], line["in_one_call_steps"]
            line[f"{name}_of_one_call"] = round(steps / once, 3)
        return line


def on_vllm(size: Size) -> dict[str, Any]:
    """Run a campaign on a vLLM engine."""

    def run_way(config: CampaignConfig) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as counts:
            return run(config, counts, counting_opener(config, counts))

    return size.compared("vllm", run_way)


def on_ray(size: Size) -> dict[str, Any]:
    """Run a campaign on two transformers engines of a Ray pool."""
    import ray

    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )

    def run_way(config: CampaignConfig) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as counts:
            figures = run(
                config,
                counts,
                counting_opener(config, counts),
                lambda prepared, opener: RayPool(prepared, open_model=opener, address="local"),
            )
            # Units of a pool are seen when they are done.
            del figures["units_under_way"]
            return figures | {"steps_by_engine": Counts.read(counts)[:, 0].tolist()}

    line = size.compared("ray", run_way, engines=2)
    ray.shutdown()
    return line


@contextlib.contextmanager
def watched(engine: Any) -> Iterator[list[tuple[int, int]]]:
    """Look every few milliseconds how many requests of an engine are under way, and wait."""
    seen: list[tuple[int, int]] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.005):
            seen.append((len(engine._tasks), engine._waiting))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def on_server(size: Size, step_ms: int) -> dict[str, Any]:
    """Run a campaign on a server with so many requests under way."""
    from tests.engines.serving import vllm_serve

    model = Path(data.__file__).parent / "demo_model"
    with tempfile.TemporaryDirectory() as counts, tempfile.TemporaryDirectory() as logs:
        path = f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"
        os.environ |= {COUNTS: counts, STEP_MS: str(step_ms), "PYTHONPATH": path}
        options = {
            "scheduler-cls": "paced_scheduler.PacedScheduler",
            "kv-cache-memory-bytes": 128 << 20,
            "max-model-len": 1024,
            "max-num-seqs": 4 * size.rows,
        }
        given = [text for key, value in options.items() for text in (f"--{key}", str(value))]
        with vllm_serve(model, Path(logs) / "log", "--no-async-scheduling", *given) as server:
            return size.compared("server", lambda way: _server_way(way, counts), url=server.url)


def _server_way(config: CampaignConfig, counts: str) -> dict[str, Any]:
    opens = configured_engine(config)
    with contextlib.ExitStack() as held:
        looks: list[list[tuple[int, int]]] = []

        def open_model(name: str, folder: Path) -> Engine:
            engine = opens(name, folder)
            looks.append(held.enter_context(watched(engine)))
            return engine

        figures = run(config, counts, open_model)
    under_way, waiting = np.array(looks[0]).T
    busy = np.flatnonzero(under_way)
    supplied = slice(busy[0], np.flatnonzero(waiting)[-1] + 1)
    full = under_way[supplied] == config.engine.options["concurrency"]
    return figures | {
        "requests_under_way": round(float(under_way[busy[0] : busy[-1] + 1].mean()), 2),
        "share_of_time_full": round(float(full.mean()), 3),
    }


def main() -> None:
    """Print a line of JSON for every measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("clock", "vllm", "ray", "server"))
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--per-unit", type=int, default=1)
    parser.add_argument("--rows", type=int, help="of an engine; a server's requests under way")
    parser.add_argument("--step-ms", type=int, default=30, help="least milliseconds of a server's")
    arguments = parser.parse_args()
    rows = arguments.rows or (8 if arguments.what == "server" else 16)
    size = Size(arguments.questions, arguments.per_unit, rows)
    lines: Iterable[dict[str, Any]]
    if arguments.what == "clock":
        lines = on_the_clock()
    elif arguments.what == "vllm":
        lines = [on_vllm(size)]
    elif arguments.what == "ray":
        lines = [on_ray(size)]
    else:
        lines = [on_server(size, arguments.step_ms)]
    for line in lines:
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
