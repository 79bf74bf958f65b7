"""``stp run --dry-run``: what a campaign would send and take, without starting it."""

from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stp.cli.lines import duration
from stp.cli.seen import seen
from stp.cli.shares import print_shares

if TYPE_CHECKING:
    from stp.campaign.config import CampaignConfig
    from stp.campaign.dry_run import CellPlan, DryRunPlan, ExpectedWork

_SHOWN_IDS = 48
_SHOWN_CHARACTERS = 2_000
_NAMED = 5
_ENGINES = (1, 2, 8)


def dry_run(config: "CampaignConfig", folder: str) -> None:
    """Check and measure a campaign, and print what was found."""
    from stp.campaign.dry_run import plan_campaign
    from stp.campaign.early import check_engine
    from stp.campaign.run import configured_engine
    from stp.cli.progress import shown_progress

    console = Console(highlight=False)
    if folder and _nothing_left(config, folder):
        console.print(f"nothing is left to do in {folder}: every unit is generated, probed and")
        console.print(
            f"graded; nothing was written; next: stp report {quote(folder)}", soft_wrap=True
        )
        return
    notes = Console(stderr=True, highlight=False)
    with shown_progress(notes, at_once=True) as progress:
        progress.stage("preparing: models, questions, prompts")
        check_engine(config.engine.name, config.engine.options)
        plan = plan_campaign(
            config,
            open_model=configured_engine(config),
            folder=folder or None,
            on_cell=lambda cell: progress.show(
                f"warming up: {cell.model} on {cell.benchmark}", 0, 0
            ),
        )
    console.print(f"wording of the prompts: {config.prompts.wording.label}", markup=False)
    shown: set[tuple[str, str]] = set()
    for cell in plan.cells:
        _print_cell(console, cell)
        if (key := (cell.record.model, cell.record.benchmark)) not in shown:
            shown.add(key)
            _print_prompt(console, cell)
    _print_estimate(console, plan)
    if config.generation.mode == "thinking":
        _print_plans(console, config, plan)
    console.print("nothing was written")


def _nothing_left(config: "CampaignConfig", folder: str) -> bool:
    """Return whether a folder holds this very campaign, and all of it is done."""
    from stp.campaign.status import campaign_status
    from stp.campaign.store import Store

    store = Store(folder)
    if not store.is_campaign() or store.read_manifest().config_hash != config.content_hash():
        return False
    return campaign_status(folder).finished


def _print_cell(console: Console, cell: "CellPlan") -> None:
    record = cell.record
    console.print(
        f"{record.model} on {record.benchmark}: {record.questions:,} questions", style="bold"
    )
    console.print(
        f"  longest prompt {cell.longest_prompt_tokens:,} tokens; longest prefix with its answer "
        f"{cell.longest_prefix_tokens:,} of {cell.context_limit:,}"
    )
    ends = sorted({text for texts in cell.turn_end.values() for text in texts})
    console.print(f"  an answer ends at {', '.join(map(seen, ends))}", markup=False)
    if cell.shares is not None:
        print_shares(console, [cell.shares])
    for ids, what in (
        (cell.shortened_ids, "get less thinking than was asked for"),
        (cell.too_long_ids, "are too long and would not run"),
    ):
        if ids:
            console.print(f"  {len(ids):,} {what}: {named(ids)}", markup=False)


def _print_prompt(console: Console, cell: "CellPlan") -> None:
    console.print(f"  first prompt ({cell.first_id}, {len(cell.first_ids):,} ids):", markup=False)
    for line in cell.first_text[:_SHOWN_CHARACTERS].split("\n"):
        console.print(Text("    | ") + Text(seen(line)))
    if (more_text := len(cell.first_text) - _SHOWN_CHARACTERS) > 0:
        console.print(f"    ... ({more_text:,} more characters)", markup=False)
    ids = ", ".join(map(str, cell.first_ids[:_SHOWN_IDS]))
    more = f", ... ({len(cell.first_ids) - _SHOWN_IDS:,} more)"
    console.print(f"    [{ids}{more if len(cell.first_ids) > _SHOWN_IDS else ''}]", markup=False)


def _print_estimate(console: Console, plan: "DryRunPlan") -> None:
    warm = sum(cell.warm_up_seconds for cell in plan.cells)
    ended = sum(cell.warm_up_ended for cell in plan.cells)
    begun = sum(cell.warm_up_trajectories for cell in plan.cells)
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stage", no_wrap=True)
    for heading in ("samples", "tokens", "at most", "time", "disk"):
        table.add_column(heading, justify="right", no_wrap=True)
    from stp.campaign.dry_run import ExpectedWork

    generate = sum((cell.generate for cell in plan.cells), ExpectedWork())
    probe = sum((cell.probe for cell in plan.cells), ExpectedWork())
    for name, entry in (("generate", generate), ("probe", probe), ("both", plan.total)):
        table.add_row(name, *_row(entry))
    console.print(table)
    console.print("time: at the warm-up's pace; simulated with the campaign's units:")
    _print_forecast(console, plan)
    free = f"; the disk has {_size(plan.free_bytes)} free" if plan.free_bytes is not None else ""
    console.print(
        f"from a warm-up of {duration(warm)}, in which {ended} of {begun} trajectories ended; one "
        f"process, grading not counted{free}"
    )
    if ended < begun / 2:
        console.print("few trajectories ended in the warm-up: the figures are rough")


def _print_plans(console: Console, config: "CampaignConfig", plan: "DryRunPlan") -> None:
    from stp.campaign.dry_run import OPENING, costs_of_plans

    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("probing by plan", no_wrap=True)
    table.add_column("answers", no_wrap=True)
    for heading in ("samples", "tokens", "at most", "time", "disk"):
        table.add_column(heading, justify="right", no_wrap=True)
    for (name, kind), expected in costs_of_plans(config, plan).items():
        table.add_row(name, kind, *_row(expected))
    console.print(table)
    opening = config.probing.answer_opening or OPENING
    console.print(
        f"opened answers begin with {seen(opening)}; they are another measurement than free ones: "
        "`stp probes compare` says how far apart they are",
        markup=False,
    )


def _print_forecast(console: Console, plan: "DryRunPlan") -> None:
    """Say what the last samples cost, on one engine and on several."""
    for engines in _ENGINES:
        seconds, tail = plan.seconds(engines)
        console.print(
            f"to the last sample on {engines} engine{'' if engines == 1 else 's'}: "
            f"{duration(seconds)}; {duration(seconds - tail)} if no row were ever empty"
        )


def _row(entry: "ExpectedWork") -> tuple[str, str, str, str, str]:
    return (
        f"{entry.samples:,}",
        f"{entry.tokens:,}",
        f"{entry.most_tokens:,}",
        duration(entry.seconds),
        _size(entry.bytes),
    )


def named(ids: tuple[str, ...]) -> str:
    """Return some ids, and how many more there are.

    Examples
    --------
    >>> named(("a", "b")), named(tuple("abcdefg"))
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    return seen(", ".join(ids[:_NAMED])) + more


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"
