"""``stp think run``: models in variants, each a run in a folder of its own."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from data.seeds import PAPER_SEED
from stp.cli.arguments import MODEL_HELP, PromptsOption
from stp.cli.think_compare import compare_and_print, status

if TYPE_CHECKING:
    from rich.console import Console

    from data.errors import EngineError
    from evaluator.thinkbench import ThinkConfig, ThinkRun
    from stp.asking import ModelSpec

ModelsArgument = Annotated[list[str], typer.Argument(help=MODEL_HELP)]
OutOption = Annotated[
    Path, typer.Option("--out", help="The run's folder; of several, their parent.")
]
TasksOption = Annotated[
    str,
    typer.Option("--tasks", help="'all', 'puzzles', or names, comma-separated."),
]
SamplesOption = Annotated[
    int, typer.Option("--samples", min=1, help="Questions of a task in a fold.")
]
FoldsOption = Annotated[int, typer.Option("--folds", min=1, help="Independent draws of questions.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of questions and samples.")]
SizesOption = Annotated[
    str | None,
    typer.Option("--sizes", help="List sizes, comma-separated, in turn.", show_default="own"),
]
TaskSizesOption = Annotated[
    list[str] | None,
    typer.Option("--task-sizes", help="Sizes of one task: TASK=8,16. May be repeated."),
]
LowOption = Annotated[int, typer.Option("--low", help="Smallest number in a question.")]
HighOption = Annotated[int, typer.Option("--high", help="Largest number in a question.")]
StylesOption = Annotated[
    str, typer.Option("--style", help="standard, concise, ultra-concise; several: a study.")
]
MaxTokensOption = Annotated[
    str, typer.Option("--max-tokens", help="Caps of a response, or none; several: a study.")
]
ThinkingTokensOption = Annotated[
    str, typer.Option("--thinking-tokens", help="Thinking budgets, or none; several: a study.")
]
EffortOption = Annotated[
    str, typer.Option("--effort", help="Reasoning efforts, or none; several: a study.")
]
ThinkingOption = Annotated[
    str, typer.Option("--thinking", help="default, on, off; several: a study.")
]
ToolsOption = Annotated[
    str,
    typer.Option("--tools", help="none, calculator, python, calculator+python; several: a study."),
]
TemperatureOption = Annotated[
    str, typer.Option("--temperature", help="Of the sampling; none for the model's own.")
]
TopPOption = Annotated[
    str, typer.Option("--top-p", help="Of the sampling; none for the model's own.")
]
NameOption = Annotated[
    str | None, typer.Option("--name", help="What the model is called.", show_default="own")
]
AttributesOption = Annotated[
    list[str] | None,
    typer.Option("--attribute", help="Fact for correlations: parameters=14e9. Repeatable."),
]


def run(
    models: ModelsArgument,
    out: OutOption,
    tasks: TasksOption = "all",
    samples: SamplesOption = 1000,
    folds: FoldsOption = 3,
    seed: SeedOption = PAPER_SEED,
    sizes: SizesOption = None,
    task_sizes: TaskSizesOption = None,
    low: LowOption = -1000,
    high: HighOption = 1000,
    styles: StylesOption = "standard",
    max_tokens: MaxTokensOption = "none",
    thinking_tokens: ThinkingTokensOption = "none",
    effort: EffortOption = "none",
    thinking: ThinkingOption = "default",
    tools: ToolsOption = "none",
    temperature: TemperatureOption = "0.1",
    top_p: TopPOption = "0.9",
    name: NameOption = None,
    attributes: AttributesOption = None,
    prompts: PromptsOption = None,
) -> None:
    """Run models on the tasks; the same command continues where it was stopped.

    An option with several values, and several models, make a study: every combination is a run in
    a folder of its own below --out, and they are compared at the end.
    """
    from rich.console import Console

    from data.prompts import Prompts, load_prompts
    from evaluator.thinkbench.significance import DEFAULT_REPLICATES
    from stp.asking.model_names import parse_model
    from stp.cli.think_options import configurations, named_values

    specs = [parse_model(model) for model in models]
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
        temperature=temperature,
        top_p=top_p,
        prompts=Prompts() if prompts is None else load_prompts(prompts),
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
        compare_and_print(console, runs, "global", DEFAULT_REPLICATES, allow_incomplete=True)
    if failure is not None:
        raise failure


def _failure(runs: "Sequence[ThinkRun]") -> "EngineError | None":
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
) -> "Iterator[ThinkRun]":
    """Run every model in every variant: each model is opened once, and asked in one stream."""
    from evaluator.present.terminal import rich_table
    from evaluator.thinkbench import StudyRun, run_study
    from evaluator.thinkbench.tables import summary_table
    from stp.asking import open_responder
    from stp.cli.progress import shown_progress
    from stp.cli.think_options import folder_name

    for spec, model_name in zip(specs, _names(specs, name), strict=True):
        with status(f"Opening {spec.model}"):
            responder = open_responder(spec)
        with responder, shown_progress() as progress:
            study = []
            for label, config in variants:
                title = f"{model_name} {label}".strip()
                parts = [model_name] if len(specs) > 1 else []
                parts += [label] if len(variants) > 1 else []
                folder = out.expanduser()
                if parts:
                    folder /= folder_name(" ".join(parts))
                shown = progress.within(title)
                study.append(StudyRun(out=folder, config=config, name=title, progress=shown))
            found = run_study(responder, study, attributes=attributes)
        for one, done in zip(study, found, strict=True):
            console.print(rich_table(summary_table(done)))
            console.print(f"Run: {one.out}", markup=False, soft_wrap=True)
            yield done


def _names(specs: "Sequence[ModelSpec]", name: str | None) -> list[str]:
    """Return what the models are called: the last parts of their names where these differ."""
    from data.errors import MisuseError

    if name is not None:
        if len(specs) > 1:
            raise MisuseError("--name is for one model; several are called by their own names")
        return [name]
    names = [spec.short_name for spec in specs]
    if len(set(names)) < len(names):
        names = [spec.model for spec in specs]
    for place, found in enumerate(names):
        if found in names[:place]:
            raise MisuseError(
                f"{found} is named twice; name each model once, and run another setting of one "
                "into another --out with its own --name"
            )
    return names
