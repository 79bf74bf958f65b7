"""``stp think``: LLMThinkBench; run models on basic arithmetic, compare and rank them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from data.errors import EngineError
    from evaluator.thinkbench import Comparison, Run, ThinkConfig
    from stp.asking import ModelSpec

think = typer.Typer(
    help="LLMThinkBench: accuracy and length on basic arithmetic, and the O-Score.",
    no_args_is_help=True,
)

Places = Annotated[
    list[str], typer.Argument(help="Run folders, folders of runs, or leaderboard files.")
]
PoolOption = Annotated[
    str, typer.Option("--pool", help="Range of tokens: global, or per-task.", show_default=True)
]
Replicates = Annotated[
    int, typer.Option("--replicates", min=0, help="Bootstrap replicates; 0: no intervals.")
]
AllowIncomplete = Annotated[
    bool,
    typer.Option("--allow-incomplete", help="Take runs that lack responses as they are."),
]


@think.command("run")
def run(
    models: Annotated[
        list[str],
        typer.Argument(
            help="'demo', a model folder or hub id, provider/model of an API, or file.py:function."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The run's folder; of several, their parent.")],
    tasks: Annotated[
        str,
        typer.Option("--tasks", help="'all', 'puzzles', or names, comma-separated."),
    ] = "all",
    samples: Annotated[int, typer.Option("--samples", min=1, help="Questions per task, fold.")] = (
        1000
    ),
    folds: Annotated[int, typer.Option("--folds", min=1, help="Independent samples.")] = 3,
    seed: Annotated[int, typer.Option("--seed", help="Of questions and samples.")] = 20260721,
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", help="List sizes, comma-separated, in turn.", show_default="own"),
    ] = None,
    task_sizes: Annotated[
        list[str] | None,
        typer.Option("--task-sizes", help="Sizes of one task: TASK=8,16. May be repeated."),
    ] = None,
    low: Annotated[int, typer.Option("--low", help="Least value.")] = -1000,
    high: Annotated[int, typer.Option("--high", help="Greatest value.")] = 1000,
    styles: Annotated[
        str, typer.Option("--style", help="standard, concise, ultra-concise; several: a study.")
    ] = "standard",
    max_tokens: Annotated[
        str, typer.Option("--max-tokens", help="Caps of a response, or none; several: a study.")
    ] = "none",
    thinking_tokens: Annotated[
        str, typer.Option("--thinking-tokens", help="Thinking budgets, or none; several: a study.")
    ] = "none",
    effort: Annotated[
        str, typer.Option("--effort", help="Reasoning efforts, or none; several: a study.")
    ] = "none",
    thinking: Annotated[
        str, typer.Option("--thinking", help="default, on, off; several: a study.")
    ] = "default",
    tools: Annotated[
        str,
        typer.Option(
            "--tools", help="none, calculator, python, calculator+python; several: a study."
        ),
    ] = "none",
    temperature: Annotated[
        float | None, typer.Option("--temperature", help="Of the sampling.")
    ] = 0.1,
    top_p: Annotated[float | None, typer.Option("--top-p", help="Of the sampling.")] = 0.9,
    own_sampling: Annotated[
        bool, typer.Option("--own-sampling", help="Sample as the model's family or API does.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option("--engine", help="transformers, vllm, api, function.", show_default="by name"),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Address of an OpenAI-compatible server.")
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(
            "--family", help="Thinking format, a TOML file, or none.", show_default="by name"
        ),
    ] = None,
    revision: Annotated[str | None, typer.Option("--revision", help="Hub revision.")] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", help="Engine or provider option NAME=VALUE. May be repeated."),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", min=1, help="Requests at a time.", show_default="by engine"),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="What the model is called.", show_default="own")
    ] = None,
    attributes: Annotated[
        list[str] | None,
        typer.Option("--attribute", help="Fact for correlations: parameters=14e9. Repeatable."),
    ] = None,
) -> None:
    """Run models on the tasks; the same command goes on where it was stopped.

    An option with several values, and several models, make a study: every combination is a run in
    a folder of its own below --out, and they are compared at the end.
    """
    from rich.console import Console

    from stp.asking import ModelSpec
    from stp.cli.think_options import configurations, named_values

    specs = [
        ModelSpec(
            model=model,
            engine=engine,
            base_url=base_url,
            family=family,
            revision=revision,
            options=named_values("--option", options or []),
            batch=batch,
        )
        for model in models
    ]
    variants = configurations(
        tasks=tasks,
        samples=samples,
        folds=folds,
        seed=seed,
        sizes=sizes,
        task_sizes=task_sizes or [],
        low=low,
        high=high,
        styles=styles,
        max_tokens=max_tokens,
        thinking_tokens=thinking_tokens,
        effort=effort,
        thinking=thinking,
        tools=tools,
        temperature=None if own_sampling else temperature,
        top_p=None if own_sampling else top_p,
    )
    console = Console(highlight=False)
    facts = named_values("--attribute", attributes or [])
    runs = list(_runs(console, specs, variants, out, name, facts))
    failure = _failure(runs)
    # Where a whole task failed the runs cannot be compared, and the failure is why.
    if failure is not None and any(
        one.measures.tasks.keys() != set(one.config.tasks) for one in runs
    ):
        raise failure
    if len(runs) > 1:
        _compare(console, runs, "global", 1000, allow_incomplete=True)
    if failure is not None:
        raise failure


def _failure(runs: "Sequence[Run]") -> "EngineError | None":
    """Return what to say of the questions that have no response."""
    from data.errors import EngineError

    failed = [run for run in runs if run.failed]
    if not failed:
        return None
    questions = sum(len(run.failed) for run in failed)
    first = next(iter(failed[0].failed.values()))
    return EngineError(
        f"{questions:,} questions have no response (the first: {first}); what was answered is "
        "kept, and the same command asks the others again"
    )


def _runs(
    console: "Console",
    specs: "Sequence[ModelSpec]",
    variants: "Sequence[tuple[str, ThinkConfig]]",
    out: Path,
    name: str | None,
    attributes: dict[str, Any],
) -> "Iterator[Run]":
    """Run every model in every variant; each model is opened once."""
    from evaluator.thinkbench import evaluate
    from evaluator.thinkbench.tables import summary_table
    from stp.asking import open_responder
    from stp.cli.think_options import folder_name

    for spec, model_name in zip(specs, _names(specs, name), strict=True):
        with _status(console, f"Opening {spec.model}"):
            responder = open_responder(spec)
        with responder:
            for label, config in variants:
                title = f"{model_name} {label}".strip()
                parts = [model_name] if len(specs) > 1 else []
                parts += [label] if len(variants) > 1 else []
                folder = out.expanduser()
                if parts:
                    folder /= folder_name(" ".join(parts))
                with _bar(title) as advance:
                    done = evaluate(
                        responder,
                        folder,
                        config,
                        name=title,
                        attributes=attributes,
                        on_progress=advance,
                    )
                console.print(summary_table(done).to_rich())
                console.print(f"Run: {folder}", markup=False, soft_wrap=True)
                yield done


def _names(specs: "Sequence[ModelSpec]", name: str | None) -> list[str]:
    """Return what the models are called: the last parts of their names where these differ."""
    from data.errors import MisuseError

    if name is not None:
        if len(specs) > 1:
            raise MisuseError("--name is for one model; several are called by their own names")
        return [name]
    short = [spec.model.rstrip("/").rpartition("/")[2] for spec in specs]
    return short if len(set(short)) == len(short) else [spec.model for spec in specs]


@think.command("grade")
def grade(places: Places) -> None:
    """Grade stored responses again, with this version's parser; needs no model."""
    from rich.console import Console

    from evaluator.thinkbench import grade_run
    from evaluator.thinkbench.leaderboard import find_runs
    from evaluator.thinkbench.tables import summary_table

    console = Console(highlight=False)
    for found in find_runs(places):
        console.print(summary_table(grade_run(found.folder)).to_rich())


