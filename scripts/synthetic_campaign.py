"""Write a campaign of the paper's size without any model, to try and time the analysis.

The numbers come from the generative model in ``evaluator/simulation/worlds.py``; they say nothing
about any language model. The folder has the format of a real run::

    python scripts/synthetic_campaign.py paper-size          # 6 models x 963 questions x 16
    python scripts/synthetic_campaign.py small --scale 0.02  # a fiftieth of the questions
    stp analyze paper-size
"""

from typing import Annotated

import typer

from data.errors import StpError
from evaluator.simulation.store import write_campaign
from evaluator.simulation.worlds import make_world, paper_population
from stp.cli.progress import shown_progress
from stp.seeds import PAPER_SEED


def main(
    out: Annotated[str, typer.Argument(help="New folder, or an fsspec URL.")],
    scale: Annotated[float, typer.Option(min=0.0, help="Times the paper's questions.")] = 1.0,
    models: Annotated[int, typer.Option(min=1, max=6, help="How many of the six models.")] = 6,
    seed: Annotated[int, typer.Option(min=0, help="Of the generative model.")] = PAPER_SEED,
    questions_per_unit: Annotated[
        int, typer.Option(min=1, help="Questions whose rows share a shard; a real run's is 4.")
    ] = 4,
) -> None:
    """Write a synthetic campaign."""
    population = paper_population().sized(models=models, scale=scale)
    world = make_world(population, seed)
    curves = world.curves
    try:
        with shown_progress() as progress:
            write_campaign(
                world,
                population,
                out,
                questions_per_unit=questions_per_unit,
                progress=progress.stage("writing"),
            )
    except StpError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(error.exit_code) from error
    typer.echo(
        f"{out}: {curves.trajectories:,} trajectories, {curves.positions:,} positions, "
        f"{curves.positions * curves.probes:,} probes, {curves.full_tokens_s.mean():,.0f} "
        "thinking tokens on average"
    )


if __name__ == "__main__":
    typer.run(main)
