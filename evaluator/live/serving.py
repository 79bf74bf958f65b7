"""Opening the server and running it: a model, its service, a socket."""

import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from starlette.applications import Starlette

from data.errors import MisuseError
from evaluator.live.server import ChatServer, ServerOptions
from evaluator.live.service import Service
from evaluator.live.setup import Ready

PIECE_TOKENS: Final = 16
"""Tokens that are sampled before a client is told: streams flow, and who has gone costs no more."""
_ATTEMPTS: Final = 2
"""How often an upstream is asked for a piece before the client is told that it fails."""
_BACKLOG: Final = 1024
_SHUTDOWN_SECONDS: Final = 10


def open_server(
    ready: Ready, options: ServerOptions, *, batch: int = 32, waiting: int = 256
) -> Starlette:
    """Load the model; return the application that serves it.

    Parameters
    ----------
    ready
        The model and the method.
    options
        How clients are treated.
    batch, waiting
        Requests under way at once, and waiting beside them.

    Raises
    ------
    data.errors.StpError
        If the model cannot be loaded, or its engine does not show what the method needs.
    """
    # A campaign is patient with a server that is gone for minutes; a client waits meanwhile.
    patience = {"attempts": _ATTEMPTS} if ready.wanted.engine.name == "server" else {}
    engine, plan = ready.open(**patience)
    service = Service(engine, batch=batch, waiting=waiting)
    return ChatServer(service, replace(plan, piece_tokens=PIECE_TOKENS), options).application()


def run_server(
    application: Starlette, host: str, port: int, on_ready: Callable[[str], None]
) -> None:
    """Serve until a signal says to stop; requests under way are ended, the model is freed.

    Raises
    ------
    data.errors.MisuseError
        If the address cannot be listened on.
    """
    import uvicorn

    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise MisuseError(f"{host}:{port}: cannot listen there: {error.strerror}") from error
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    config = uvicorn.Config(
        application,
        log_level="warning",
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        lifespan="on",
    )
    with listening:
        shown = f"[{host}]" if ":" in host else host
        on_ready(f"http://{shown}:{listening.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listening])
