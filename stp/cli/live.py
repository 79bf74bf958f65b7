"""``stp live``: termination methods on a model while it thinks."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stp.cli.arguments import filled_by
from stp.cli.lazily import group_of

if TYPE_CHECKING:
    from evaluator.live.setup import Wanted


live = typer.Typer(
    name="live",
    cls=group_of("run"),
    help="Run a termination method live; compare, choose a setting.",
    rich_markup_mode=None,
)

ModelNameOption = Annotated[
    str | None,
    typer.Option("--name", help="The model's name in the release.", show_default="from MODEL"),
]
BatchOption = Annotated[int, typer.Option("--batch", min=1, help="Questions under way at once.")]


def wanted_of(
    model: str,
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="A method, named as for `stp otbench run`.")
    ] = None,
    setting: Annotated[
        str | None, typer.Option("--setting", help="Value of the method's control parameter.")
    ] = None,
    release: Annotated[
        Path | None,
        typer.Option("--release", help="What the method learns from; gives limits and steps too."),
    ] = None,
    name: ModelNameOption = None,
    family: Annotated[str | None, typer.Option("--family", help="The model's family.")] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="transformers, vllm, or server (with --upstream).")
    ] = "transformers",
    upstream: Annotated[
        str | None,
        typer.Option("--upstream", help="A running vLLM server that takes token ids."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="An option of the engine, as under [engine.options]; may be repeated.",
        ),
    ] = None,
    thinking_limit: Annotated[
        int | None, typer.Option("--thinking-limit", min=1, help="Most thinking tokens.")
    ] = None,
    answer_tokens: Annotated[
        int | None, typer.Option("--answer-tokens", min=1, help="Most tokens of an answer.")
    ] = None,
    step_tokens: Annotated[
        int | None, typer.Option("--step-tokens", min=1, help="Least tokens of a step.")
    ] = None,
) -> "Wanted":
    """Return what the options name that ``stp live run`` and ``stp serve`` share."""
    from pydantic import ValidationError

    from data.errors import MisuseError
    from evaluator.live.setup import Wanted
    from stp.campaign.sections import EngineConfig, ModelConfig
    from stp.cli.think_options import named_values

    options = named_values("--option", option or ())
    if upstream is not None:
        engine, options["url"] = "server", upstream
    elif engine == "server":
        raise MisuseError("--engine server: say where it is with --upstream URL")
    limits = {
        "generation": {"thinking_limit": thinking_limit, "answer_tokens": answer_tokens},
        "probing": {"answer_tokens": answer_tokens, "step_tokens": step_tokens},
    }
    try:
        config = ModelConfig.model_validate(
            {"path": model, "family": family, **({"name": name} if name else {})}
        )
        chosen = EngineConfig(name=engine, options=options)
    except ValidationError as error:
        raise MisuseError(error.errors(include_url=False)[0]["msg"]) from error
    return Wanted(
        model=config,
        method=method,
        setting=setting,
        release=None if release is None else release.expanduser(),
        engine=chosen,
        changes={
            section: {key: value for key, value in values.items() if value is not None}
            for section, values in limits.items()
        },
    )


@live.command("run")
@filled_by("wanted", wanted_of)
def run(
    wanted: "Wanted",
    model: Annotated[str, typer.Argument(help="A folder, a hub id, or demo.")],
    out: Annotated[Path, typer.Option("--out", help="The run's folder.")],
    benchmark: Annotated[
        list[str] | None,
        typer.Option("--benchmark", help="May be repeated.", show_default="the release's"),
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option("--data-dir", help="Folder of question files.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only the first questions.")
    ] = None,
    split: Annotated[
        str,
        typer.Option("--split", help="Which of a release's questions: test, validation or all."),
    ] = "test",
    trajectories: Annotated[
        int, typer.Option("--trajectories", min=1, help="Trajectories of every question.")
    ] = 1,
    batch: BatchOption = 32,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the samples.")] = None,
) -> None:
    """Answer questions with full thinking and with the method; continues where it was stopped."""
    from data.errors import MisuseError
    from stp.campaign.sections import BenchmarkConfig
    from stp.cli.progress import shown_progress
    from stp.cli.stopping import stop_on_signals

    if split not in ("test", "validation", "all"):
        raise MisuseError(f"--split {split}: it is test, validation or all")
    if not benchmark and wanted.release is None:
        raise MisuseError("name the questions with --benchmark, or a --release")
    asked = [BenchmarkConfig(name=each, limit=limit, data_dir=data_dir) for each in benchmark or []]
    out = out.expanduser()
    with shown_progress(at_once=True) as screen:
        screen.stage("starting")
        from evaluator.live.run import run_live
        from evaluator.live.setup import get_ready, live_tasks

        ready = get_ready(replace(wanted, seed=seed), progress=screen)
        tasks = live_tasks(
            ready, asked, trajectories=trajectories, split=None if split == "all" else split
        )
        with stop_on_signals(screen.console) as stopped:
            result = run_live(ready, tasks, out, batch=batch, progress=screen, stop=stopped.event)
    if not result.finished:
        done = f"stopped after {result.made} trajectories"
        typer.echo(f"{done}; the same command continues", err=True)
        raise typer.Exit(128 + (stopped.signal or 0))
    from evaluator.live.compare import read_live, summary

    _print(summary(read_live(out)))
    typer.echo(f"Rows: {out / 'graded.jsonl'}")


@live.command("compare")
def compare(
    folder: Annotated[Path, typer.Argument(help="A finished live run.")],
    release: Annotated[Path, typer.Argument(help="The release that its method learnt from.")],
    replicates: Annotated[
        int, typer.Option("--replicates", min=1, help="Bootstrap replicates.")
    ] = 10_000,
) -> None:
    """Show what was measured live beside what the release predicts, with paired intervals."""
    from stp.cli.progress import shown_progress

    with shown_progress(at_once=True) as progress:
        progress.stage("starting")
        from evaluator.live.compare import compare_live

        table = compare_live(
            folder.expanduser(), release.expanduser(), replicates=replicates, progress=progress
        )
    _print(table)


@live.command("choose")
def choose(
    release: Annotated[Path, typer.Argument(help="A release, made by `stp release`.")],
    keep: Annotated[
        str | None, typer.Option("--keep", help="accuracy: the fewest tokens that keep it.")
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option("--tokens", help="Most tokens, as 50%: the best accuracy within them."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Choose among these; may be repeated."),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", help="Folder of the model, for the line to serve it.")
    ] = "MODEL",
    name: ModelNameOption = None,
) -> None:
    """Choose method and setting on validation questions; print the line that serves them."""
    from fractions import Fraction

    from data.errors import MisuseError
    from stp.cli.progress import shown_progress

    if (keep is None) == (tokens is None) or keep not in (None, "accuracy"):
        raise MisuseError("say --keep accuracy, or --tokens SHARE as in --tokens 50%")
    share = None
    if tokens is not None:
        try:
            share = Fraction(tokens.rstrip("%")) / (100 if tokens.endswith("%") else 1)
        except (ValueError, ZeroDivisionError):
            raise MisuseError(f"--tokens {tokens}: write a share, as 50% or 0.5") from None
        if not 0 <= share <= 1:
            raise MisuseError(f"--tokens {tokens}: a share lies between 0 and 100%")
    with shown_progress(at_once=True) as progress:
        progress.stage("starting")
        from evaluator.live.choose import choose as choose_setting

        best = choose_setting(
            release.expanduser(), model=name, methods=method or [], tokens=share, progress=progress
        )
    low, high = best.accuracy_change
    least, most = best.tokens_interval
    typer.echo(
        f"{best.method} at {best.setting}: on {best.questions} validation questions "
        f"{best.accuracy:.1f} % right (full thinking {best.full_accuracy:.1f} %, difference "
        f"{low:+.1f} to {high:+.1f} points) for {best.tokens:.0f} % of its tokens, signals "
        f"included ({least:.0f} to {most:.0f} %)"
    )
    import shlex

    words = ["stp", "serve", "--model", model, "--method", best.method]
    words += ["--setting", str(best.setting), "--release", str(release)]
    if name is not None:
        words += ["--name", name]
    typer.echo(f"Serve it: {shlex.join(words)}")


def _print(table: Any) -> None:
    from rich.console import Console

    from evaluator.present.terminal import rich_table

    console = Console(highlight=False)
    console.print(rich_table(table, console.width))


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.add_typer(live)
