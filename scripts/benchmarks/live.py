"""What live methods save: tokens and time, against full thinking by plain generation.

Every arm makes the same trajectories in the same run, in turns of some questions each: plain
generation (two calls of the engine, no runner), the runner without a method, and every early-exit
method at the setting that OTBench selects on validation questions. A turn goes through all arms, so
that what else the machine does meets all of them. Seconds are those of the CPU on one thread;
answers a minute are by the clock. Stopped, the same command continues; the table is printed at the
end.

Without a release it measures what the runner costs without a method. Other programs on the machine
change the time by more than a few percent from one second to the next, so plain generation and the
runner run side by side, each on its own engine, and take turns every few steps.

    python scripts/benchmarks/live.py RELEASE --out FOLDER
    python scripts/benchmarks/live.py --out FOLDER --repeats 5 [--engine vllm]
"""

import argparse
import gc
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from baselines.registry import BUILT_IN, find_method
from data.errors import MisuseError
from evaluator.answers import Checker
from evaluator.live.policy import Policy, make_policy
from evaluator.live.run import make
from evaluator.live.setup import Wanted, get_ready, live_tasks
from evaluator.live.thinking import LiveTask, Plan
from evaluator.otbench.asked import parse_method
from evaluator.runs.folder import locked_folder
from evaluator.runs.record import RunRecord, check_folder, write_record
from stp.asking.store import ResponseStore
from stp.campaign.fit import answer_limit
from stp.campaign.sections import BenchmarkConfig, EngineConfig, ModelConfig
from stp.cli.progress import Screen, shown_progress
from stp.engines.base import Branch, EndedWork, Engine, PromptTree, TreeCompletions
from stp.seeds import sample_seed

KIND: Final = "scripts/benchmarks/live.py"
PLAIN: Final = "full thinking, plain generation"
RUNNER: Final = "full thinking, the runner"
STEPS_OF_A_SIDE: Final = 8
LIMITS: Final = {
    "generation": {"thinking_limit": 512, "answer_tokens": 32},
    "probing": {"step_tokens": 16, "answer_tokens": 32},
}
"""Of docs/examples/live_demo.toml, where no release says."""

Made = tuple[LiveTask, int, int, tuple[int, ...]]
"""A trajectory: thinking tokens, signal tokens, and its answer's ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Questions that all arms answer, one arm after the other."""

    batch: int
    number: int
    tasks: Sequence[LiveTask]


class _Plain:
    """Thinking and answering without the runner: trees in, completions out."""

    def __init__(self, engine: Engine, plan: Plan, batch: int) -> None:
        self._engine, self._plan, self._batch = engine, plan, batch

    def make(self, tasks: Sequence[LiveTask]) -> list[Made]:
        """Make trajectories, this many at once."""
        plan, form = self._plan, self._plan.subject.format
        prompts = {
            place: self._tree(task, task.prompt_ids, "think", task.thinking_limit)
            for place, task in enumerate(tasks)
        }
        outputs = self._drained(prompts)
        follow = {}
        for place, ids in outputs.items():
            prompt = tasks[place].prompt_ids + ids
            limit = answer_limit(
                len(prompt),
                answer_tokens=plan.config.generation.answer_tokens,
                context_limit=plan.subject.context_limit,
            )
            if form.split(ids).closed:
                follow[place] = self._tree(tasks[place], prompt, "answer", limit)
        answers = self._drained(follow)
        return [
            (task, len(form.split(outputs[place]).thinking_ids), 0, answers.get(place, ()))
            for place, task in enumerate(tasks)
        ]

    def _tree(self, task: LiveTask, ids: tuple[int, ...], phase: str, most: int) -> PromptTree:
        subject = self._plan.subject
        seed = sample_seed(
            self._plan.config.seed,
            model=subject.name,
            benchmark=task.benchmark,
            question=task.question.id,
            trajectory=task.trajectory,
            phase=phase,
        )
        thinks = phase == "think"
        return PromptTree(
            trunk_ids=ids,
            branches=(Branch(cut=len(ids), suffix_ids=(), seeds=(seed,)),),
            max_tokens=most,
            stop_ids=subject.format.thinking_stop_ids if thinks else subject.format.answer_stop_ids,
            sampling=subject.sampling,
        )

    def _drained(self, trees: Mapping[int, PromptTree]) -> dict[int, tuple[int, ...]]:
        waiting, tickets = list(trees.items()), dict[int, int]()
        found: dict[int, tuple[int, ...]] = {}
        while waiting or tickets:
            while waiting and len(tickets) < self._batch:
                place, tree = waiting.pop(0)
                tickets[self._engine.submit(tree)] = place
            for entry in self._engine.step().trees:
                if entry.error is not None:
                    raise entry.error
                made = cast("TreeCompletions", entry.made)
                found[tickets.pop(entry.ticket)] = made[0][0].token_ids
        return found


