"""A pool of engines on a Ray cluster of two nodes, one of which dies in the middle."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from data.errors import EngineError, MisuseError
from stp.campaign.config import parse_config
from stp.campaign.pool import RayPool
from stp.campaign.run import SilentObserver, run_campaign
from stp.campaign.signal_record import read_signals_record
from stp.campaign.signals import signals_campaign
from stp.campaign.store import Store
from tests.campaign.conftest import TEMPLATE
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import rows_of
from tests.campaign.test_signals import CONFIG as DEMO_CONFIG
from tests.campaign.test_signals import SETTINGS
from tests.requirements import require_module

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def ray():
    return require_module("ray")


@pytest.fixture
def cluster(ray):
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False},
    )
    cluster.second = cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    # Nodes import the tests' scripted engine.
    ray.init(
        address=cluster.address,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}},
    )
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def open_scripted(name, folder):
    return ScriptedEngine(folder, seconds_per_call=0.05)


class _Watch(SilentObserver):
    """Counts units and acts after some of them."""

    def __init__(self, units=0, action=lambda: None):
        self.left, self.action, self.units = units, action, 0

    def unit_finished(self, stage, unit, work):
        self.units += 1
        self.left -= 1
        if self.left == 0:
            self.action()


@pytest.mark.slow
def test_a_node_that_dies_costs_its_units_only(cluster, configure, tmp_path, caplog):
    config = configure(questions=1, unit_trajectories=1)
    run_campaign(config, tmp_path / "alone", open_model=lambda name, path: ScriptedEngine(path))

    def pool(prepared, open_model):
        return RayPool(prepared, open_model=open_model)

    # Both nodes have an actor; the second dies with the unit that it has in work: a moment after a
    # unit's end, when its actor has been given another.
    dies = threading.Timer(0.2, cluster.remove_node, [cluster.second], {"allow_graceful": False})
    watch = _Watch(12, dies.start)
    result = run_campaign(
        config, tmp_path / "pool", open_model=open_scripted, open_pool=pool, observer=watch
    )
    dies.join()
    assert result.finished and watch.left < 0
    assert "was lost with its actor and is given to another" in caplog.text
    assert rows_of(tmp_path / "pool") == rows_of(tmp_path / "alone")
    manifest = Store(tmp_path / "pool").read_manifest()
    assert manifest.models[0].engine == {"engine": "scripted"}
    assert (
        manifest.stages["probe"].samples
        == Store(tmp_path / "alone").read_manifest().stages["probe"].samples
    )

    # On what is left of the cluster: a stop, an engine that fails, what it has not, a real model.
    stop = threading.Event()
    halted = run_campaign(
        config,
        tmp_path / "stopped",
        open_model=open_scripted,
        open_pool=pool,
        observer=_Watch(3, stop.set),
        stop=stop,
    )
    assert not halted.finished and 3 <= halted.units <= 4

    def open_failing(name, folder):
        def fail(trees):
            raise EngineError("the card fell out")

        return ScriptedEngine(folder, before_call=fail)

    with pytest.raises(EngineError, match="the card fell out"):
        run_campaign(
            config,
            tmp_path / "failed",
            open_model=open_failing,
            open_pool=pool,
        )
    greedy = config.model_copy(
        update={"engine": config.engine.model_copy(update={"gpus_per_actor": 2})}
    )
    with pytest.raises(MisuseError, match=r"needs 2 GPUs .* has 0"):
        run_campaign(greedy, tmp_path / "gpus", open_pool=pool)

    demo = parse_config(DEMO_CONFIG, source="test")
    run_campaign(demo, tmp_path / "demo-alone")
    assert run_campaign(demo, tmp_path / "demo-pool", open_pool=pool).finished
    assert rows_of(tmp_path / "demo-pool") == rows_of(tmp_path / "demo-alone")
    for folder, how in (
        (tmp_path / "demo-pool", {"open_pool": pool}),
        (tmp_path / "demo-alone", {}),
    ):
        assert signals_campaign(folder, SETTINGS, **how).finished
    assert rows_of(tmp_path / "demo-pool") == rows_of(tmp_path / "demo-alone")
    record = read_signals_record(Store(tmp_path / "demo-pool"))
    assert record.engines["demo"]["engine"] == "transformers"


RAYLET_DIES = """
import os, signal, sys
from pathlib import Path
import tests.campaign.test_pool as pool_tests
from stp.campaign.config import parse_config
from stp.campaign.pool import RayPool
from stp.campaign.run import run_campaign

def pool(prepared, open_model):
    return RayPool(prepared, open_model=open_model, address="local")

def kill():
    for entry in Path("/proc").glob("[0-9]*/stat"):
        name, _, fields = entry.read_text().partition("(")[2].rpartition(")")
        if name == "raylet" and int(fields.split()[1]) == os.getpid():
            os.kill(int(entry.parent.name), signal.SIGKILL)

config = parse_config(Path(sys.argv[1]).read_text(), source="test")
run_campaign(config, sys.argv[2], open_model=pool_tests.open_slow, open_pool=pool,
             observer=pool_tests._Watch(3, kill))
"""


def open_slow(name, folder):
    return ScriptedEngine(folder, seconds_per_call=1.0)


@pytest.mark.slow
def test_a_run_ends_with_an_error_where_no_node_is_left(model_folder, sevens, tmp_path):
    settings = {
        **{"model": model_folder, "name": "scripted", "benchmark": sevens, "trajectories": 3},
        **{"thinking_limit": 60, "context_limit": 600, "step_tokens": 8, "probes": 4},
        **{"questions": 1, "unit_trajectories": 1},
    }
    (tmp_path / "c.toml").write_text(TEMPLATE.format(**settings))
    ended = subprocess.run(
        [sys.executable, "-c", RAYLET_DIES, str(tmp_path / "c.toml"), str(tmp_path / "c")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "EngineError: no node of the Ray cluster is left" in ended.stderr
    config = parse_config((tmp_path / "c.toml").read_text(), source="test")
    alone = run_campaign(config, tmp_path / "c", open_model=lambda n, path: ScriptedEngine(path))
    assert alone.finished
