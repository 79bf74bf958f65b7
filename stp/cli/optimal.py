"""``stp optimal``: OptimalThinkingBench; run, score, grade and compare."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from stp.cli import optimal_making
from stp.cli.arguments import (
    MODEL_HELP,
    AllowIncompleteOption,
    PromptsOption,
    ReplicatesOption,
    out_folder,
)
from stp.cli.lazily import CommandGroup
from stp.cli.optimal_options import (
    AllowUndecided,
    CampaignsOption,
    JudgeOption,
    JudgeRepeats,
    Limit,
    MaxTokens,
    SeedsOption,
    Temperature,
    ThinkingTokens,
    TMax,
    words,
)
from stp.cli.responses import show

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from data.progress import Progress
    from evaluator.optimal.bridging import BridgeCell
    from evaluator.optimal.results import Results
    from stp.curves import Curves

optimal = typer.Typer(
    cls=CommandGroup,
    help="OptimalThinkingBench: over- and underthinking in one score.",
    no_args_is_help=True,
)


optimal.command("show")(show)


@optimal.command("run")
def run(
    model: Annotated[str, typer.Argument(help=MODEL_HELP)],
    out: Annotated[Path, typer.Option("--out", help="The run's folder, made or continued.")],
    subsets: Annotated[
        str | None,
        typer.Option(
            "--subsets",
            help="ovt-math, ovt-general, ut-reasoning, ut-math, ovt:BENCHMARK, ut:BENCHMARK, "
            "ovt-general+N; comma-separated.",
            show_default="the four",
        ),
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            help="thinking, no-thinking, no-overthinking, step-by-step, default, router, "
            "oracle-router; comma-separated.",
        ),
    ] = "thinking,no-thinking,oracle-router",
    general: Annotated[
        str | None,
        typer.Option("--general", help="OvT-General: a folder, a file, or a data set of the hub."),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder of question files.")
    ] = None,
    limit: Limit = None,
    seeds: SeedsOption = 8,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all samples.")] = 0,
    max_tokens: MaxTokens = None,
    thinking_tokens: ThinkingTokens = None,
    temperature: Temperature = 0.6,
    top_p: Annotated[float | None, typer.Option("--top-p", help="Top-p of the sampling.")] = None,
    router: Annotated[
        str | None, typer.Option("--router", help="Model that sorts questions; as MODEL.")
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="What tables call the model.", show_default="own")
    ] = "",
    size: Annotated[
        float | None, typer.Option("--size", help="Parameters in billions, for the analysis.")
    ] = None,
    prompts: PromptsOption = None,
) -> None:
    """Ask a model all questions with every method and seed; continues where it was stopped."""
    from rich.console import Console

    from data.prompts import Prompts, load_prompts
    from evaluator.optimal import OptimalPlan
    from evaluator.optimal import run as run_plan
    from stp.asking import Settings
    from stp.asking.model_names import parse_model
    from stp.cli.progress import shown_progress

    chosen = subsets or ("ovt-math,ovt-general,ut-reasoning,ut-math")
    spec = parse_model(model)
    plan = OptimalPlan(
        name=name or spec.short_name,
        subsets=words(chosen),
        methods=words(methods),
        general=general,
        data_dir=str(data_dir.expanduser()) if data_dir else None,
        limit=limit,
        seeds=seeds,
        seed=seed,
        settings=Settings(
            max_tokens=max_tokens,
            thinking_tokens=thinking_tokens,
            temperature=temperature,
            top_p=top_p,
        ),
        prompts=Prompts() if prompts is None else load_prompts(prompts),
        size=size,
    )
    out = out.expanduser()
    with shown_progress() as progress:
        run_plan(
            spec,
            out,
            plan,
            router=parse_model(router) if router else None,
            progress=progress,
        )
    Console(highlight=False).print(
        f"Responses: {out}\nNext: stp optimal score {quote(str(out))}", markup=False, soft_wrap=True
    )


@optimal.command("score")
def score(
    folder: Annotated[Path, typer.Argument(help="The run's folder.")],
    judge: JudgeOption = None,
    judge_repeats: JudgeRepeats = 1,
    judge_max_tokens: Annotated[
        int, typer.Option("--judge-max-tokens", min=1, help="Most tokens of a judge's reply.")
    ] = 1024,
    campaigns: CampaignsOption = None,
    t_max: TMax = 1000,
    replicates: ReplicatesOption = 10_000,
    allow_undecided: AllowUndecided = False,
    allow_incomplete: AllowIncompleteOption = False,
) -> None:
    """Grade a run, score it, and write tables and a report page into RUN/report."""
    from rich.console import Console

    from evaluator.optimal.grading import grade
    from evaluator.optimal.judge import open_judge
    from evaluator.optimal.metrics import check_t_max
    from evaluator.optimal.results import make_results
    from evaluator.optimal.stored import read_asked
    from evaluator.runs.asking import opened_once
    from stp.asking.model_names import parse_model
    from stp.cli.progress import shown_progress

    check_t_max(t_max)
    console, folder = Console(highlight=False), folder.expanduser()
    _, plan = read_asked(folder)
    curves = _curves(campaigns)
    with opened_once() as opened, shown_progress() as progress:
        judging = None
        if judge is not None:
            judging = open_judge(
                opened(parse_model(judge)),
                folder,
                repeats=judge_repeats,
                max_tokens=judge_max_tokens,
                prompt=plan.prompts.text("judge"),
            )
        graded = grade(
            folder,
            judge=judging,
            judge_name=judge or "",
            allow_incomplete=allow_incomplete,
            progress=progress,
        )
        results = make_results(
            [graded],
            cells=_cells(curves, t_max, progress),
            t_max=t_max,
            replicates=replicates,
            allow_undecided=allow_undecided,
            progress=progress.stage("bootstrap"),
        )
    _show(console, results, folder / "report", plan.name)


@optimal.command("grade")
def grade(
    campaign: Annotated[str, typer.Argument(help="Folder of a campaign that `stp run` probed.")],
    judge: Annotated[
        str, typer.Option("--judge", help=f"Who judges answers in words. {MODEL_HELP}")
    ],
    judge_max_tokens: Annotated[
        int, typer.Option("--judge-max-tokens", min=1, help="Most tokens of a judge's reply.")
    ] = 1024,
    replies: Annotated[
        Path | None,
        typer.Option(
            "--replies", help="File that keeps the judge's replies.", show_default="beside it"
        ),
    ] = None,
) -> None:
    """Grade a campaign with answers in words (ovt-general-short, -open) by a judge."""
    from dataclasses import replace

    from evaluator.optimal.judge import SETTINGS, ModelJudge
    from evaluator.runs.asking import opened_once
    from stp.asking.model_names import parse_model
    from stp.campaign.run import grade_campaign
    from stp.cli.campaigns import watched

    if "://" in campaign and replies is None:
        from data.errors import MisuseError

        raise MisuseError("a campaign on remote storage needs --replies FILE on this machine")
    kept = replies or Path(campaign).expanduser().with_suffix(".judge-replies.jsonl")
    with opened_once() as opened:
        model = ModelJudge(
            opened(parse_model(judge)),
            kept,
            settings=replace(SETTINGS, max_tokens=judge_max_tokens),
        )
        result = watched(
            f"stp optimal grade {quote(campaign)} --judge {quote(judge)}",
            lambda observer, stop: grade_campaign(
                campaign, model_judge=model.verdict, observer=observer, stop=stop
            ),
        )
    typer.echo(
        f"graded {result.units} units; next: stp optimal compare --campaign {quote(campaign)}"
    )


@optimal.command("compare")
def compare(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Runs that `stp optimal score` has graded.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Where tables and page go.")] = Path(
        "optimal-comparison"
    ),
    campaigns: CampaignsOption = None,
    release: Annotated[
        Path | None,
        typer.Option("--release", help="A release of `stp release`: OTBench's methods as rows."),
    ] = None,
    otbench: Annotated[
        list[str] | None,
        typer.Option("--otbench", help="A method of OTBench. Repeatable.", show_default="all"),
    ] = None,
    ovt: Annotated[
        list[str] | None,
        typer.Option("--ovt", help="A benchmark of release or campaign that is easy. Repeatable."),
    ] = None,
    ut: Annotated[
        list[str] | None,
        typer.Option("--ut", help="A benchmark of release or campaign that is hard. Repeatable."),
    ] = None,
    t_max: TMax = 1000,
    replicates: ReplicatesOption = 10_000,
    allow_undecided: AllowUndecided = False,
) -> None:
    """Put runs, and methods that stop a thinking, into one table, averaged over models."""
    from rich.console import Console

    from evaluator.optimal.metrics import check_t_max
    from evaluator.optimal.results import make_results
    from evaluator.optimal.stored import load_run
    from stp.cli.progress import shown_progress

    check_t_max(t_max)
    out = out_folder(out)
    console = Console(highlight=False)
    runs = [load_run(folder) for folder in folders or []]
    with shown_progress() as progress:
        easy, hard = ovt or [], ut or []
        further = None
        if release is not None:
            further = _release_rows(release.expanduser(), otbench or [], easy, hard, progress)
        curves = _curves(campaigns)
        if release is None and curves is not None and not runs:
            further = _campaign_rows(curves, easy, hard, t_max)
        results = make_results(
            runs,
            further_rows=further,
            cells=_cells(curves, t_max, progress),
            t_max=t_max,
            replicates=replicates,
            allow_undecided=allow_undecided,
            progress=progress.stage("bootstrap"),
        )
    models = list(dict.fromkeys(model for model, _ in results.scores.rows))
    _show(console, results, out, ", ".join(models))


def _release_rows(
    folder: Path, methods: list[str], easy: list[str], hard: list[str], progress: "Progress"
) -> "pd.DataFrame":
    from evaluator.optimal.bridging import method_rows, released_benchmarks, sides_of
    from evaluator.otbench.load import load_release

    loaded = load_release(folder)
    sides = sides_of(released_benchmarks(loaded), easy, hard)
    return method_rows(loaded, methods, sides=sides, progress=progress)


def _campaign_rows(
    curves: "Curves", easy: list[str], hard: list[str], t_max: int
) -> "pd.DataFrame":
    from evaluator.optimal.bridging import campaign_rows, sides_of

    sides = sides_of(curves.benchmark_names, easy, hard)
    return campaign_rows(curves, sides=sides, t_max=t_max)


def _curves(campaigns: list[str] | None) -> "Curves | None":
    """Return the curves of all campaigns together; a cell that two of them have is refused."""
    if not campaigns:
        return None
    from stp.campaign import load_curves

    return load_curves(campaigns)


def _cells(curves: "Curves | None", t_max: int, progress: "Progress") -> "list[BridgeCell]":
    if curves is None:
        return []
    from evaluator.optimal.bridging import bridge

    return bridge(curves, t_max=t_max, progress=progress.stage("frontiers"))


def _show(console: "Console", results: "Results", folder: Path, title: str) -> None:
    from evaluator.optimal.output import write_results
    from evaluator.present.terminal import rich_table

    page = write_results(results, folder, title=title)
    for caution in results.cautions:
        console.print(f"caution: {caution}", markup=False, style="bold yellow")
    for table in results.tables:
        if table.name in ("scores", "methods", "bridge"):
            console.print(rich_table(table, console.width))
    console.print(f"Report: {page}", markup=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command group to an application."""
    optimal_making.register(optimal)
    app.add_typer(optimal, name="optimal")
