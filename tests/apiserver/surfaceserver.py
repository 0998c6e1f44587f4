"""A server with nothing but surfaces: discovery, OpenAPI and tables of a few objects.

It stores nothing: writes are recorded and returned unchanged.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from moorage.api.codec import encode_json
from moorage.api.meta import ListMeta
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.apiserver.discovery import Discovery, version_document
from moorage.apiserver.http.messages import Document
from moorage.apiserver.openapi import Moved, OpenAPI
from moorage.apiserver.tables import table_of
from tests.apiserver.everything import everything

RESOURCES = everything()
DISCOVERY = Discovery(RESOURCES)
OPENAPI = OpenAPI(RESOURCES)
VERSION = version_document(python_version="3.11", platform="linux/amd64")
NOW = Timestamp.parse("2026-11-15T12:00:00Z")
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


class SurfaceServer(ThreadingHTTPServer):
    """The server, and what was asked of it."""

    daemon_threads = True
    claims: tuple[ResourceClaim, ...] = ()

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []  # methods and paths
        self.queries: list[dict[str, list[str]]] = []  # of what was written

    @property
    def url(self) -> str:
        """Where the server listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: SurfaceServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.server.asked.append(f"GET {url.path}")
        if url.path == CLAIMS:
            self._send(self._table())
        else:
            self._answer(self._find(url.path, parse_qs(url.query)))

    def do_POST(self) -> None:
        self._echo("POST")

    def do_PATCH(self) -> None:
        self._echo("PATCH")

    def _echo(self, method: str) -> None:
        url = urlsplit(self.path)
        self.server.asked.append(f"{method} {url.path}")
        self.server.queries.append(parse_qs(url.query))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._send(Document(body), 201)

    def _find(self, path: str, query: dict[str, list[str]]) -> Document | Moved | None:
        accept = self.headers.get("Accept", "")
        if path == "/version":
            return VERSION
        if path in OPENAPI:
            return OPENAPI.find(path, accept, query.get("hash", [""])[0])
        return DISCOVERY.find(path, accept, address=self.server.url)

    def _table(self) -> Document:
        kind = next(r for r in RESOURCES if r.plural == "resourceclaims").kinds["v1"]
        metadata = ListMeta(resource_version="1")
        return Document(encode_json(table_of(kind, self.server.claims, NOW, metadata=metadata)))

    def _answer(self, answer: Document | Moved | None) -> None:
        match answer:
            case None:
                status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
                body = json.dumps({**status, "reason": "NotFound", "message": "not found"})
                self._send(Document(body.encode()), 404)
            case Moved(location):
                self.send_response(301)
                self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()
            case Document():
                is_known = answer.is_known(self.headers.get("If-None-Match", ""))
                self._send(
                    answer._replace(body=b"") if is_known else answer, 304 if is_known else 200
                )

    def _send(self, document: Document, status: int = 200) -> None:
        self.send_response(status)
        for name, value in document.headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(document.body)))
        self.end_headers()
        self.wfile.write(document.body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def surface_server() -> Iterator[SurfaceServer]:
    """Run a server on a free port of loopback."""
    with SurfaceServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
