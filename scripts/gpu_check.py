"""Check a machine with a GPU in at most five minutes: does a campaign run, and how fast.

A Qwen3 of about 1 B parameters with random weights is made on the fly, with the demo model's
tokenizer, so nothing is downloaded. Its answers mean nothing; what is checked is

- that the engine starts, and how long it takes;
- that a small campaign runs: trajectories, every position probed, graded, curves;
- tokens per second of generation and of probing;
- prefill amplification (with blocks of the cache counted);
- repeatability: how many trajectories the same seeds give again (with transformers, all);
- signals: one pass of the transformers engine per trajectory.

Examples::

    python scripts/gpu_check.py                              # vLLM on a GPU
    python scripts/gpu_check.py --engine transformers
    python scripts/gpu_check.py --tiny --device cpu          # the whole path on a CPU

It prints one line a finding and writes them as JSON with --json. Exit code 1: something is wrong.
"""

import argparse
import json
import platform
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import data
from data.errors import StpError
from stp.campaign import SignalSettings, load_curves, run_campaign, signals_campaign
from stp.campaign.config import CampaignConfig, parse_config
from stp.campaign.store import Store

SEED = 20_260_721
LARGE = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 20,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 8192,
}
TINY = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 1024,
}

CAMPAIGN = """
name = "GPU check"

[[models]]
path = "{model}"
name = "random-qwen3"
family = "demo"

[[benchmarks]]
name = "demo"
limit = {questions}

[generation]
trajectories = {trajectories}
thinking_limit = {thinking}
answer_tokens = {answer}

[probing]
step_tokens = {step}
probes = {probes}
answer_tokens = {answer}

[engine]
name = "{engine}"
{options}

[shards]
questions = {questions}
"""


def build_model(folder: Path, *, tiny: bool, device: str) -> int:
    """Write a Qwen3 with random weights and the demo model's tokenizer; return its parameters."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    source = Path(data.__file__).parent / "demo_model"
    vocabulary = json.loads((source / "config.json").read_text())["vocab_size"]
    config = Qwen3Config(
        **(TINY if tiny else LARGE),
        vocab_size=vocabulary,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        initializer_range=0.05,
    )
    torch.manual_seed(SEED)
    torch.set_default_device(device)
    try:
        model = Qwen3ForCausalLM(config).to(torch.float32 if device == "cpu" else torch.bfloat16)
    finally:
        torch.set_default_device("cpu")
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / name, folder / name)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    del model
    if device != "cpu":
        torch.cuda.empty_cache()
    return parameters


def campaign(args: argparse.Namespace, model: Path) -> CampaignConfig:
    """Return the small campaign."""
    options: dict[str, Any] = {}
    if args.engine == "transformers":
        options["device"] = args.device
    elif not args.tiny:
        options["gpu_memory_utilization"] = args.memory_share
    text = "[engine.options]\n" if options else ""
    text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in options.items())
    sizes = (
        {"questions": 2, "trajectories": 2, "thinking": 64, "answer": 8, "step": 16, "probes": 2}
        if args.tiny
        else {
            "questions": 8,
            "trajectories": 8,
            "thinking": 2048,
            "answer": 32,
            "step": 256,
            "probes": 16,
        }
    )
    text = CAMPAIGN.format(model=model, engine=args.engine, options=text, **sizes)
    return parse_config(text, source="gpu_check")


class GpuFindings:
    """What was found, printed as it comes."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.wrong: list[str] = []

    def note(self, name: str, value: Any, unit: str = "") -> None:
        """Keep and print a figure."""
        self.values[name] = value
        shown = f"{value:,.3f}" if isinstance(value, float) else str(value)
        print(f"{name:<34} {shown} {unit}".rstrip(), flush=True)

    def require(self, holds: bool, what: str) -> None:
        """Print whether something is as it should be, and remember if it is not."""
        print(("ok     " if holds else "WRONG  ") + what, flush=True)
        if not holds:
            self.wrong.append(what)