def by_runner(engine: Engine, plan: Plan, tasks: Sequence[LiveTask], batch: int) -> list[Made]:
    """Make trajectories with the live runner."""
    return [
        (task, found.tokens, found.signal_tokens, found.answer_ids)
        for task, found in make(engine, plan, tasks, batch, threading.Event())
    ]


class _Side:
    """An engine that hands over to the other side's after some steps, and waits for its turn."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._steps = engine, 0
        self.other: _Side | None = None
        self.turn = threading.Event()
        self.waited_seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def step(self) -> EndedWork:
        """Do a step of the engine."""
        self._steps += 1
        if self._steps % STEPS_OF_A_SIDE == 0 and self.other is not None:
            self.turn.clear()
            self.other.turn.set()
            self.wait()
        return self._engine.step()

    def wait(self) -> None:
        """Wait for the turn; once the other side has ended, it is always this side's."""
        began = time.perf_counter()
        self.turn.wait()
        self.waited_seconds += time.perf_counter() - began

    def end(self) -> None:
        """Leave all turns to the other side."""
        if self.other is not None:
            self.other.other = None
            self.other.turn.set()


def side_by_side(turn: Turn, engines: Sequence[Engine], plan: Plan) -> list[dict[str, Any]]:
    """Return what plain generation and the runner took for a turn, while they took turns."""
    sides = [_Side(engine) for engine in engines]
    sides[0].other, sides[1].other = sides[1], sides[0]
    # Who goes first, and on which engine, alternates.
    sides[turn.number // 2 % 2].turn.set()

    def work(arm: str, side: _Side) -> dict[str, Any]:
        side.wait()
        side.waited_seconds = 0.0
        try:
            row = row_of(arm, turn, cast("Engine", side), plan)
        finally:
            side.end()
        return {**row, "clock_seconds": row["clock_seconds"] - side.waited_seconds}

    arms = (PLAIN, RUNNER) if turn.number % 2 == 0 else (RUNNER, PLAIN)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, arms, sides))


def row_of(arm: str, turn: Turn, engine: Engine, plan: Plan) -> dict[str, Any]:
    """Return what an arm took for a turn, and what it gave."""
    gc.collect()
    cpu, clock = time.thread_time(), time.perf_counter()
    if arm == PLAIN:
        made = _Plain(engine, plan, turn.batch).make(turn.tasks)
    else:
        made = by_runner(engine, plan, turn.tasks, turn.batch)
    cpu, clock = time.thread_time() - cpu, time.perf_counter() - clock
    text = plan.subject.format.answer_text
    with Checker() as checker:
        verdicts = checker.check_many([(task.question, text(ids)) for task, _, _, ids in made])
    return {
        "batch": turn.batch,
        "turn": turn.number,
        "arm": arm,
        "cpu_seconds": cpu,
        "clock_seconds": clock,
        "trajectories": len(made),
        "right": sum(verdict.right for verdict in verdicts),
        "tokens": sum(tokens for _, tokens, _, _ in made),
        "signal_tokens": sum(tokens for _, _, tokens, _ in made),
    }