@think.command("aggregate")
def aggregate(
    places: Places,
    out: Annotated[Path, typer.Option("--out", help="The leaderboard file.")] = Path(
        "leaderboard.json"
    ),
    pool: PoolOption = "global",
    replicates: Replicates = 10_000,
    allow_incomplete: AllowIncomplete = False,
) -> None:
    """Merge runs into a leaderboard file: scores, their pool, and each run's metadata."""
    from rich.console import Console

    from evaluator.thinkbench.leaderboard import find_runs, write_leaderboard
    from evaluator.thinkbench.tables import leaderboard_table

    console = Console(highlight=False)
    comparison = _compared(find_runs(places), pool, replicates, allow_incomplete)
    path = write_leaderboard(comparison, out)
    console.print(leaderboard_table(comparison).to_rich())
    console.print(f"Leaderboard: {path}", markup=False, soft_wrap=True)


@think.command("leaderboard")
def leaderboard(
    places: Places,
    out: Annotated[Path | None, typer.Option("--out", help="Write a page (HTML) as well.")] = None,
    pool: PoolOption = "global",
    replicates: Replicates = 1000,
    allow_incomplete: AllowIncomplete = False,
) -> None:
    """Rank runs by their O-Score."""
    from rich.console import Console

    from evaluator.thinkbench.leaderboard import find_runs
    from evaluator.thinkbench.page import write_page
    from evaluator.thinkbench.tables import leaderboard_table

    console = Console(highlight=False)
    comparison = _compared(find_runs(places), pool, replicates, allow_incomplete)
    console.print(leaderboard_table(comparison).to_rich())
    if out is not None:
        _say_page(console, write_page(comparison, out))