def timed_engine_start(config: CampaignConfig, model: Path) -> float:
    """Return the seconds that an engine takes to be there."""
    from stp.engines import open_engine

    begin = time.monotonic()
    engine = open_engine(config.engine.name, model, **config.engine.options)
    seconds = time.monotonic() - begin
    engine.close()
    return seconds


def check(args: argparse.Namespace, folder: Path, findings: GpuFindings) -> None:
    """Run everything and note what comes out."""
    begin = time.monotonic()
    parameters = build_model(folder / "model", tiny=args.tiny, device=args.device)
    findings.note("model parameters", parameters)
    findings.note("model written in", time.monotonic() - begin, "s")
    config = campaign(args, folder / "model")

    findings.note("engine start", timed_engine_start(config, folder / "model"), "s")
    run_campaign(config, folder / "first")
    store = Store(folder / "first")
    manifest = store.read_manifest()
    for stage in ("generate", "probe"):
        record = manifest.stages[stage]
        seconds = max(record.seconds, 1e-9)
        findings.note(f"{stage}: generated", record.generated_tokens / seconds, "tokens/s")
        findings.note(f"{stage}: prefilled", record.prefill_tokens / seconds, "tokens/s")
        findings.note(f"{stage}: samples", record.samples)
    amplification = manifest.stages["probe"].usage.block_amplification
    findings.note("prefill amplification of probing", amplification)
    findings.require(amplification <= 1.1, "prefill amplification is at most 1.1")
    curves = load_curves(folder / "first")
    generation, probing = config.generation, config.probing
    findings.require(
        curves.trajectories == generation.trajectories * config.benchmarks[0].limit,
        f"{curves.trajectories} trajectories with {curves.positions} positions have curves",
    )
    probes = sum(store.read_shard("probes", name).num_rows for name in store.files("probes"))
    findings.require(
        probes == curves.positions * probing.probes, f"every position has {probing.probes} probes"
    )

    run_campaign(config, folder / "second")
    same = total = 0
    for name in store.files("trajectories"):
        rows = [
            Store(folder / which).read_shard("trajectories", name)["thinking_ids"].to_pylist()
            for which in ("first", "second")
        ]
        same += sum(one == other for one, other in zip(*rows, strict=True))
        total += len(rows[0])
    findings.note("trajectories that came out again", same / total)
    # vLLM forms its batches as requests come, so floating-point noise may turn a sample.
    if args.engine == "transformers":
        findings.require(same == total, f"{same} of {total} trajectories came out again")

    settings = SignalSettings(layers=("50%",), trial_tokens=8)
    begin = time.monotonic()
    signals_campaign(
        folder / "first",
        settings,
        engine="transformers",
        engine_options={"device": args.device},
    )
    findings.note("signals", curves.positions / (time.monotonic() - begin), "positions/s")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("vllm", "transformers"), default=None)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a model and a campaign of toy size")
    parser.add_argument("--memory-share", type=float, default=0.5, help="of the GPU, for vLLM")
    parser.add_argument("--json", type=Path, help="write the findings here")
    args = parser.parse_args()
    if args.engine is None:
        args.engine = "transformers" if args.device == "cpu" else "vllm"
    return args


def main() -> None:
    args = parse()
    findings = GpuFindings()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stp-gpu-check-") as folder:
        try:
            findings.note("date", datetime.now(UTC).isoformat(timespec="seconds"))
            findings.note("machine", device_name(args.device))
            findings.note("engine", args.engine)
            check(args, Path(folder), findings)
        except StpError as error:
            findings.require(False, str(error))
    findings.note("all of it took", time.monotonic() - begin, "s")
    if args.json is not None:
        args.json.write_text(json.dumps({**findings.values, "wrong": findings.wrong}, indent=2))
    sys.exit(1 if findings.wrong else 0)


def device_name(device: str) -> str:
    """Return what the work runs on."""
    import torch

    if device == "cpu":
        return f"{platform.machine()} CPU, {torch.get_num_threads()} threads"
    if not torch.cuda.is_available():
        raise SystemExit("PyTorch sees no GPU here; --tiny --device cpu runs the path on a CPU")
    properties = torch.cuda.get_device_properties(0)
    return f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"


if __name__ == "__main__":
    main()
