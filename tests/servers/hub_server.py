"""A hub on loopback that answers what `huggingface_hub` asks for a repository: its commit, its files, their bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

COMMIT = "c0ffee" + "0" * 34
GATED = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to model is restricted"}
MISSING = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}


@dataclass
class Hub:
    """What is at the hub: the folder of each repository, or the status and headers that it is refused with."""

    url: str
    repositories: dict[str, Path] = field(default_factory=dict)
    refusals: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)


@contextmanager
def run_hub() -> Iterator[Hub]:
    """A hub in threads of this process, until the end of the block."""

    class Handler(_HubHandler):
        hub = Hub("")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Handler.hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _HubHandler(BaseHTTPRequestHandler):
    hub: ClassVar[Hub]

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *_: Any) -> None:
        """Nothing: the test has the list of requests."""

    def _answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        self.hub.requests.append(f"{self.command} {path}")
        parts = path.strip("/").split("/")
        is_api = parts[:2] == ["api", "models"]
        name = "/".join(parts[2:4] if is_api else parts[:2])
        if name in self.hub.refusals:
            status, headers = self.hub.refusals[name]
            return self._send(status, b"", headers, with_body)
        folder = self.hub.repositories.get(name)
        if folder is None:
            return self._send(401, b"", MISSING, with_body)
        if is_api and parts[4] == "tree":
            return self._send(200, json.dumps(_list_files(folder)).encode(), {}, with_body)
        if is_api:
            if parts[5] not in ("main", COMMIT):
                headers = {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}
                return self._send(404, b"", headers, with_body)
            return self._send(200, json.dumps({"id": name, "sha": COMMIT, "siblings": []}).encode(), {}, with_body)
        data = folder.joinpath(*parts[4:]).read_bytes()
        headers = {"ETag": f'"{hashlib.sha1(data, usedforsecurity=False).hexdigest()}"', "X-Repo-Commit": COMMIT}
        return self._send(200, data, headers, with_body)

    def _send(self, status: int, body: bytes, headers: dict[str, str], with_body: bool) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)


def _list_files(folder: Path) -> list[dict[str, Any]]:
    return [
        {
            "type": "file",
            "path": str(path.relative_to(folder)),
            "size": path.stat().st_size,
            "oid": hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest(),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