@think.command("compare")
def compare(
    places: Places,
    campaigns: Annotated[
        list[str] | None,
        typer.Option(
            "--campaign",
            help="A campaign on think-TASK benchmarks: OR, AD and frontiers beside. Repeatable.",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="A model that sorts errors and patterns beside the rules."),
    ] = None,
    judge_samples: Annotated[
        int, typer.Option("--judge-samples", min=1, help="Responses that the judge sees.")
    ] = 100,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for tables (CSV, Markdown) and a page.")
    ] = None,
    pool: PoolOption = "global",
    replicates: Replicates = 10_000,
    allow_incomplete: AllowIncomplete = False,
) -> None:
    """Print runs side by side: scores, tests, stability, errors, patterns, and a campaign's OR."""
    from rich.console import Console

    from evaluator.thinkbench.leaderboard import find_runs

    console = Console(highlight=False)
    _compare(
        console,
        find_runs(places),
        pool,
        replicates,
        allow_incomplete=allow_incomplete,
        campaigns=campaigns or [],
        judge=judge,
        judge_samples=judge_samples,
        out=out,
    )


def _compare(
    console: "Console",
    runs: "Sequence[Run]",
    pool: str,
    replicates: int,
    *,
    allow_incomplete: bool,
    campaigns: Sequence[str] = (),
    judge: str | None = None,
    judge_samples: int = 100,
    out: Path | None = None,
) -> None:
    from evaluator.thinkbench import write_comparison
    from evaluator.thinkbench.bridge import bridge_campaign, bridge_table
    from evaluator.thinkbench.tables import comparison_tables

    comparison = _compared(runs, pool, replicates, allow_incomplete)
    tables = comparison_tables(comparison)
    bridge = None
    if campaigns:
        with _status(console, "Computing OR, AD and frontiers"):
            bridge = bridge_campaign(comparison, campaigns, allow_incomplete=allow_incomplete)
        tables.insert(1, bridge_table(bridge))
    if judge is not None:
        tables += _judged(console, runs, judge, judge_samples)
    for table in tables:
        console.print(table.to_rich(console.width))
    if out is None:
        return
    _say_page(console, write_comparison(comparison, tables, out, bridge=bridge))


def _judged(console: "Console", runs: "Sequence[Run]", judge: str, samples: int) -> list[Any]:
    from evaluator.thinkbench.judge import judge_runs
    from evaluator.thinkbench.tables import agreement_table
    from stp.asking import open_responder

    with _status(console, f"Opening {judge}"):
        responder = open_responder(judge)
    with responder, _bar("judging") as advance:
        found = judge_runs(runs, responder, samples=samples, on_progress=advance)
    tables = []
    for kind, agreement in (("error", found.errors), ("pattern", found.patterns)):
        if agreement is not None:
            title = f"Rules (rows) and judge (columns) on the {kind} of a response"
            tables.append(agreement_table(agreement, title, name=f"agreement-{kind}"))
    if found.unreadable:
        console.print(f"{found.unreadable:,} of the judge's replies named no label.")
    return tables


def _compared(
    runs: "Sequence[Run]", pool: str, replicates: int, allow_incomplete: bool
) -> "Comparison":
    from data.errors import ConfigError
    from evaluator.thinkbench import compare_runs

    if pool not in ("global", "per-task"):
        raise ConfigError(f"no pool {pool!r}; there are global and per-task")
    with _bar("bootstrap", unit="tasks") as advance:
        return compare_runs(
            list(runs),
            kind="per-task" if pool == "per-task" else "global",
            replicates=replicates,
            allow_incomplete=allow_incomplete,
            progress=advance,
        )


def _say_page(console: "Console", path: Path) -> None:
    console.print(f"Page: {path}", markup=False, soft_wrap=True)


def _status(console: "Console", text: str) -> Any:
    from rich.markup import escape

    return console.status(escape(text))


def _bar(title: str, unit: str = "responses") -> Any:
    from stp.cli.think_options import shown_progress

    return shown_progress(title, unit)


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.add_typer(think, name="think")