def turns_of(
    tasks: Sequence[LiveTask], batches: Sequence[int], counts: Sequence[int], least: int
) -> Iterator[Turn]:
    """Yield the turns: of two batches each, so that rows that end are followed by others."""
    for batch, count in zip(batches, counts, strict=True):
        size = max(least, 2 * batch)
        for number, start in enumerate(range(0, min(count, len(tasks)), size)):
            yield Turn(batch=batch, number=number, tasks=tasks[start : min(start + size, count)])


def selected(wanted: Wanted, screen: Screen) -> dict[str, Policy]:
    """Return every early-exit method at the setting that OTBench selects, by its label."""
    # Tables are read here only: the environment of a real vLLM has no pandas.
    from evaluator.otbench.load import load_release
    from evaluator.otbench.run import evaluate

    assert wanted.release is not None
    release = load_release(wanted.release, progress=screen)
    names = [name for name in BUILT_IN if find_method(name).method.strategy == "early_exit"]
    shown, found = screen.stage("training the methods"), {}
    for done, name in enumerate(names, start=1):
        chosen = evaluate(release, parse_method(name, release))
        setting = str(chosen.settings[chosen.selected])
        found[f"{name} at {setting}"] = make_policy(name, setting, release, wanted.model.name)
        shown(done, len(names))
    return found


