"""``stp signals``: what the model shows at every position of a campaign's trajectories."""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from data.errors import MisuseError

if TYPE_CHECKING:
    from stp.campaign.signal_record import SignalSettings


Layers = Annotated[
    str | None,
    typer.Option(
        "--layers",
        help="Hidden states to keep, with commas: numbers (0 the embedding, -1 the last), "
        "shares such as 50%, or 'none'. Without it: 50%.",
    ),
]
TrialTokens = Annotated[
    int | None,
    typer.Option(
        "--trial-tokens",
        min=0,
        help="Most tokens of a greedy trial answer at every position; 0: none. Without it: 20.",
    ),
]


def signals(
    folder: Annotated[str, typer.Argument(help="A campaign's folder: a path or an fsspec URL.")],
    layers: Layers = None,
    trial_tokens: TrialTokens = None,
    trial_prompt: Annotated[
        str | None,
        typer.Option("--trial-prompt", help="Text between the closed prefix and a trial answer."),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option("--engine", help="Another engine than the campaign's: transformers or vllm."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Read everything again, with these settings.")
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option("--ray", metavar="[ADDRESS]", help="On a Ray cluster, as `stp run --ray`."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="I/N", help="Only part I of N, as `stp run --shard`."),
    ] = None,
) -> None:
    """Read signals for termination methods at every step.

    Log-probabilities, entropies, hidden states. Needs the model, and trajectories that are
    generated. Killed or stopped, the same command continues.
    """
    from stp.campaign.lock import Part
    from stp.campaign.signals import signals_campaign
    from stp.cli.campaigns import elsewhere, ray_pool, watched

    part = None if shard is None else Part.parse(shard)
    settings = _settings(layers, trial_tokens, trial_prompt)
    go_on = f"stp signals {quote(folder)}" + f" --engine {engine}" * (engine is not None)
    result = watched(
        go_on + elsewhere(ray, part),
        lambda observer, stop: signals_campaign(
            folder,
            settings,
            engine=engine,
            again=again,
            observer=observer,
            stop=stop,
            open_pool=None if ray is None else ray_pool(ray),
            part=part,
        ),
    )
    waiting = f", {result.waiting} are not generated yet" if result.waiting else ""
    typer.echo(f"read signals of {result.units} units into {folder}{waiting}", err=True)


def _settings(
    layers: str | None, trial_tokens: int | None, trial_prompt: str | None
) -> "SignalSettings | None":
    """Return the settings asked for, or None if nothing was said."""
    from pydantic import ValidationError

    from stp.campaign.signal_record import SignalSettings

    asked: dict[str, object] = {}
    if layers is not None:
        names = [] if layers == "none" else [name.strip() for name in layers.split(",")]
        asked["layers"] = tuple(name if name.endswith("%") else _number(name) for name in names)
    if trial_tokens is not None:
        asked["trial_tokens"] = trial_tokens
    if trial_prompt is not None:
        asked["trial_prompt"] = trial_prompt
    if not asked:
        return None
    try:
        return SignalSettings.model_validate(asked)
    except ValidationError as error:
        raise MisuseError(f"signals: {error.errors()[0]['msg']}") from error


def _number(name: str) -> int:
    try:
        return int(name)
    except ValueError:
        raise MisuseError(
            f"--layers: {name!r} is not a layer; give numbers, shares such as 50%, or 'none'"
        ) from None


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command()(signals)
