"""Settings of all tests: one thread, no network, and a hypothesis profile that is repeatable."""

import math
import os
import tempfile

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

_CACHE = tempfile.TemporaryDirectory(prefix="stp-cache-")
os.environ["STP_CACHE_DIR"] = _CACHE.name

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402  (threads are set before imports)

from stp.cli import early_lines  # noqa: E402
from tests.effort import tries  # noqa: E402

# What a command says is tested to the line, however long the machine takes.
early_lines.CPU_SECONDS = early_lines.WAIT_SECONDS = math.inf

settings.register_profile(
    "repeatable",
    max_examples=tries(100, 40),
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _short_commands_say_nothing(monkeypatch):
    """A busy machine makes them long, and they would say that they are at work."""
    monkeypatch.setattr("stp.cli.early_lines.SECONDS_BETWEEN_LINES", 1e6)
