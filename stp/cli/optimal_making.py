"""``stp optimal build`` and ``select``: making OvT-General, finding tasks that need thinking."""

from pathlib import Path
from typing import Annotated, Any

import typer

from stp.cli.arguments import MODEL_HELP, PromptsOption
from stp.cli.optimal_options import (
    JudgeRepeats,
    MaxTokens,
    SeedsOption,
    Temperature,
    ThinkingTokens,
    words,
)


def build(
    out: Annotated[
        Path, typer.Argument(help="The data set's folder: a new one, or one to continue.")
    ],
    generator: Annotated[
        str, typer.Option("--generator", help=f"Who writes questions. {MODEL_HELP}")
    ],
    answerer: Annotated[
        str | None, typer.Option("--answerer", help="Who answers them.", show_default="generator")
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", help="Who compares answers.", show_default="generator")
    ] = None,
    domains: Annotated[
        str, typer.Option("--domains", help="'all', a number of the first ones, or names; with ;")
    ] = "all",
    types: Annotated[
        str, typer.Option("--types", help="numeric, choice, short, open; comma-separated.")
    ] = "numeric,choice,short,open",
    per_pair: Annotated[
        int, typer.Option("--per-pair", min=1, help="Questions for each domain and type.")
    ] = 5,
    k: Annotated[int, typer.Option("--k", min=1, help="Answers that have to agree.")] = 8,
    rounds: Annotated[
        int,
        typer.Option("--rounds", min=1, help="How often a pair is asked for questions, at most."),
    ] = 3,
    judge_repeats: JudgeRepeats = 1,
    max_tokens: MaxTokens = 4096,
    temperature: Temperature = 0.6,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all replies.")] = 0,
    prompts: PromptsOption = None,
) -> None:
    """Make OvT-General: simple questions of 72 domains and four answer types, checked by models."""
    from dataclasses import replace

    from rich.console import Console

    from data.prompts import Prompts, load_prompts
    from evaluator.optimal.building import build as build_data_set
    from evaluator.optimal.recipe import SETTINGS, Recipe, statistics
    from stp.asking.model_names import parse_model
    from stp.cli.progress import shown_progress

    recipe = Recipe(
        domains=_domains(domains),
        answer_types=_kinds(types),
        per_pair=per_pair,
        k=k,
        rounds=rounds,
        judge_repeats=judge_repeats,
        seed=seed,
        settings=replace(SETTINGS, max_tokens=max_tokens, temperature=temperature),
        prompts=Prompts() if prompts is None else load_prompts(prompts),
    )
    console, out = Console(highlight=False), out.expanduser()
    with shown_progress() as progress:
        built = build_data_set(
            recipe,
            out,
            generator=parse_model(generator),
            answerer=parse_model(answerer or generator),
            judge=parse_model(judge or generator),
            progress=progress,
        )
    counts = statistics(built)
    console.print(f"{counts['questions']:,} questions of {len(recipe.pairs()) * per_pair:,} wanted")
    for name in ("by_answer_type", "dropped"):
        shown = ", ".join(f"{key} {value:,}" for key, value in counts[name].items()) or "none"
        console.print(f"{name.replace('_', ' ')}: {shown}", markup=False)
    console.print(f"Data set: {out}", markup=False, soft_wrap=True)


def select(
    small: Annotated[str, typer.Argument(help=f"The model that thinks. {MODEL_HELP}")],
    large: Annotated[str, typer.Argument(help="The model that answers without thinking.")],
    out: Annotated[Path, typer.Option("--out", help="Where both runs go.")],
    tasks: Annotated[
        str,
        typer.Option(
            "--tasks", help="Reasoning Gym's names, 'all', or 'none'.", show_default="the eleven"
        ),
    ] = "",
    benchmarks: Annotated[
        str,
        typer.Option("--benchmarks", help="Further benchmarks to try, comma-separated, or 'math'."),
    ] = "",
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder of question files.")
    ] = None,
    threshold: Annotated[
        float, typer.Option("--lambda", help="Keep a task if its gap is larger than this.")
    ] = 0.1,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Questions of each task.")] = 50,
    seeds: SeedsOption = 8,
    max_tokens: MaxTokens = None,
    thinking_tokens: ThinkingTokens = None,
    temperature: Temperature = 0.6,
) -> None:
    """Find tasks that need thinking: a small thinking model against a large one that does not."""
    from rich.console import Console

    from evaluator.optimal.selection import benchmark_names, selection_frame, task_names
    from evaluator.optimal.selection import select as select_tasks
    from evaluator.optimal.tables import selection_table
    from evaluator.present.terminal import rich_table
    from stp.asking import Settings
    from stp.asking.model_names import parse_model
    from stp.cli.progress import shown_progress
    from stp.files import write_durably

    out = out.expanduser()
    with shown_progress() as progress:
        selected = select_tasks(
            parse_model(small),
            parse_model(large),
            out,
            tasks=task_names(words(tasks)),
            benchmarks=benchmark_names(words(benchmarks)),
            data_dir=data_dir.expanduser() if data_dir else None,
            threshold=threshold,
            limit=limit,
            seeds=seeds,
            settings=Settings(
                max_tokens=max_tokens, thinking_tokens=thinking_tokens, temperature=temperature
            ),
            progress=progress,
        )
    table = selection_table(selection_frame(selected), threshold)
    write_durably(out / "selection.csv", table.to_csv().encode())
    console = Console(highlight=False)
    console.print(rich_table(table, console.width))
    kept = [item.task for item in selected if item.kept]
    console.print(f"Kept: {', '.join(kept) or 'none'}", markup=False)
    console.print(f"Table: {out / 'selection.csv'}", markup=False, soft_wrap=True)


def _domains(text: str) -> tuple[str, ...]:
    from data.hints import did_you_mean
    from data.optimal.domains import domain_names

    if text == "all":
        return domain_names()
    if text.isdecimal():
        return domain_names()[: int(text)]
    names = tuple(name.strip() for name in text.split(";") if name.strip())
    for name in names:
        hint = "" if name in domain_names() else did_you_mean(name, domain_names())
        if hint:
            typer.echo(f"{name!r} is taken as a domain of your own{hint}", err=True)
    return names


def _kinds(text: str) -> tuple[Any, ...]:
    # What is no answer type is refused by the recipe, which knows them.
    return words(text)


def register(group: typer.Typer) -> None:
    """Add both commands to ``stp optimal``."""
    group.command("build")(build)
    group.command("select")(select)
