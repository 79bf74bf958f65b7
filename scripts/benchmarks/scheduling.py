"""Prefill amplification of a small cache: long and short trajectories mixed, all in flight at once.

The demo model on a real vLLM (a CPU build is enough), with a cache that holds only a few of the
trees' trunks. What goes through the model is counted where vLLM schedules it, preempted requests
included; what vLLM says of its cache hits leaves them out. Compared are the engine as it is
(:mod:`stp.engines.admission`) and the same engine that hands everything over at once.

    PYTHONPATH=. OMP_NUM_THREADS=1 .venv-vllm/bin/python scripts/benchmarks/scheduling.py

"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import data
from stp.engines import Branch, PromptTree, SamplingParameters, open_engine
from stp.engines.admission import Admission
from stp.engines.requests import sample_requests

DEMO = Path(data.__file__).parent / "demo_model"
BLOCK = 32


class Everything(Admission):
    """Lets every request in."""

    def admits(self, request: Any, tree: PromptTree) -> bool:
        """Say yes."""
        return True


def probing(generator: np.random.Generator, trees: int) -> list[PromptTree]:
    """Return trees of very different lengths, with a branch every 32 tokens and 8 samples each."""
    lengths = np.where(generator.random(trees) < 0.3, 800, 100)
    return [
        PromptTree(
            trunk_ids=tuple(generator.integers(5, 380, size=length).tolist()),
            branches=tuple(
                Branch(cut=cut, suffix_ids=(1, 2), seeds=tuple(range(8)))
                for cut in range(32, int(length) + 1, 32)
            ),
            max_tokens=120,
            sampling=SamplingParameters(temperature=1.0),
        )
        for length in lengths
    ]


def thinking(generator: np.random.Generator, trees: int) -> list[PromptTree]:
    """Return short prompts whose samples grow long: the cache fills while they run."""
    return [
        PromptTree(
            trunk_ids=tuple(generator.integers(5, 380, size=60).tolist()),
            branches=(Branch(cut=60, suffix_ids=(), seeds=tuple(range(8))),),
            max_tokens=700,
            # Some end early, as thinking does.
            stop_ids=frozenset(generator.integers(5, 380, size=3).tolist()),
            sampling=SamplingParameters(temperature=1.5),
        )
        for _ in range(trees)
    ]


class Counted:
    """Counts the tokens that vLLM's scheduler sends through the model."""

    def __init__(self, engine: Any) -> None:
        self.tokens = self.preemptions = 0
        scheduler = engine._engine.engine_core.engine_core.scheduler
        schedule = scheduler.schedule
        preempt = scheduler._preempt_request

        def counting(*args: Any, **named: Any) -> Any:
            output = schedule(*args, **named)
            self.tokens += output.total_num_scheduled_tokens
            return output

        def noting(*args: Any, **named: Any) -> Any:
            self.preemptions += 1
            return preempt(*args, **named)

        scheduler.schedule, scheduler._preempt_request = counting, noting


def main() -> None:
    """Print one line of JSON for each way and workload."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=96, help="blocks of the cache, of 32 tokens")
    parser.add_argument("--trees", type=int, default=12)
    parser.add_argument(
        "--cache-share", type=float, help="the engine's option; its own if left out"
    )
    arguments = parser.parse_args()
    share = {} if arguments.cache_share is None else {"cache_share": arguments.cache_share}
    engine = open_engine(
        "vllm", DEMO, num_gpu_blocks_override=arguments.blocks, max_num_seqs=64, **share
    )
    counted = Counted(engine)
    own = engine._new_admission
    for name, make in (("probing", probing), ("thinking", thinking)):
        trees = make(np.random.default_rng(3), arguments.trees)
        requests = (request for tree in trees for request in sample_requests(tree))
        least = sum(request.block_least_tokens(BLOCK) for request in requests)
        for way in ("everything at once", "as the cache allows"):
            engine._new_admission = (
                own
                if way == "as the cache allows"
                else lambda: Everything(capacity_tokens=1 << 40, block_tokens=BLOCK, most=1 << 30)
            )
            counted.tokens = counted.preemptions = 0
            before = engine.usage.copy()
            engine._engine.reset_prefix_cache()
            begin = time.perf_counter()
            engine.generate(trees)
            seconds = time.perf_counter() - begin
            used = engine.usage - before
            # The first token of a sample comes from its prefill.
            samples = sum(len(branch.seeds) for tree in trees for branch in tree.branches)
            prefilled = counted.tokens - (used.generated_tokens - samples)
            print(
                json.dumps(
                    {
                        "workload": name,
                        "way": way,
                        "samples": samples,
                        "cache_tokens": engine.cache_tokens,
                        "trunk_tokens": sum(tree.longest_cut for tree in trees),
                        "least_tokens": least,
                        "prefilled_tokens": prefilled,
                        "generated_tokens": used.generated_tokens,
                        "preemptions": counted.preemptions,
                        "seconds": round(seconds, 1),
                        "amplification": round(prefilled / least, 3),
                        # The same with the tokens that were generated on both sides.
                        "of_all_tokens": round(
                            (prefilled + used.generated_tokens) / (least + used.generated_tokens),
                            3,
                        ),
                    }
                ),
                flush=True,
            )
    engine.close()


if __name__ == "__main__":
    main()
