"""``stp run``, ``stp status``, ``stp grade``: make a campaign, see how far it is, grade it."""

from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from data.errors import MisuseError
from stp.cli.arguments import Folder, PromptsOption

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from stp.campaign.config import CampaignConfig
    from stp.campaign.lock import Part
    from stp.campaign.run import Observer, PoolOpener, RunResult


class StageName(StrEnum):
    """The stages, as ``--stage`` takes them."""

    GENERATE = "generate"
    PROBE = "probe"
    GRADE = "grade"


Stages = Annotated[
    list[StageName] | None,
    typer.Option(
        "--stage",
        metavar="STAGE",
        help="Only this stage (generate, probe or grade); may be repeated.",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Many engines on a Ray cluster: its address; without one, the cluster of this "
        "machine, or one started here.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Write nothing: check that everything fits, show the first prompts, and estimate "
        "tokens, time and disk from a short warm-up.",
    ),
]


def run(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            help="A campaign file (TOML), or a campaign's folder to continue it.",
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option("--out", help="The campaign's folder, made if it is not there; may be a URL."),
    ] = None,
    stage: Stages = None,
    ray: Ray = None,
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="I/N", help="Only part I of N, for a Slurm array."),
    ] = None,
    dry: DryRun = False,
    prompts: PromptsOption = None,
) -> None:
    """Run a campaign, or continue one that was stopped.

    Killed, stopped or failed, a run loses at most the units under way: the same command continues.
    """
    from stp.campaign.lock import Part

    part = None if shard is None else Part.parse(shard)
    settings, folder = _campaign_of(config, out)
    if prompts is not None:
        settings = settings.with_prompts(str(prompts))
    if settings.engine.name == "server" and settings.probing.answer_end == "box":
        typer.echo(
            'a server cannot end an answer at its box: with probing.answer_end = "box" answers are '
            "cut afterwards, and no tokens are saved",
            err=True,
        )
    if dry:
        from stp.cli.dry_run import dry_run

        dry_run(settings, folder)
        return
    if not folder:
        raise MisuseError("say where the campaign goes: stp run CONFIG.toml --out FOLDER")
    typer.echo("preparing: models, questions, prompts", err=True)
    _run(settings, folder, [item.value for item in stage or []], ray, part)


def _campaign_of(config: str, out: str | None) -> "tuple[CampaignConfig, str]":
    """Return what a campaign file, or the folder of one, asks for, and where it goes, if said."""
    from stp.campaign.config import load_config
    from stp.campaign.store import CONFIG, Store

    store = None if config.endswith(".toml") else Store(config)
    if store is not None and store.is_campaign():
        return store.read_campaign()[0], out or config
    if store is not None and store.exists(CONFIG):
        return store.read_config(), out or config
    return load_config(config), out or ""


def _run(
    settings: "CampaignConfig", folder: str, asked: list[str], ray: str | None, part: "Part | None"
) -> None:
    """Run the stages asked for, all if there are none, and say how it ended."""
    from stp.campaign.run import run_campaign
    from stp.campaign.units import STAGES
    from stp.cli.stopping import end_stalled

    if part is not None and settings.probing.plan == "adaptive":
        raise MisuseError(
            'probing.plan = "adaptive" chooses by what all units told, and a part knows its own '
            "alone; run it without --shard (--ray shares it out), or with a uniform plan"
        )
    go_on = f"stp run {quote(folder)}" + "".join(f" --stage {name}" for name in asked)
    result = watched(
        go_on + elsewhere(ray, part),
        lambda observer, stop: run_campaign(
            settings,
            folder,
            stages=tuple(name for name in STAGES if not asked or name in asked),
            observer=observer,
            stop=stop,
            open_pool=None if ray is None else ray_pool(ray),
            part=part,
            on_stall=end_stalled,
        ),
    )
    if settings.probing.plan == "adaptive" and result.finished and not asked:
        _run_rounds(settings, folder, ray)
    _say_how_it_ended(folder, settings, result, part)


def _run_rounds(settings: "CampaignConfig", folder: str, ray: str | None) -> None:
    """Do the rounds of an adaptive plan, chosen by latent curves."""
    from evaluator.analysis.latent import next_answers
    from stp.campaign.rounds import run_rounds
    from stp.cli.stopping import end_stalled

    watched(
        f"stp run {quote(folder)}" + elsewhere(ray, None),
        lambda observer, stop: run_rounds(
            settings,
            folder,
            next_answers,
            observer=observer,
            stop=stop,
            open_pool=None if ray is None else ray_pool(ray),
            on_stall=end_stalled,
        ),
    )


def elsewhere(ray: str | None, part: "Part | None") -> str:
    """Return the options of a command that is done on a cluster, or in parts."""
    shard = "" if part is None else f" --shard {part.number}/{part.count}"
    return ("" if ray is None else f" --ray {ray}") + shard


def ray_pool(address: str) -> "PoolOpener":
    """Return what opens a pool on the Ray cluster at an address."""
    from stp.campaign.pool import RayPool

    return lambda prepared, open_model: RayPool(prepared, open_model=open_model, address=address)


