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

``server``: the same on a real vLLM server with ``concurrency`` 8: the server's own count of steps,
the rows in them, and the share of time in which all 8 requests were under way until the last
question was handed over. Minutes.

    PYTHONPATH=. .venv/bin/python scripts/benchmarks/occupancy.py clock
    PYTHONPATH=. OMP_NUM_THREADS=1 .venv-vllm/bin/python scripts/benchmarks/occupancy.py vllm
    PYTHONPATH=. OMP_NUM_THREADS=1 .venv/bin/python scripts/benchmarks/occupancy.py ray
    PYTHONPATH=. OMP_NUM_THREADS=1 .venv/bin/python scripts/benchmarks/occupancy.py server \
        --vllm-python .venv-vllm/bin/python
"""

import argparse
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
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

{engine}
"""

VLLM = """
[engine]
name = "vllm"
options = {{ max_num_seqs = {rows}, kv_cache_memory_bytes = 134217728 }}
"""

# An engine of its own accord takes one unit at a time here: on a CPU it repeats exactly.
RAY = """
[engine]
name = "transformers"
actors = {engines}
units_in_flight = {units}
options = {{ max_rows = {rows}, threads = 1 }}
"""

SERVER = """
[engine]
name = "server"
options = {{ url = "{url}", concurrency = {rows} }}
"""


