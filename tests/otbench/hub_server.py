"""A small hub on this machine: takes a dataset repository's commit and keeps its files."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml


class Hub:
    """Serves while used as a context manager.

    Attributes
    ----------
    files
        Path and content of what was committed.
    created
        Bodies of the requests that made a repository.
    token
        What it lets in.
    """

    def __init__(self, token="hf_right"):
        self.files, self.created, self.token = {}, [], token
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.headers.get("authorization") != f"Bearer {hub.token}":
                    return self.reply(400, {"error": "another token is needed"})
                return self.reply(*hub.answer(self.path, body))

            def do_GET(self):
                self.reply(200, {"id": "me/mine", "sha": "0" * 40, "siblings": []})

            def reply(self, status, value):
                text = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, path, body):
        """Return status and reply of a request."""
        if path == "/api/repos/create":
            self.created.append(json.loads(body))
            return 200, {"url": f"{self.url}/datasets/me/mine"}
        if path == "/api/validate-yaml":
            yaml.safe_load(json.loads(body)["content"].split("---")[1])
            return 200, {"errors": [], "warnings": []}
        if "/preupload/" in path:
            asked = json.loads(body)["files"]
            return 200, {
                "files": [
                    {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                    for file in asked
                ]
            }
        if "/commit/" in path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    value = line["value"]
                    self.files[value["path"]] = base64.b64decode(value["content"])
            return 200, {
                "commitUrl": f"{self.url}/datasets/me/mine/commit/1",
                "commitOid": "1" * 40,
                "success": True,
            }
        return 404, {"error": f"no {path}"}

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