def grade(
    folder: Folder,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Grade everything again, not only what is missing. The references are those that "
            "the campaign started with; corrected ones are given with --references.",
        ),
    ] = False,
    references: Annotated[
        Path | None,
        typer.Option(
            "--references",
            metavar="FILE",
            help="With --again: take the references of this file (a benchmark's TOML file, or "
            "rows with id and answer), and keep in the manifest what was changed.",
        ),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option("--benchmark", help="Whose references these are, where there are several."),
    ] = None,
    unsandboxed: Annotated[
        bool,
        typer.Option(
            "--unsandboxed",
            help="Run answers that are programs without a sandbox. Only for models you trust.",
        ),
    ] = False,
    diff: Annotated[
        bool,
        typer.Option("--diff", help="Only list the verdicts that would change; write nothing."),
    ] = False,
) -> None:
    """Grade a campaign's answers, without a model."""
    if diff:
        from stp.cli.verdicts import grade_diff

        if again:
            raise MisuseError("give either --diff, which writes nothing, or --again")
        grade_diff(folder, unsandboxed=unsandboxed)
        return
    from stp.campaign.run import grade_campaign

    if references is not None and not again:
        raise MisuseError("--references needs --again, since everything is graded again")
    if benchmark is not None and references is None:
        raise MisuseError("--benchmark says whose --references are given; give these too")
    # With other references, verdicts on the old ones are not taken for done.
    go_on = f"stp grade {quote(folder)}" + " --again" * (again and references is None)
    result = watched(
        go_on,
        lambda observer, stop: grade_campaign(
            folder,
            again=again,
            unsandboxed=unsandboxed,
            references=references,
            benchmark=benchmark,
            observer=observer,
            stop=stop,
        ),
    )
    waiting = f", {result.waiting} are not probed yet" if result.waiting else ""
    typer.echo(f"graded {result.units} units{waiting}; next: stp report {quote(folder)}", err=True)


def status(folder: Folder) -> None:
    """Show how far a campaign is: done, rate, time left, prefill."""
    from rich.console import Console
    from rich.table import Table

    from stp.campaign.status import campaign_status
    from stp.cli.dry_run import named
    from stp.cli.lines import duration, per_second
    from stp.cli.shares import print_shares

    found = campaign_status(folder)
    console = Console(highlight=False)
    state = "complete" if found.finished else f"not done; continue: stp run {quote(found.url)}"
    if found.running is not None:
        state = f"running ({found.running}); what follows counts the units that are done"
    console.print(f"{found.name} in {found.url}: {state}", markup=False, soft_wrap=True)
    for cell in found.cells:
        line = f"  {cell.model} on {cell.benchmark}: {cell.questions:,} questions"
        if cell.shortened or cell.too_long:
            line += f" ({cell.shortened:,} with less room than asked, {cell.too_long:,} too long)"
        console.print(line, markup=False)
        if ids := found.too_long.get(cell.cell.folder):
            console.print(f"    too long: {named(ids)}", markup=False)
        if read := found.signals.get(cell.cell.folder):
            line = f"    signals: {read.trajectories:,} of {read.total:,} trajectories"
            go_on = read.trajectories < read.generated
            more = f"; continue: stp signals {quote(found.url)}" if go_on else ""
            console.print(line + more, markup=False, soft_wrap=True)
    print_shares(console, found.shares)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stage", no_wrap=True)
    for heading in ("trajectories", "samples", "per s", "tokens", "prefill", "took", "left"):
        table.add_column(heading, justify="right", no_wrap=True)
    for stage, entry in found.stages.items():
        record, rate = entry.record, entry.samples_per_second
        left = entry.seconds_left(found.trajectories)
        table.add_row(
            stage,
            f"{entry.trajectories:,} of {found.trajectories:,}",
            f"{record.samples:,}",
            per_second(rate) if rate is not None else "",
            f"{record.generated_tokens:,}" if stage != "grade" else "",
            f"{record.prefill_amplification:.2f} x" if record.prefill_amplification else "",
            duration(record.seconds),
            duration(left) if left is not None else "unknown",
        )
    console.print(table)
    console.print("prefill: prompt tokens that the model read, over the least from a cold cache")
    for stage, entry in found.stages.items():
        if entry.record.prefill_least_tokens != entry.record.prefill_block_least_tokens:
            plain = entry.record.usage.prefill_amplification
            console.print(f"  ({stage}: {plain:.2f} x the least without blocks)")
    for name, remedy in found.remedies.items():
        console.print(f"torn: {name}; `{remedy}` makes it again", markup=False, soft_wrap=True)


def watched(go_on: str, work: "Callable[[Observer, threading.Event], RunResult]") -> "RunResult":
    """Do work with bars; Ctrl-C and SIGTERM end it after the units under way, and say how."""
    from rich.console import Console

    from stp.cli.stages import shown_run
    from stp.cli.stopping import stop_on_signals

    console = Console(stderr=True, highlight=False)
    with shown_run(console) as observer, stop_on_signals(console) as asked:
        result = work(observer, asked.event)
    if asked.signal is not None and not result.finished:
        done = f"{result.units} unit{'' if result.units == 1 else 's'}"
        typer.echo(f"stopped after {done}, as asked; continue: {go_on}", err=True)
        raise typer.Exit(128 + asked.signal)
    return result


def _say_how_it_ended(
    folder: str, config: "CampaignConfig", result: "RunResult", part: "Part | None"
) -> None:
    if result.waiting:
        typer.echo(
            f"{result.waiting} units wait for the stage before; continue: stp run {quote(folder)}",
            err=True,
        )
        return
    if part is not None:
        typer.echo(
            f"{config.name}: part {part.number} of {part.count} is done in {folder}; when all are: "
            f"stp merge FOLDERS --out MERGED, or stp run {quote(folder)} if they share it",
            err=True,
        )
        return
    from rich.console import Console

    from stp.campaign.status import campaign_shares
    from stp.cli.shares import print_shares

    notes = Console(stderr=True, highlight=False)
    print_shares(notes, campaign_shares(folder), only_noticed=True)
    typer.echo(f"{config.name}: done in {folder}; next: stp report {quote(folder)}", err=True)


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.command()(run)
    app.command()(status)
    app.command()(grade)