def measure(options: argparse.Namespace, screen: Screen) -> list[dict[str, Any]]:
    """Make what is missing in the folder; return all rows."""
    wanted = Wanted(
        model=ModelConfig(path=options.model),
        release=options.release,
        engine=EngineConfig(
            name=options.engine, options={"threads": 1} if options.engine == "transformers" else {}
        ),
        changes={} if options.release else LIMITS,
    )
    ready = get_ready(wanted, progress=screen)
    named = () if options.release else (BenchmarkConfig(name="demo", limit=200),)
    tasks = live_tasks(ready, named)
    batches, counts = (
        [int(number) for number in text.split(",")] for text in (options.batches, options.questions)
    )
    turns = [
        replace(turn, number=repeat * len(tasks) + turn.number)
        for repeat in range(options.repeats)
        for turn in turns_of(tasks, batches, counts, options.turn)
    ]
    asked = {
        "release": None if ready.release is None else ready.release.checksum,
        "model": ready.model.name,
        "engine": options.engine,
        "turns": [[turn.batch, turn.number, len(turn.tasks)] for turn in turns],
    }
    record = RunRecord(kind=KIND, name=ready.model.name, asked=asked, models={})
    with locked_folder(options.out):
        before = check_folder(options.out, KIND)
        if before is None:
            write_record(options.out, record)
        elif before.asked != asked:
            raise MisuseError(f"{options.out}: holds other measurements; name another folder")
        store = ResponseStore(options.out / "rows.jsonl")
        done = {(row["batch"], row["turn"], row["arm"]) for row in store.rows()}
        policies = selected(wanted, screen) if options.release else {}
        arms: dict[str, Policy | None] = {PLAIN: None, RUNNER: None, **policies}
        missing = [
            (turn, arm)
            for number, turn in enumerate(turns)
            for arm in (arms if number % 2 == 0 else reversed(arms))
            if (turn.batch, turn.number, arm) not in done
        ]
        if missing:
            screen.stage("loading the model")
            with ExitStack() as opened, store as rows:
                engine, plan = ready.open()
                opened.enter_context(closing(engine))
                layers = {n for p in policies.values() for n in (*p.layers, *p.prompt_layers)}
                plan = replace(plan, layers=tuple(sorted(layers)))
                engines = [engine]
                if not policies:
                    engines.append(opened.enter_context(closing(ready.open()[0])))
                warm = tasks[: min(4, len(tasks))]
                for each in engines:
                    _Plain(each, plan, len(warm)).make(warm)
                    by_runner(each, plan, warm, len(warm))
                shown = screen.stage("thinking")
                for number, (turn, arm) in enumerate(missing, start=1):
                    if policies:
                        rows.append_row(row_of(arm, turn, engine, replace(plan, policy=arms[arm])))
                    elif arm == PLAIN:
                        for row in side_by_side(turn, engines, plan):
                            rows.append_row(row)
                    shown(number, len(missing))
        return list(store.rows())


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table: accuracy and tokens at the largest batch, time and pace at each."""
    batches = sorted({row["batch"] for row in rows})
    arms = list(dict.fromkeys(row["arm"] for row in rows if row["turn"] == 0))
    ordered = [arm for arm in (PLAIN, RUNNER) if arm in arms]
    ordered += sorted(arm for arm in arms if arm not in ordered)

    def total(arm: str, batch: int, name: str) -> float:
        return float(sum(r[name] for r in rows if r["arm"] == arm and r["batch"] == batch))

    heads = ["", "right, %", "thinking", "signals", "tokens with signals"]
    heads += [f"time, batch {batch}" for batch in batches]
    heads += [f"answers a minute, batch {batch}" for batch in batches]
    lines = ["| " + " | ".join([*heads, "costs more time than it saves"]) + " |"]
    lines.append("|---|" + "---:|" * (len(heads) - 1) + "---|")
    largest = batches[-1]
    for arm in ordered:
        count = total(arm, largest, "trajectories")
        tokens = [total(arm, largest, name) for name in ("tokens", "signal_tokens")]
        time_taken = [
            total(arm, batch, "cpu_seconds") / total(PLAIN, batch, "cpu_seconds")
            for batch in batches
        ]
        pace = [
            60 * total(arm, batch, "trajectories") / total(arm, batch, "clock_seconds")
            for batch in batches
        ]
        dearer = [str(batch) for batch, share in zip(batches, time_taken, strict=True) if share > 1]
        shown = [arm, f"{100 * total(arm, largest, 'right') / count:.0f}"]
        shown += [f"{each / count:.1f}" for each in tokens]
        shown.append(f"{100 * sum(tokens) / total(PLAIN, largest, 'tokens'):.0f} %")
        shown += [f"{100 * share:.0f} %" for share in time_taken]
        shown += [f"{each:.0f}" for each in pace]
        said = f"at batch {', '.join(dearer)}" if dearer and arm not in (PLAIN, RUNNER) else ""
        lines.append("| " + " | ".join([*shown, said]) + " |")
    sizes = ", ".join(f"{total(PLAIN, batch, 'trajectories'):.0f}" for batch in batches)
    for batch in batches:
        shares = [
            float(one["cpu_seconds"] / other["cpu_seconds"])
            for one in rows
            for other in rows
            if one["arm"] == RUNNER and one["batch"] == batch
            if other["arm"] == PLAIN and (other["batch"], other["turn"]) == (batch, one["turn"])
        ]
        middle, least, most = (100 * of(shares) for of in (statistics.median, min, max))
        lines.append(
            f"\nThe runner without a method at batch {batch}: {middle:.1f} % of the CPU of plain "
            f"generation, median of {len(shares)} turns ({least:.0f} to {most:.0f} %)."
        )
    lines.append(f"\nTrajectories at batch {', '.join(map(str, batches))}: {sizes}.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("release", type=Path, nargs="?", help="with causal steps and signals")
    parser.add_argument("--out", type=Path, required=True, help="folder of the measurements")
    parser.add_argument("--model", default="demo")
    parser.add_argument("--engine", default="transformers")
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--questions", default="12,32,60", help="at each batch size")
    parser.add_argument("--turn", type=int, default=4, help="least questions in a turn")
    parser.add_argument("--repeats", type=int, default=1, help="of everything")
    options = parser.parse_args()
    with shown_progress(at_once=True) as screen:
        rows = measure(options, screen)
    print(markdown(rows))


if __name__ == "__main__":
    main()
