"""Time the analysis at the paper's size, on a synthetic campaign.

    python scripts/synthetic_campaign.py paper-size
    python scripts/benchmarks/analysis.py paper-size

Prints, for every step, seconds by the clock, seconds of processor time over all threads, and the
highest memory so far. On a machine that does other work too, processor time is what to compare.
Compiled functions are warmed up on a small world first; ``--cold`` leaves that out.
"""

import resource
import time
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from evaluator.analysis.bootstrap import bootstrap_curves
from evaluator.analysis.crossfit import bias_aware
from evaluator.analysis.groups import pool_benchmarks
from evaluator.analysis.pipeline import Asked, analyse, frontier_bands
from evaluator.analysis.thinning import thin_probes, trajectory_sensitivity
from evaluator.simulation.worlds import make_world, paper_population
from stp.campaign.curves import load_curves

Result = TypeVar("Result")


def timed(what: str, work: Callable[[], Result]) -> Result:
    """Do some work and print what it took."""
    clock, processor = time.perf_counter(), time.process_time()
    result = work()
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    typer.echo(f"{what:<52}{clock:>9.1f} s{processor:>9.1f} s{memory:>8.2f} GB")
    return result


def main(
    campaign: Annotated[str, typer.Argument(help="From scripts/synthetic_campaign.py.")],
    replicates: Annotated[int, typer.Option(min=1)] = 10_000,
    frontier_replicates: Annotated[int, typer.Option(min=1)] = 100,
    workers: Annotated[int, typer.Option(min=1)] = 2,
    cold: Annotated[bool, typer.Option(help="Do not compile first.")] = False,
) -> None:
    """Time loading, tables, thinning, cross-fitting and bootstrap."""
    if not cold:
        small = make_world(paper_population().sized(models=2, scale=0.02), 0).curves
        analyse(small, name="warm-up", asked=Asked(replicates=2, workers=1))
        trajectory_sensitivity(small, draws=2)
    typer.echo(f"{'':<52}{'clock':>11}{'processor':>11}{'memory':>11}")
    curves = timed("load the campaign into curves", lambda: load_curves(campaign))
    typer.echo(f"  {curves.trajectories:,} trajectories, {curves.positions:,} positions")
    for m in (4, 8, 12, 16):
        timed(f"thin to {m} probes, exactly", lambda m=m: thin_probes(curves, m))
    timed("thin to 2, 4, 8, 16 trajectories, 2,000 draws", lambda: trajectory_sensitivity(curves))
    timed("OR and AD by four estimators", lambda: bias_aware(curves))
    timed(
        "all tables without bootstrap",
        lambda: analyse(curves, name=campaign, asked=Asked(replicates=0)),
    )
    timed(
        f"bootstrap, {replicates:,} replicates, 6 statistics, {workers} workers",
        lambda: bootstrap_curves(curves, replicates=replicates, workers=workers),
    )
    timed(
        f"frontier bands, {frontier_replicates:,} replicates, {workers} workers",
        lambda: frontier_bands(pool_benchmarks(curves), frontier_replicates, workers=workers),
    )


if __name__ == "__main__":
    typer.run(main)
