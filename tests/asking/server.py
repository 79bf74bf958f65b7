"""An OpenAI-compatible server of the demo model: what users put behind a base URL, in one process.

It speaks the part of the protocol that a chat needs (``POST /v1/chat/completions``), gives thinking
apart or as the model wrote it, counts its tokens in ``usage``, and can be told to misbehave.
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from stp.asking import Request, RequestGroup, Responder, Response, Settings


class DemoServer(ThreadingHTTPServer):
    """Answers chats with a responder, one at a time.

    ``style``: ``"parted"`` (``reasoning_content`` and reasoning tokens), ``"tags"`` (thinking in
    the text between tags), ``"headless"`` (the same, with the opening tag in the prompt),
    ``"bare"`` (no usage). ``bad_prompt``: a prompt that holds it gets a server error every time.
    """

    daemon_threads = True

    def __init__(
        self, responder: Responder, *, style: str = "parted", bad_prompt: str = ""
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.responder = responder
        self.style = style
        self.bad_prompt = bad_prompt
        self.bodies: list[dict[str, Any]] = []
        self.scripted: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: DemoServer

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][-1]["content"]
        with self.server.lock:
            self.server.bodies.append(body)
            if self.server.bad_prompt and self.server.bad_prompt in str(prompt):
                self._send(500, {"error": {"message": "out of memory", "type": "server_error"}})
                return
            if self.server.scripted:
                self._send(200, self.server.scripted.pop(0))
                return
            self._send(200, _completion(self.server, body, str(prompt)))

    def _send(self, status: int, content: dict[str, Any]) -> None:
        payload = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def _completion(server: DemoServer, body: dict[str, Any], prompt: str) -> dict[str, Any]:
    answers: list[Response] = []
    request = Request(id="1", prompt=prompt, seed=int(body.get("seed") or 0))
    settings = Settings(
        max_tokens=body.get("max_tokens") or body.get("max_completion_tokens"),
        temperature=body.get("temperature"),
    )
    server.responder.respond(
        RequestGroup(requests=[request], settings=settings, on_response=answers.append)
    )
    (answer,) = answers
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if server.style == "parted":
        message["reasoning_content"] = answer.thinking
    else:
        closed = f"</think>\n\n{answer.text}" if answer.answer_tokens else ""
        opened = "" if server.style == "headless" else "<think>\n"
        message["content"] = f"{opened}{answer.thinking}{closed}"
    return chat_completion(message, answer, usage=server.style != "bare", style=server.style)


def chat_completion(
    message: dict[str, Any],
    answer: Response | None = None,
    *,
    usage: bool = True,
    style: str = "parted",
    finish: str | None = None,
) -> dict[str, Any]:
    """Return a whole reply of the protocol."""
    spent = answer.output_tokens if answer is not None else 10
    reply: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "demo",
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": finish or (answer.finish if answer is not None else "stop"),
            }
        ],
    }
    if usage:
        reply["usage"] = {"prompt_tokens": 5, "completion_tokens": spent, "total_tokens": 5 + spent}
        if style == "parted" and answer is not None:
            details = {"reasoning_tokens": answer.thinking_tokens}
            reply["usage"]["completion_tokens_details"] = details
    return reply


@contextlib.contextmanager
def serving(responder: Responder, **options: Any) -> Iterator[DemoServer]:
    """Run a server in this process for as long as the block lasts."""
    server = DemoServer(responder, **options)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
