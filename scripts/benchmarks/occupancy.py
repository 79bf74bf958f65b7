r"""How full an engine is over a whole campaign: units flowing through it, or one after another.

Each is against (a) the same requests handed over in one call a phase (thinking, original answers,
probes) and (b) one unit at a time:

``clock``: lengths as papers report them, through the driver's own stream and backlog, over engines
that count steps instead of making tokens (:mod:`stp.engines.clock`): one engine, one with eight
rows (a server with ``concurrency`` 8), two engines that share the units, two shards, and a study of
``stp think`` (methods of ``stp optimal`` go the same way), whose runs are the units. Seconds.

``spread``: the same for two engines and few units, over many draws of the lengths, beside the least
that any schedule could take: all rows full to the end, or the longest unit alone. Minutes.

``vllm``: campaigns of the demo model on a real vLLM (a CPU build is enough), whose scheduler is
asked for the rows of every step. Minutes.

``ray``: the same on two transformers engines that a Ray pool gives units, as ``stp run --ray``
does. (a) gives each engine one unit of half the questions. What counts is the time from the first
step of an engine to the last one of any; the engines begin together, and every step lasts
``--step-ms``, so that the time is that of the steps. Minutes.

``server``: the same on a real vLLM server with ``concurrency`` 8, and the share of the time in
which all 8 requests were under way until the last one was sent. The demo model's step takes some
milliseconds, less than a request's way to the server and back, so that even requests that are all
there find a server that has gone on without them. So every step is made to last as long as one of a
large model does (``--step-ms 0``: as it is). Minutes.

    PYTHONPATH=. .venv/bin/python scripts/benchmarks/occupancy.py clock
    PYTHONPATH=. .venv/bin/python scripts/benchmarks/occupancy.py spread
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
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from occupancy_clock import on_the_clock, over_draws

import data
from stp.campaign.config import CampaignConfig, parse_config
from stp.campaign.pool import RayPool
from stp.campaign.run import PoolOpener, SilentObserver, configured_engine, run_campaign
from stp.campaign.store import Store
from stp.engines import Engine

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
    """Steps of an engine, the rows in them, and when the first and the last began, in a folder.

    An engine may live in another process, which is killed in the end: what it has counted must be
    on the disk by then. No step is shorter than ``step_ms``.
    """

    def __init__(self, folder: str, *, step_ms: int = 0) -> None:
        path = Path(folder) / f"{os.getpid()}"
        self._counts = np.memmap(path, np.int64, "w+", shape=(4,))
        self._step_ns = step_ms * 1_000_000

    def pace(self) -> None:
        """Wait until the step before has lasted long enough."""
        due = self._counts[3] + self._step_ns
        time.sleep(max(0, int(due) - time.monotonic_ns()) / 1e9)

    def step(self, rows: int) -> None:
        """Count a step."""
        now = time.monotonic_ns()
        self._counts[:2] += 1, rows
        self._counts[2:] = self._counts[2] or now, now

    @staticmethod
    def read(folder: str) -> npt.NDArray[np.int64]:
        """Return what engines have counted: shape (engines, 4)."""
        files = sorted(Path(folder).iterdir())
        counts = [np.fromfile(file, np.int64) for file in files]
        return np.array(counts, np.int64).reshape(-1, 4)


def counting_opener(
    config: CampaignConfig, folder: str, *, engines: int = 1, step_ms: int = 0
) -> Callable[[str, Path], Engine]:
    """Return what opens an engine that counts its steps into a folder.

    It waits until so many engines are open.
    """
    opens = configured_engine(config)

    def open_model(name: str, model: Path) -> Engine:
        engine: Any = opens(name, model)
        counts = Counts(folder, step_ms=step_ms)
        while len(list(Path(folder).iterdir())) < engines:
            time.sleep(0.01)
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
                counts.pace()
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
    before = Counts.read(counts)[:, :2].sum(axis=0)
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
    steps, rows = (Counts.read(counts)[:, :2].sum(axis=0) - before).tolist()
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


def on_ray(size: Size, step_ms: int) -> dict[str, Any]:
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
                counting_opener(config, counts, engines=2, step_ms=step_ms),
                lambda prepared, opener: RayPool(prepared, open_model=opener, address="local"),
            )
            # Units of a pool are seen when they are done.
            del figures["units_under_way"]
            steps, _, begin, end = Counts.read(counts).T
            seconds = float(end.max() - begin.min()) / 1e9
            return figures | {"steps_by_engine": steps.tolist(), "seconds": round(seconds, 2)}

    line = size.compared("ray", run_way, engines=2)
    ray.shutdown()
    for name in ("flowing", "one_at_a_time"):
        share = line[f"{name}_seconds"] / line["in_one_call_seconds"]
        line[f"{name}_seconds_of_one_call"] = round(share, 3)
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
    parser.add_argument("what", choices=("clock", "spread", "vllm", "ray", "server"))
    parser.add_argument("--draws", type=int, default=20, help="of lengths, for the spread")
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--per-unit", type=int, default=1)
    parser.add_argument("--rows", type=int, help="of an engine; a server's requests under way")
    parser.add_argument(
        "--step-ms", type=int, default=30, help="least milliseconds of a server's or Ray's"
    )
    arguments = parser.parse_args()
    rows = arguments.rows or (8 if arguments.what == "server" else 16)
    size = Size(arguments.questions, arguments.per_unit, rows)
    lines: Iterable[dict[str, Any]]
    if arguments.what == "clock":
        lines = on_the_clock()
    elif arguments.what == "spread":
        lines = over_draws(arguments.draws)
    elif arguments.what == "vllm":
        lines = [on_vllm(size)]
    elif arguments.what == "ray":
        lines = [on_ray(size, arguments.step_ms)]
    else:
        lines = [on_server(size, arguments.step_ms)]
    for line in lines:
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
