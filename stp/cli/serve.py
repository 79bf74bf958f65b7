"""``stp serve``: chat completions over a model whose thinking a method stops."""

from typing import TYPE_CHECKING, Annotated

import typer

from stp.cli.arguments import filled_by
from stp.cli.live import BatchOption, wanted_of

if TYPE_CHECKING:
    from evaluator.live.setup import Wanted


@filled_by("wanted", wanted_of)
def serve(
    wanted: "Wanted",
    model: Annotated[str, typer.Option("--model", help="A folder, a hub id, or demo.")],
    setting_bounds: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--setting-bounds",
            metavar="FROM TO",
            help="Settings that a request may name.",
            show_default="the whole grid",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen at; 0.0.0.0 for other machines too.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 8000,
    api_key_env: Annotated[
        str | None,
        typer.Option("--api-key-env", help="Variable with the key that clients must send."),
    ] = None,
    batch: BatchOption = 32,
    queue: Annotated[
        int, typer.Option("--queue", min=0, help="How many more requests may wait.")
    ] = 256,
    body_bytes: Annotated[
        int, typer.Option("--body-bytes", min=1024, help="Largest body of a request.")
    ] = 1 << 20,
    request_seconds: Annotated[
        float, typer.Option("--request-seconds", min=0.1, help="Longest time of a request.")
    ] = 600.0,
) -> None:
    """Serve a model by chat completions; a method stops its thinking."""
    import os

    from data.errors import MisuseError
    from stp.cli.progress import shown_progress

    key = None
    if api_key_env is not None:
        key = os.environ.get(api_key_env)
        if not key:
            raise MisuseError(f"--api-key-env {api_key_env}: the variable is not set")
    with shown_progress(at_once=True) as progress:
        progress.stage("starting")
        from evaluator.live.server import ServerOptions
        from evaluator.live.serving import open_server, run_server
        from evaluator.live.setup import get_ready

        ready = get_ready(wanted, progress=progress)
        policy, settings = ready.plan.policy, None
        if setting_bounds is not None:
            if policy is None:
                raise MisuseError("--setting-bounds needs a method; name it with --method")
            settings = policy.between(*setting_bounds)
        progress.stage("loading the model")
        options = ServerOptions(
            model_name=ready.model.name,
            api_key=key,
            body_bytes=body_bytes,
            request_seconds=request_seconds,
            settings=settings,
        )
        application = open_server(ready, options, batch=batch, waiting=queue)
    run_server(application, host, port, lambda url: typer.echo(f"serving {url}/v1", err=True))


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command()(serve)
