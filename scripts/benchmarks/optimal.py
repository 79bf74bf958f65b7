"""OptimalThinkingBench whole and small, on two real models, with a judge that a real server serves.

    python scripts/benchmarks/optimal.py SMOLLM2_FOLDER --data-dir QUESTIONS --vllm PYTHON_WITH_VLLM

builds a data set, runs two models with every method, grades, compares, selects tasks and probes a
subset; every step is a command of ``stp`` as a user types it. ``scripts/convert_gguf.py`` makes the
folder. Steps that are done already are not done again.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

PORT = 8127
START_SECONDS = 240
CAMPAIGN = """name = "bridge"
[[models]]
path = "demo"
[[benchmarks]]
name = "demo"
limit = 8
[generation]
trajectories = 4
thinking_limit = 400
answer_tokens = 32
[probing]
step_tokens = 16
probes = 4
answer_tokens = 32
[shards]
questions = 4
[engine.options]
threads = 1
"""


@contextlib.contextmanager
def served(python: str, folder: Path) -> Iterator[str]:
    """Serve a model with vLLM for as long as the block lasts; yields its address."""
    command = [
        *(python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)),
        *("--served-model-name", "smollm2", "--host", "127.0.0.1", "--port", str(PORT)),
        *("--dtype", "float32", "--enforce-eager", "--block-size", "32"),
        *("--max-model-len", "4096", "--kv-cache-memory-bytes", str(1 << 30)),
    ]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TORCH_COMPILE_DISABLE": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    log = Path("vllm-server.log").open("wb")  # noqa: SIM115 (the server writes while it runs)
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{PORT}/v1"
    try:
        wait_for(server, f"{address}/models")
        yield address
    finally:
        server.terminate()
        server.wait(60)
        log.close()


def wait_for(server: "subprocess.Popen[bytes]", address: str) -> None:
    """Wait until a server answers."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if server.poll() is not None:
            raise SystemExit("the server ended; see vllm-server.log")
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(address, timeout=2).close()
            return
        time.sleep(0.5)
    raise SystemExit(f"the server did not answer within {START_SECONDS} s; see vllm-server.log")


def main() -> None:
    """Run every step and print what each took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="folder of SmolLM2-135M-Instruct")
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of question files")
    parser.add_argument("--vllm", required=True, help="a Python that has vLLM")
    parser.add_argument("--out", type=Path, default=Path("optimal-example"))
    given = parser.parse_args()
    out = given.out
    out.mkdir(parents=True, exist_ok=True)
    (out / "bridge.toml").write_text(CAMPAIGN, encoding="utf-8")
    smol = f"{given.model.resolve()};family=written-tags"
    times: list[tuple[str, float]] = []

    def stp(name: str, *arguments: str | Path) -> None:
        begin = time.monotonic()
        print(f"\n$ stp {' '.join(map(str, arguments))}", flush=True)
        subprocess.run([sys.executable, "-m", "stp.cli.main", *map(str, arguments)], check=True)
        times.append((name, time.monotonic() - begin))

    begin = time.monotonic()
    with served(given.vllm, given.model) as address:
        times.append(("server starts", time.monotonic() - begin))
        judge = f"smollm2@{address}"
        stp(
            "build",
            *("optimal", "build", out / "general", "--generator", judge, "--domains", "2"),
            *("--per-pair", "2", "--k", "2", "--rounds", "2", "--max-tokens", "400"),
        )
        common = ("--seeds", "2", "--limit", "1", "--general", "sample", "--router", judge)
        methods = "thinking,no-thinking,no-overthinking,step-by-step,router,oracle-router"
        stp(
            "run, SmolLM2",
            *("optimal", "run", smol, "--out", out / "smollm2", "--name", "SmolLM2-135M"),
            *("--size", "0.135", "--data-dir", given.data_dir, "--methods", methods),
            *("--subsets", "ovt-math,ovt-general,ovt-general+8,ut-reasoning,ut-math"),
            *("--thinking-tokens", "64", "--max-tokens", "112", *common),
        )
        stp(
            "run, demo model",
            *("optimal", "run", "demo", "--out", out / "demo", "--size", "0.0012"),
            *("--subsets", "ovt:demo,ovt-general,ut:demo", "--methods", methods),
            *(
                "--thinking-tokens",
                "300",
                "--max-tokens",
                "340",
                *common[:2],
                "--limit",
                "4",
                *common[4:],
            ),
        )
        for name in ("smollm2", "demo"):
            stp(
                f"score, {name}",
                *("optimal", "score", out / name, "--judge", judge, "--judge-repeats", "2"),
                *("--judge-max-tokens", "120", "--allow-undecided", "--replicates", "2000"),
            )
        stp(
            "select",
            *("optimal", "select", "demo", smol, "--out", out / "selection"),
            *("--tasks", "letter_counting,bitwise_arithmetic,fraction_simplification"),
            *("--limit", "2", "--seeds", "2", "--thinking-tokens", "64", "--max-tokens", "112"),
        )
    stp("probe a subset", "run", out / "bridge.toml", "--out", out / "campaign")
    stp(
        "compare",
        *("optimal", "compare", out / "smollm2", out / "demo", "--out", out / "comparison"),
        *("--campaign", out / "campaign", "--allow-undecided", "--replicates", "2000"),
    )
    print()
    for name, seconds in [*times, ("all", time.monotonic() - begin)]:
        print(f"{name:<20}{seconds:8.1f} s")


if __name__ == "__main__":
    main()
