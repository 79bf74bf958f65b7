"""What the commands of ``stp think`` share: runs are compared, and shown."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from data.progress import Progress
    from evaluator.thinkbench import Comparison, ThinkRun


def compare_and_print(
    console: "Console",
    runs: "Sequence[ThinkRun]",
    pool: str,
    replicates: int,
    *,
    allow_incomplete: bool,
    campaigns: Sequence[str] = (),
    judge: str | None = None,
    judge_samples: int = 100,
    out: Path | None = None,
    beside: Sequence[str] = (),
) -> None:
    """Print a comparison's tables, those of campaigns and a judge among them, and write files."""
    from evaluator.present.terminal import rich_table
    from evaluator.thinkbench import write_comparison
    from evaluator.thinkbench.bridge import bridge_campaign, bridge_table
    from evaluator.thinkbench.insights import accuracies_beside
    from evaluator.thinkbench.tables import comparison_tables

    others = accuracies_beside(beside)
    comparison = compared(runs, pool, replicates, allow_incomplete)
    tables = comparison_tables(comparison)
    bridge = None
    if campaigns:
        with status("Computing OR, AD and frontiers"):
            bridge = bridge_campaign(comparison, campaigns, allow_incomplete=allow_incomplete)
        tables.insert(1, bridge_table(bridge))
    if judge is not None:
        tables += _judged(console, runs, judge, judge_samples)
    for table in tables:
        console.print(rich_table(table, console.width))
    if out is None:
        return
    with status("Drawing"):
        page = write_comparison(comparison, tables, out, bridge=bridge, beside=others)
    say_page(console, page)


def _judged(console: "Console", runs: "Sequence[ThinkRun]", judge: str, samples: int) -> list[Any]:
    from evaluator.thinkbench.judge import judge_runs
    from evaluator.thinkbench.tables import agreement_table
    from stp.asking import open_responder
    from stp.asking.model_names import parse_model

    with status(f"Opening {judge}"):
        responder = open_responder(parse_model(judge))
    with responder, bar("judging") as advance:
        found = judge_runs(runs, responder, samples=samples, progress=advance)
    tables = []
    for kind, agreement in (("error", found.errors), ("pattern", found.patterns)):
        if agreement is not None:
            title = f"Rules (rows) and judge (columns) on the {kind} of a response"
            tables.append(agreement_table(agreement, title, name=f"agreement-{kind}"))
    if found.unreadable:
        console.print(f"{found.unreadable:,} of the judge's replies named no label.")
    return tables


def compared(
    runs: "Sequence[ThinkRun]", pool: str, replicates: int, allow_incomplete: bool
) -> "Comparison":
    """Return runs scored in one pool; a bar shows the progress."""
    from data.errors import ConfigError
    from evaluator.thinkbench import compare_runs

    if pool not in ("global", "per-task"):
        raise ConfigError(f"no pool {pool!r}; there are global and per-task")
    with bar("bootstrap") as advance:
        return compare_runs(
            list(runs),
            kind="per-task" if pool == "per-task" else "global",
            replicates=replicates,
            allow_incomplete=allow_incomplete,
            progress=advance,
        )


def say_page(console: "Console", path: Path) -> None:
    """Print where a page is."""
    console.print(f"Page: {path}", markup=False, soft_wrap=True)


@contextmanager
def status(text: str) -> "Iterator[None]":
    """Show what is under way while the block runs: beside a spinner, or in a log as a line."""
    from stp.cli.progress import shown_progress

    with shown_progress(at_once=True) as progress:
        progress.stage(text)
        yield


@contextmanager
def bar(title: str) -> "Iterator[Progress]":
    """Yield the progress of a stage, shown while the block runs."""
    from stp.cli.progress import shown_progress

    with shown_progress() as progress:
        yield progress.stage(title)
