"""An HTTP server that answers completions as it is told to: for what real servers seldom do."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], bytes] | None
"""Status, headers and body; None drops the connection in the middle of an answer."""


def completion(body: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Return what a vLLM server would answer: the seed's last digit, again and again."""
    token = body["seed"] % 10 + 10
    count, finish = body["max_tokens"], "length"
    if token in body.get("stop_token_ids", ()):
        count, finish = 1, "stop"
    choice = {
        "text": "t" * count,
        "token_ids": [token] * count,
        "prompt_token_ids": body["prompt"],
        "finish_reason": finish,
        **others,
    }
    return {"choices": [choice], "usage": {"prompt_tokens": len(body["prompt"])}}


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that leave early are part of the tests."""


class ScriptedServer:
    """Serves one model, and hands each completions request to ``answer``.

    Attributes
    ----------
    answer
        Returns the reply to a body; by default a good one.
    models
        The entries of ``/v1/models``.
    bodies, headers
        Of the completions requests so far.
    """

    def __init__(self) -> None:
        self.answer: Callable[[dict[str, Any]], Reply] = self.good
        self.models: list[dict[str, Any]] = [{"id": "demo", "max_model_len": 128}]
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self._server = _QuietServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @staticmethod
    def good(body: dict[str, Any], **others: Any) -> Reply:
        """Answer as vLLM does."""
        return 200, {}, json.dumps(completion(body, **others)).encode()

    def take(self, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        """Answer one request."""
        with self._lock:
            self.bodies.append(body)
            self.headers.append(headers)
        return self.answer(body)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path == "/v1/models":
                    content = json.dumps({"data": scripted.models}).encode()
                    self._send((200, {}, content))
                else:
                    self._send((404, {}, b"{}"))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._send(scripted.take(body, {k.lower(): v for k, v in self.headers.items()}))

            def _send(self, reply: Reply) -> None:
                if reply is None:
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                    self.close_connection = True
                    return
                status, headers, content = reply
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Say nothing."""

        return Handler
