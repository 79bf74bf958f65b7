"""What live methods save: tokens and time, against full thinking and plain generation.

Every arm makes the same trajectories in the same run: plain generation (two calls of the engine,
no runner), the runner without a method, and every early-exit method at the setting that OTBench
selects on validation questions. Seconds are those of the process's CPU on one thread, which other
work on the machine does not change; the clock's are beside them.

    python scripts/benchmarks/live.py RELEASE --model demo --tasks 12,24,40 --batches 1,8,32
"""

import argparse
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from baselines.registry import BUILT_IN, find_method
from evaluator.answers import Checker
from evaluator.live.policy import Policy, make_policy
from evaluator.live.run import make
from evaluator.live.setup import Wanted, get_ready, live_tasks
from evaluator.live.thinking import LiveTask, Plan
from evaluator.otbench.asked import parse_method
from evaluator.otbench.load import Release, load_release
from evaluator.otbench.run import evaluate
from stp.campaign.fit import answer_limit
from stp.campaign.sections import EngineConfig, ModelConfig
from stp.engines.base import Branch, Engine, PromptTree
from stp.seeds import sample_seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """What an arm took and gave; accuracy is None where nothing was graded."""

    name: str
    cpu_seconds: float
    clock_seconds: float
    tokens: int
    signal_tokens: int
    accuracy: float | None


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return CPU seconds, seconds of the clock, and what the work gives."""
    cpu, clock = time.process_time(), time.perf_counter()
    made = work()
    return time.process_time() - cpu, time.perf_counter() - clock, made


def plain(engine: Engine, plan: Plan, tasks: Sequence[LiveTask], batch: int) -> int:
    """Think and answer without the runner, so many at once; return the thinking tokens."""
    form, total = plan.subject.format, 0

    def seed(task: LiveTask, phase: str) -> int:
        return sample_seed(
            plan.config.seed,
            model=plan.subject.name,
            benchmark=task.benchmark,
            question=task.question.id,
            trajectory=task.trajectory,
            phase=phase,
        )

    def tree(task: LiveTask, ids: tuple[int, ...], phase: str, most: int) -> PromptTree:
        return PromptTree(
            trunk_ids=ids,
            branches=(Branch(cut=len(ids), suffix_ids=(), seeds=(seed(task, phase),)),),
            max_tokens=most,
            stop_ids=form.thinking_stop_ids if phase == "think" else form.answer_stop_ids,
            sampling=plan.subject.sampling,
        )

    def drained(trees: dict[int, PromptTree], then: Callable[[int, tuple[int, ...]], None]) -> None:
        waiting, tickets = list(trees.items()), {}
        while waiting or tickets:
            while waiting and len(tickets) < batch:
                place, asked = waiting.pop(0)
                tickets[engine.submit(asked)] = place
            for entry in engine.step().trees:
                then(tickets.pop(entry.ticket), entry.made[0][0].token_ids)

    outputs: dict[int, tuple[int, ...]] = {}
    drained(
        {
            place: tree(task, task.prompt_ids, "think", task.thinking_limit)
            for place, task in enumerate(tasks)
        },
        outputs.__setitem__,
    )
    answers = {}
    for place, ids in outputs.items():
        parts = form.split(ids)
        total += len(parts.thinking_ids)
        prompt = tasks[place].prompt_ids + ids
        limit = answer_limit(
            len(prompt),
            answer_tokens=plan.config.generation.answer_tokens,
            context_limit=plan.subject.context_limit,
        )
        if parts.closed:
            answers[place] = tree(tasks[place], prompt, "answer", limit)
    drained(answers, lambda place, ids: None)
    return total


def measured(
    name: str,
    engine: Engine,
    plan: Plan,
    tasks: Sequence[LiveTask],
    batch: int,
    checker: Checker,
) -> Arm:
    """Return what the runner took for trajectories, and what they gave."""
    cpu, clock, made = timed(lambda: list(make(engine, plan, tasks, batch, threading.Event())))
    text = plan.subject.format.decode
    verdicts = checker.check_many(
        [(task.question, text(found.answer_ids, skip_special=True)) for task, found in made]
    )
    return Arm(
        name=name,
        cpu_seconds=cpu,
        clock_seconds=clock,
        tokens=sum(found.tokens for _, found in made),
        signal_tokens=sum(found.signal_tokens for _, found in made),
        accuracy=100.0 * sum(verdict.right for verdict in verdicts) / len(verdicts),
    )


def selected(release: Release, method: str) -> Policy:
    """Return a method at the setting that OTBench selects."""
    found = evaluate(release, parse_method(method, release))
    return make_policy(method, str(found.settings[found.selected]), release)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("release", type=Path)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--tasks", default="12,24,40", help="trajectories at each batch size")
    parser.add_argument("--trajectories", type=int, default=2, help="of every question")
    options = parser.parse_args()
    release = load_release(options.release)
    wanted = Wanted(
        model=ModelConfig(path=options.model),
        release=options.release,
        engine=EngineConfig(options={"threads": 1}),
    )
    ready = get_ready(wanted)
    every = live_tasks(ready, (), trajectories=options.trajectories, split=None)
    names = [name for name in BUILT_IN if find_method(name).method.strategy == "early_exit"]
    policies = {name: selected(release, name) for name in names}
    layers = sorted({layer for p in policies.values() for layer in (*p.layers, *p.prompt_layers)})
    engine, plan = ready.open()
    plan = replace(plan, layers=tuple(layers))
    with closing(engine), Checker() as checker:
        sizes = zip(options.batches.split(","), options.tasks.split(","), strict=True)
        for batch, count in ((int(a), int(b)) for a, b in sizes):
            tasks = every[:count]
            plain(engine, plan, tasks[:2], batch)  # warm
            cpu, clock, tokens = timed(partial(plain, engine, plan, tasks, batch))
            arms = [
                Arm(
                    name="plain generation",
                    cpu_seconds=cpu,
                    clock_seconds=clock,
                    tokens=tokens,
                    signal_tokens=0,
                    accuracy=None,
                ),
                measured("runner, no method", engine, plan, tasks, batch, checker),
            ]
            for name, policy in policies.items():
                own = replace(plan, policy=policy)
                label = f"{name} at {policy.setting}"
                arms.append(measured(label, engine, own, tasks, batch, checker))
            show(batch, len(tasks), arms)


def show(batch: int, count: int, arms: Sequence[Arm]) -> None:
    """Print a Markdown table."""
    print(f"\nbatch {batch}, {count} trajectories\n")
    heads = ("", "accuracy, %", "thinking", "signals", "tokens", "CPU s", "time", "clock s")
    print("| " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * (len(heads) - 1))
    full = arms[1]
    for arm in arms:
        accuracy = "" if arm.accuracy is None else f"{arm.accuracy:.0f}"
        tokens = (arm.tokens + arm.signal_tokens) / full.tokens
        shown = (
            arm.name,
            accuracy,
            f"{arm.tokens:,}",
            f"{arm.signal_tokens:,}",
            f"{100 * tokens:.0f} %",
            f"{arm.cpu_seconds:.2f}",
            f"{100 * arm.cpu_seconds / full.cpu_seconds:.0f} %",
            f"{arm.clock_seconds:.1f}",
        )
        print("| " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main()
