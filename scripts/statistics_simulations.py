"""Run the simulations behind ``docs/statistics.md``: coverage, bias of OR, AD and frontiers.

    python scripts/statistics_simulations.py coverage intervals.npz   # continues where it was
    python scripts/statistics_simulations.py bias
    python scripts/statistics_simulations.py frontiers

All worlds are synthetic (``evaluator/simulation/worlds.py``); no model is involved.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from evaluator.simulation.estimators import (
    COVERED,
    bias_table,
    coverage,
    frontier_bias_table,
    world_estimates,
    world_intervals,
)
from evaluator.simulation.worlds import Population, make_world, paper_population
from stp.cli.progress import shown_progress
from stp.seeds import PAPER_SEED

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("coverage")
def run_coverage(
    file: Annotated[Path, typer.Argument(help="Where finished worlds are kept (.npz).")],
    worlds: Annotated[int, typer.Option(min=1, help="Worlds with intervals.")] = 500,
    replicates: Annotated[int, typer.Option(min=1)] = 1_000,
    trajectories: Annotated[int, typer.Option(min=1, help="Of every question.")] = 16,
    scale: Annotated[float, typer.Option(help="Times the paper's questions.")] = 1.0,
    seconds: Annotated[float, typer.Option(help="Stop after this; run again to continue.")] = 1e9,
) -> None:
    """Count in how many worlds 95 % intervals hold the truth.

    One model, the paper's four benchmarks. The truth is what estimates average to over as many
    further worlds.
    """
    population = replace(paper_population().sized(models=1, scale=scale), trajectories=trajectories)
    known = dict(np.load(file)) if file.exists() else {}
    ends = list(known.get("ends", []))
    truths = list(known.get("truths", []))
    started = time.monotonic()
    with shown_progress() as progress:
        stage = progress.stage("worlds for the truth")
        while time.monotonic() - started < seconds and len(truths) < worlds:
            truths.append(world_estimates(population, 1_000_000 + len(truths)))
            stage(len(truths), worlds)
        stage = progress.stage("worlds with intervals")
        while time.monotonic() - started < seconds and len(ends) < worlds:
            found = world_intervals(population, len(ends), replicates=replicates)
            ends.append(np.stack([found.low, found.high]))
            stage(len(ends), worlds)
    np.savez(file, ends=np.array(ends), truths=np.array(truths))
    typer.echo(f"{len(ends)} worlds with intervals, {len(truths)} for the truth")
    if ends:
        typer.echo(_coverage_table(population, np.array(ends), np.array(truths)).to_string())


def _coverage_table(population: Population, ends: np.ndarray, truths: np.ndarray) -> pd.DataFrame:
    _, share = coverage(ends[:, 0], ends[:, 1], truths.mean(axis=0))
    names = [benchmark.name for benchmark in population.benchmarks]
    return pd.DataFrame(100 * share, index=list(COVERED), columns=[*names, "average"]).round(1)


@app.command("bias")
def run_bias(
    scale: Annotated[float, typer.Option(help="Times the paper's questions.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0)] = 1,
) -> None:
    """Compare the estimates of OR and AD with the truth, in kinds of worlds."""
    base = paper_population().sized(scale=scale)
    kinds = {
        "as the paper-size campaign": base,
        "calm (no wander)": replace(base, wander=0.0),
        "wild (wander 0.8)": replace(base, wander=0.8),
        "flat pieces": replace(base, wander=0.0, width=1e-10),
    }
    for name, population in kinds.items():
        typer.echo(f"\n{name}, in percent and points")
        typer.echo((100 * bias_table(population, seed)).round(2).to_string())


@app.command("frontiers")
def run_frontiers(
    scale: Annotated[float, typer.Option(help="Times the paper's questions.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0)] = PAPER_SEED,
    model: Annotated[int, typer.Option(min=0, max=5, help="Which of the six.")] = 0,
    benchmark: Annotated[int, typer.Option(min=0, max=3, help="Which of the four.")] = 2,
) -> None:
    """Compare a cell's frontiers with what their actions are worth by the truth."""
    world = make_world(paper_population().sized(scale=scale), seed)
    table = frontier_bias_table(world, model=model, benchmark=benchmark)
    shown = table[[0.1, 0.2, 0.3, 0.5, 1.0]]
    typer.echo((100 * shown).round(1).to_string())


if __name__ == "__main__":
    app()
