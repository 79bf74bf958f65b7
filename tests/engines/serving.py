"""A real ``vllm serve`` on this machine, for as long as a block lasts."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

# What `vllm serve` runs; the command itself asks for a distribution named "vllm", and the CPU
# build has another name.
_SERVE = ("-m", "vllm.entrypoints.openai.api_server")
_START_SECONDS = 300


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs."""

    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it at once, with all of its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def vllm_serve(model: Path, log: Path, *options: str) -> Iterator[Served]:
    """Serve a model in float32 with the vLLM of this Python."""
    port = free_port()
    arguments = (
        *("--model", str(model), "--served-model-name", "demo", "--dtype", "float32"),
        *("--host", "127.0.0.1", "--port", str(port), "--enforce-eager", "--block-size", "32"),
        *("--kv-cache-memory-bytes", str(64 << 20), "--enable-prompt-tokens-details"),
        # A seeded request whose prefill is split crashes vLLM 0.32 on a CPU.
        *("--no-enable-chunked-prefill", "--max-num-batched-tokens", "8192", *options),
    )
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TORCH_COMPILE_DISABLE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *_SERVE, *arguments],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    served = Served(f"http://127.0.0.1:{port}", process)
    try:
        _wait(process, served.url, log)
        yield served
    finally:
        served.kill()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/health").is_success:
                return
        time.sleep(0.5)
    raise AssertionError(f"vllm serve did not start: {log.read_text(errors='replace')[-4000:]}")