@dataclass(frozen=True, slots=True)
class Size:
    """Of a campaign that is really run: questions, questions of a unit, rows of an engine."""

    questions: int
    per_unit: int
    rows: int

    @property
    def units(self) -> int:
        """Number of units."""
        return -(-self.questions // self.per_unit)

    def ways(self, engine: str, engines: int = 1) -> dict[str, CampaignConfig]:
        """Return the campaign in three ways: how the engines get its units."""
        text = CAMPAIGN.format(questions=self.questions, per_unit=self.per_unit, engine=engine)
        config = parse_config(text, source="occupancy")
        share = -(-self.questions // engines)
        alone = config.engine.model_copy(update={"units_in_flight": 1})
        at_once = config.shards.model_copy(update={"questions": share})
        return {
            "in_one_call": config.model_copy(update={"shards": at_once, "engine": alone}),
            "flowing": config,
            "one_at_a_time": config.model_copy(update={"engine": alone}),
        }


def compared(ways: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of all ways in one line, with their steps beside those of one call."""
    once = ways["in_one_call"]["steps"]
    line: dict[str, Any] = {}
    for name, figures in ways.items():
        line |= {f"{name}_{key}": value for key, value in figures.items()}
        line[f"{name}_of_one_call"] = round(figures["steps"] / once, 3)
    return line


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


def run(
    config: CampaignConfig,
    open_model: Callable[[str, Path], Engine] | None = None,
    open_pool: PoolOpener | None = None,
) -> MostUnits:
    """Run the engine stages of a campaign in a folder that is then removed."""
    seen = MostUnits()
    with tempfile.TemporaryDirectory() as folder:
        run_campaign(
            config,
            folder,
            stages=("generate", "probe"),
            open_model=open_model,
            open_pool=open_pool,
            observer=seen,
        )
    return seen


def on_vllm(size: Size) -> dict[str, Any]:
    """Run the same campaign in three ways on a vLLM engine."""
    ways = size.ways(VLLM.format(rows=size.rows))
    figures = {name: _vllm_way(config) for name, config in ways.items()}
    return {"units": size.units, "rows": size.rows, **compared(figures)}


def _vllm_way(config: CampaignConfig) -> dict[str, Any]:
    opened: list[Engine] = []
    counted: list[Rows] = []

    def open_model(name: str, folder: Path) -> Engine:
        options = {"context_limit": 1024, **config.engine.options}
        opened.append(open_engine("vllm", folder, **options))
        counted.append(Rows(opened[-1]))
        return opened[-1]

    seen = run(config, open_model)
    return {
        "steps": counted[-1].steps,
        "rows": round(counted[-1].rows / counted[-1].steps, 2),
        "prefill": round(opened[-1].usage.block_amplification, 3),
        "units_under_way": seen.most,
    }


ENGINES = 2


def counting_opener(config: CampaignConfig, folder: str) -> Callable[[str, Path], Engine]:
    """Return what opens an engine that writes its steps, and the rows in them, into a folder.

    An engine lives in another process, which is killed in the end: what it has counted must be on
    the disk by then.
    """
    opens = configured_engine(config)

    def open_model(name: str, model: Path) -> Engine:
        engine: Any = opens(name, model)
        counts = np.memmap(Path(folder) / f"{os.getpid()}", np.int64, "w+", shape=(2,))
        decoder = engine._decoder
        advance = decoder._advance

        def counting() -> None:
            counts[:] += 1, sum(row is not None for row in decoder._rows)
            advance()

        decoder._advance = counting
        opened: Engine = engine
        return opened

    return open_model


def on_ray(size: Size) -> dict[str, Any]:
    """Run the same campaign in three ways on two transformers engines of a Ray pool."""
    import ray

    ray.init(
        address="local",
        num_cpus=ENGINES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )
    engine = RAY.format(engines=ENGINES, units=size.units, rows=size.rows)
    ways = {}
    for name, config in size.ways(engine, ENGINES).items():
        with tempfile.TemporaryDirectory() as folder:
            run(
                config,
                counting_opener(config, folder),
                lambda prepared, opener: RayPool(prepared, open_model=opener, address="local"),
            )
            files = sorted(Path(folder).iterdir())
            counts = np.array([np.fromfile(file, np.int64) for file in files])
        steps, rows = counts.T
        ways[name] = {
            "steps": int(steps.sum()),
            "steps_by_engine": steps.tolist(),
            "rows": round(float(rows.sum() / steps.sum()), 2),
        }
    ray.shutdown()
    return {"units": size.units, "rows": size.rows, "engines": ENGINES, **compared(ways)}


class InFlight(dict[Any, Any]):
    """The requests under way of a server engine, with how long there were how many.

    ``supplied`` is the same up to the last question that was handed over: from then on there may
    be nothing to send in place of one that ended, since the rest depends on what still runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[int, float] = {}
        self.supplied: dict[int, float] = {}
        self._since: float | None = None

    def _note(self) -> None:
        now = time.monotonic()
        if self._since is not None:
            self.seconds[len(self)] = self.seconds.get(len(self), 0.0) + now - self._since
        self._since = now

    def __setitem__(self, task: Any, request: Any) -> None:
        self._note()
        super().__setitem__(task, request)

    def pop(self, task: Any, *default: Any) -> Any:
        """Note that a request has ended."""
        self._note()
        return super().pop(task, *default)

    def handed_over(self) -> None:
        """Note that a question was handed over."""
        self._note()
        self.supplied = dict(self.seconds)

    @property
    def mean(self) -> float:
        """Requests under way, averaged over the whole time."""
        whole = sum(self.seconds.values())
        return sum(count * spent for count, spent in self.seconds.items()) / whole

    def share_with(self, count: int) -> float:
        """Return the share of the time with so many under way, while questions were left."""
        return self.supplied.get(count, 0.0) / sum(self.supplied.values())


@contextlib.contextmanager
def served(python: str, rows: int) -> Iterator[str]:
    """Serve the demo model with a vLLM of a Python; yield where."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    options = {
        "model": Path(data.__file__).parent / "demo_model",
        "served-model-name": "demo",
        "host": "127.0.0.1",
        "port": port,
        "dtype": "float32",
        "block-size": 32,
        "kv-cache-memory-bytes": 128 << 20,
        "max-model-len": 1024,
        "max-num-batched-tokens": 8192,
        "max-num-seqs": rows,
    }
    # A seeded request whose prefill is split crashes vLLM 0.32 on a CPU.
    flags = ("--enforce-eager", "--enable-prompt-tokens-details", "--no-enable-chunked-prefill")
    given = [text for key, value in options.items() for text in (f"--{key}", str(value))]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [python, "-m", "vllm.entrypoints.openai.api_server", *given, *flags],
            env={**os.environ, "OMP_NUM_THREADS": "1", "TORCH_COMPILE_DISABLE": "1"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while not _healthy(url):
                if process.poll() is not None:
                    log.seek(0)
                    raise SystemExit(log.read().decode(errors="replace")[-4000:])
                time.sleep(1)
            yield url
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _healthy(url: str) -> bool:
    import httpx

    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{url}/health").is_success
    return False


def _server_counts(url: str) -> npt.NDArray[np.int64]:
    """Return the steps that a server's engine has done, and the tokens that it has generated."""
    import httpx

    text = httpx.get(f"{url}/metrics").text
    found = [
        re.search(rf"^vllm:{name}\{{[^}}]*\}} (\S+)", text, re.MULTILINE)
        for name in ("iteration_tokens_total_count", "generation_tokens_total")
    ]
    return np.array([int(float(match[1])) for match in found if match is not None])


def on_server(size: Size, python: str) -> dict[str, Any]:
    """Run the same campaign in three ways on a server with so many requests under way."""
    with served(python, 4 * size.rows) as url:
        ways = size.ways(SERVER.format(url=url, rows=size.rows))
        figures = {name: _server_way(config, url, size.rows) for name, config in ways.items()}
    return {"units": size.units, "concurrency": size.rows, **compared(figures)}


def _server_way(config: CampaignConfig, url: str, rows: int) -> dict[str, Any]:
    under_way = InFlight()
    opens = configured_engine(config)
    opened: list[Engine] = []

    def open_model(name: str, folder: Path) -> Engine:
        engine: Any = opens(name, folder)
        engine._tasks = under_way
        submit = engine.submit

        def noting(tree: Any) -> Any:
            if tree.max_tokens == config.generation.thinking_limit:
                under_way.handed_over()
            return submit(tree)

        engine.submit = noting
        opened.append(engine)
        return opened[-1]

    before, begin = _server_counts(url), time.monotonic()
    seen = run(config, open_model)
    steps, tokens = (_server_counts(url) - before).tolist()
    return {
        "steps": steps,
        "rows": round(tokens / steps, 2),
        "seconds": round(time.monotonic() - begin, 1),
        "requests_under_way": round(under_way.mean, 2),
        "share_of_time_full": round(under_way.share_with(rows), 3),
        "prefill": round(opened[-1].usage.block_amplification, 3),
        "units_under_way": seen.most,
    }


def main() -> None:
    """Print a line of JSON for every measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("clock", "vllm", "ray", "server"))
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--per-unit", type=int, default=1)
    parser.add_argument("--rows", type=int, help="of an engine; a server's requests under way")
    parser.add_argument("--vllm-python", default=sys.executable, help="whose vLLM serves")
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
        lines = [on_server(size, arguments.vllm_python)]
    for line in lines:
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
