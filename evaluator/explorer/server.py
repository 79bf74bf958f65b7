"""The local server: on loopback only, read-only, behind a token in the address."""

import logging
import secrets
import socket
from dataclasses import dataclass
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from data.errors import MisuseError, StpError
from evaluator.explorer.page import FILES, page, page_file
from evaluator.explorer.source import Sources, piece_script

HOST = "127.0.0.1"
_LOG = logging.getLogger(__name__)
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def application(sources: Sources, token: str) -> Starlette:
    """Return the server's application.

    Below ``/TOKEN/`` there are the page, its own files, and ``pieces/NAME.js``; elsewhere there
    is nothing. Only names of pieces are looked up; no path of a request reaches the disk.
    """

    def _known(request: Request) -> bool:
        return secrets.compare_digest(request.path_params["token"], token)

    async def home(request: Request) -> Response:
        if not _known(request):
            return _nothing()
        return Response(page(), media_type="text/html", headers=_HEADERS)

    async def own_file(request: Request) -> Response:
        name = request.path_params["name"]
        if not _known(request) or name not in FILES:
            return _nothing()
        headers = _HEADERS | {"Cache-Control": "private, max-age=3600"}
        return Response(page_file(name), media_type="text/javascript", headers=headers)

    async def piece(request: Request) -> Response:
        if not _known(request):
            return _nothing()
        name = unquote(request.path_params["name"])
        script, status = await run_in_threadpool(_script, sources, name)
        return Response(script, status, media_type="text/javascript", headers=_HEADERS)

    return Starlette(
        routes=[
            Route("/{token}/", home),
            Route("/{token}/app/{name}", own_file),
            Route("/{token}/pieces/{name:path}.js", piece),
        ],
        # A page elsewhere whose name was made to mean this machine is not served.
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])],
        exception_handlers={404: lambda *_: _nothing()},
    )


def _nothing() -> Response:
    return PlainTextResponse("There is nothing here.", 404, headers=_HEADERS)


def _script(sources: Sources, name: str) -> tuple[str, int]:
    """Return a piece as a script; an error is one too, for the page to show."""
    try:
        return piece_script(name, sources.piece(name)), 200
    except StpError as error:
        return _failure(name, str(error)), 200
    # Whatever else goes wrong, the page that waits for the piece has to be told.
    except Exception:  # noqa: BLE001
        _LOG.exception("piece %s", name)
        return _failure(name, "an unexpected error; the server's log says more"), 200


def _failure(name: str, reason: str) -> str:
    from evaluator.present.page import script_json

    return f"stpFailed({script_json(name)},{script_json(reason)});\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """A socket that is bound, and the address of the page behind it."""

    socket: socket.socket
    token: str
    address: str


def listen(port: int = 0) -> Listening:
    """Bind a port of this machine's loopback, a free one for 0, and make a token.

    Raises
    ------
    data.errors.MisuseError
        If the port is taken.
    """
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((HOST, port))
        # A browser that is opened before the server runs waits for it.
        bound.listen()
    except OSError as error:
        bound.close()
        raise MisuseError(
            f"port {port}: {error.strerror or error}; leave out --port for a free one"
        ) from error
    token = secrets.token_urlsafe(24)
    return Listening(
        socket=bound, token=token, address=f"http://{HOST}:{bound.getsockname()[1]}/{token}/"
    )


def server(sources: Sources, listening: Listening) -> uvicorn.Server:
    """Return the server, to be run with ``run(sockets=[listening.socket])``."""
    return uvicorn.Server(
        uvicorn.Config(
            application(sources, listening.token),
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
        )
    )
