"""Latent curves against truth: families of worlds, many probes thinned to few, held-out probes.

    python scripts/benchmarks/latent.py families --worlds 4
    python scripts/benchmarks/latent.py thinned FOLDER        # a campaign with some 256 probes
    python scripts/benchmarks/latent.py held-out [FOLDER]
    python scripts/benchmarks/latent.py replay [FOLDER]       # adaptive probing, with a plot
    python scripts/benchmarks/latent.py speed

``families`` prints every goal beside what was found, and which families miss it.
"""

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from evaluator.analysis.latent import fit
from evaluator.figures.latent import cost_plot
from evaluator.present.figure_style import save
from evaluator.simulation.families import FAMILIES, family_world
from evaluator.simulation.latent_checks import (
    cost_curve,
    errors_in_world,
    held_out_scores,
    world_of_many_probes,
)
from stp.campaign.curves import load_curves
from stp.cli.progress import shown_progress

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Chosen = Annotated[
    list[str] | None, typer.Option("--family", help="One or more; all if not given.")
]


def _show(frame: pd.DataFrame) -> None:
    with pd.option_context("display.width", 200, "display.max_columns", 40):
        typer.echo((100 * frame).round(1).to_string())


@app.command()
def families(
    family: Chosen = None,
    worlds: Annotated[int, typer.Option(min=1, help="Of each family.")] = 2,
    trajectories: Annotated[int, typer.Option(min=1)] = 500,
    questions: Annotated[int, typer.Option(min=1)] = 40,
    draws: Annotated[int, typer.Option(min=2)] = 40,
    first_seed: Annotated[int, typer.Option(min=0, help="Of the first world.")] = 100,
) -> None:
    """Compare AD, OR within 3 points and coverage with the truth; in percent and points."""
    rows = []
    names = family or list(FAMILIES)
    with shown_progress() as progress:
        stage = progress.stage("worlds")
        for place, name in enumerate(names):
            for seed in range(first_seed, first_seed + worlds):
                world = family_world(name, seed, trajectories=trajectories, questions=questions)
                for probes in (16, 4):
                    found = errors_in_world(world, probes, seed=seed, draws=draws)
                    rows.append({"family": name, "probes": probes, **found})
                stage(place * worlds + seed - first_seed + 1, len(names) * worlds)
    table = pd.DataFrame(rows).groupby(["family", "probes"], sort=False).mean()
    _show(table)
    _goals(table)


def _goals(table: pd.DataFrame) -> None:
    sixteen, four = table.xs(16, level="probes"), table.xs(4, level="probes")
    raw = (sixteen["raw_ad"] - sixteen["true_ad"]).abs()
    latent = (four["latent_ad"] - four["true_ad"]).abs()
    misses = latent[latent > raw + 0.0005].index.tolist()
    typer.echo(f"\nerror of AD, 4 probes latent at most that of 16 raw; misses: {misses or 'none'}")
    typer.echo(
        f"mean over families: latent from 4 {100 * latent.mean():.2f}, raw from 16 "
        f"{100 * raw.mean():.2f}: {latent.mean() / raw.mean():.2f} of it (goal 0.33)"
    )
    same = (four["raw_ad"] - four["true_ad"]).abs()
    typer.echo(
        f"and of that of the same 4 probes raw, {100 * same.mean():.2f}: "
        f"{latent.mean() / same.mean():.2f}"
    )
    error = four["latent_ad_error"].mean()
    typer.echo(
        f"mean absolute error per trajectory: {error / four['raw_ad_error'].mean():.2f} of that of "
        f"4 raw probes, {error / sixteen['raw_ad_error'].mean():.2f} of that of 16"
    )
    held = table["covered_mean_ad"].groupby(level="probes").mean()
    typer.echo(f"intervals of a world's mean AD that hold it, %: {(100 * held).round(1).to_dict()}")
    for column in ("covered_p", "covered_ad"):
        for probes in (16, 4):
            held = table.xs(probes, level="probes")[column]
            outside = held[(held < 0.90) | (held > 0.97)]
            said = ", ".join(f"{name} {100 * value:.1f}" for name, value in outside.items())
            typer.echo(f"{column} outside of 90 to 97 %, {probes} probes: {said or 'none'}")
    worse = (table["latent_ad"] - table["true_ad"]).abs() - (
        table["raw_ad"] - table["true_ad"]
    ).abs()
    zero = worse[worse.index.get_level_values("family") == "zero_or_one"]
    if zero.size:
        typer.echo(f"zero-one worlds, worse than raw by {100 * zero.max():.2f} points (goal 1)")


