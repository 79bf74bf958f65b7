"""``stp demo``: the whole way, on a model and questions that come with the project."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evaluator.report import ReportPaths

_EQUAL = "  full thinking's accuracy for"


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="The campaign's folder, made if it is not there.")
    ] = Path("demo-campaign"),
) -> None:
    """Probe the demo model on 40 questions and report what it finds.

    It takes a minute or two on two cores. Stopped or killed, the same command continues where it
    was.
    """
    typer.echo("preparing: model, questions, prompts", err=True)
    out = out.expanduser()
    from importlib.resources import files

    from evaluator.report import build_report
    from stp.campaign.config import parse_config
    from stp.campaign.run import run_campaign
    from stp.cli.campaigns import watched

    source = files("data") / "demo_campaign.toml"
    config = parse_config(source.read_text(encoding="utf-8"), source=str(source))
    watched(
        f"stp demo --out {quote(str(out))}",
        lambda observer, stop: run_campaign(config, out, observer=observer, stop=stop),
    )
    typer.echo("writing the report", err=True)
    _say_what_was_found(out, build_report(str(out), out / "report"))


def _say_what_was_found(out: Path, report: "ReportPaths") -> None:
    from evaluator.analysis.overthinking import per_trajectory, summarise
    from stp.campaign.curves import load_curves

    overall = summarise(per_trajectory(load_curves(out))).overall
    accuracy = {
        "without thinking, mean P(0)": overall["zero_accuracy"],
        "at the best position, mean best P": overall["best_accuracy"],
        "with full thinking, mean P(n)": overall["full_accuracy"],
    }
    lines = [f"{name:<36}{value:7.3f}" for name, value in accuracy.items()]
    ratio, degradation = overall["overthinking_ratio"], overall["accuracy_degradation"]
    lines += [
        f"{'overthinking ratio, OR':<36}{100 * ratio:7.1f} % of the thinking tokens",
        f"{'accuracy degradation, AD':<36}{100 * degradation:7.1f} points",
    ]
    for finding in report.headline.strategies:
        lines += [
            f"{'frontier, ' + finding.strategy.replace('_', ' '):<36}"
            f"{finding.best_accuracy:7.3f} at best",
            f"{_EQUAL:<36}{100 * finding.equal_tokens_fraction:7.1f} % of its tokens",
        ]
    typer.echo("\n".join(["", *lines, "", f"report: {report.page.resolve()}"]))


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command()(demo)