@app.command("thinned")
def thinned_campaign(
    campaign: Annotated[str, typer.Argument(help="A campaign with very many probes.")],
    repeats: Annotated[int, typer.Option(min=1)] = 3,
) -> None:
    """Keep 16, 8, 4 and 2 of a campaign's probes; all of them stand for the truth."""
    curves = load_curves(campaign)
    if curves.probes < 64:
        raise typer.BadParameter(f"{campaign} has {curves.probes} probes a position; 64 at least")
    rows = [
        {"probes": probes, **errors_in_world(world_of_many_probes(curves, probes, seed), probes)}
        for probes in (16, 8, 4, 2)
        for seed in range(repeats)
    ]
    _show(pd.DataFrame(rows).groupby("probes", sort=False).mean())


@app.command("held-out")
def held_out(
    campaign: Annotated[str | None, typer.Argument(help="Instead of the families.")] = None,
    seeds: Annotated[int, typer.Option(min=1)] = 2,
) -> None:
    """Predict half of the probes of half of the questions: nats per probe, higher is better."""
    if campaign:
        curves = load_curves(campaign)
        rows = {campaign: pd.DataFrame([held_out_scores(curves, s) for s in range(seeds)]).mean()}
    else:
        rows = {
            name: pd.DataFrame(
                [held_out_scores(family_world(name, s, probes=8).curves, s) for s in range(seeds)]
            ).mean()
            for name in FAMILIES
        }
    typer.echo(pd.DataFrame(rows).T.round(4).to_string())


@app.command()
def replay(
    campaign: Annotated[
        str | None, typer.Argument(help="A campaign with very many probes, instead of families.")
    ] = None,
    family: Chosen = None,
    probes: Annotated[int, typer.Option(min=16, help="That a position may have at most.")] = 64,
    share: Annotated[list[float] | None, typer.Option(help="Of 16 probes everywhere.")] = None,
    trajectories: Annotated[int, typer.Option(min=1)] = 200,
    questions: Annotated[int, typer.Option(min=1)] = 20,
    first_seed: Annotated[int, typer.Option(min=0, help="Of the first world.")] = 3,
    worlds: Annotated[int, typer.Option(min=1, help="Of each family, or of the campaign.")] = 1,
    out: Annotated[Path, typer.Option(help="Where the plot goes.")] = Path("cost-curves.png"),
) -> None:
    """Replay adaptive probing: error against cost beside uniform 2, 4, 8 and 16, and a plot."""
    curves = load_curves(campaign) if campaign else None
    names = [campaign] if campaign else family or list(FAMILIES)
    frames = []
    with shown_progress() as shown:
        progress = shown.stage("worlds")
        for place, name in enumerate(names):
            for seed in range(first_seed, first_seed + worlds):
                world = (
                    family_world(
                        name, seed, trajectories=trajectories, questions=questions, probes=probes
                    )
                    if curves is None
                    else world_of_many_probes(curves, min(probes, curves.probes), seed)
                )
                found = cost_curve(world, shares=tuple(share or (0.3, 0.35, 0.5)), seed=seed)
                frames.append(found.assign(world=name))
                progress(place * worlds + seed - first_seed + 1, len(names) * worlds)
    table = pd.concat(frames).set_index("world", append=True)
    table = table.groupby(["world", "plan"], sort=False).mean()
    _show(table)
    _show(table.groupby("plan", sort=False).mean())
    save(cost_plot(table), out.with_suffix(""))
    typer.echo(f"the plot is {out.with_suffix('.png')}")


@app.command()
def speed(
    trajectories: Annotated[int, typer.Option(min=1)] = 8_000,
    workers: Annotated[int | None, typer.Option(min=1)] = None,
) -> None:
    """Time a cell of the paper's size."""
    fit(family_world("wandering", 0, trajectories=50, questions=5).curves, draws=2)
    curves = family_world("wandering", 0, trajectories=trajectories, questions=500).curves
    clock, processor = time.perf_counter(), time.process_time()
    latent = fit(curves, workers=workers)
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    typer.echo(
        f"{curves.trajectories:,} trajectories, {curves.positions:,} positions, {latent.draws} "
        f"draws, {latent.learned[0, 0].iterations} iterations: {clock:.1f} s by the clock, "
        f"{processor:.1f} s of processor time; paths {latent.paths.nbytes / 1e6:.0f} MB"
    )
    typer.echo(f"mean absolute change of P: {np.abs(latent.mean - curves.correct / 16).mean():.4f}")


if __name__ == "__main__":
    app()
