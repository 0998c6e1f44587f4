"""A webhook over TLS, in the event loop of a test's server."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.certificates import (
    Pair,
    authority_certificate,
    new_key,
    serving_certificate,
)
from tests.apiserver.client import Client

Answer = Callable[[dict[str, Any]], Any]  # the request of a review: bytes, a response, or None


class Webhook:
    """Answers reviews with a function, and remembers what it was asked."""

    def __init__(self, client: Client, folder: Path, *, name: str = "localhost") -> None:
        self._client = client
        now = Timestamp(datetime.now(UTC))
        self.authority = authority_certificate(new_key(), now)
        pair = serving_certificate(self.authority, name, (), [name], now)
        self.asked: list[dict[str, Any]] = []
        self.heads: list[bytes] = []
        self.connections = 0
        self._tasks: set[Any] = set()
        self.answer: Answer = lambda _: {"allowed": True}
        self.review: dict[str, Any] = {}  # what answers have besides, or instead
        self._server = client.run(self._serve(_context(folder, pair)))
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _serve(self, context: ssl.SSLContext) -> Any:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=context)

    async def _connected(self, reader: Any, writer: Any) -> None:
        self.connections += 1
        self._tasks.add(asyncio.current_task())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.lower().split(b"\r\n")
                size = next(int(e.split(b":")[1]) for e in lines if e.startswith(b"content-length"))
                self.heads.append(head)
                writer.write(await self._answered(json.loads(await reader.readexactly(size))))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    def close(self) -> None:
        """Stop listening, and end all connections."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        self._client.run(asyncio.gather(*self._tasks, return_exceptions=True))
        self._client.run(asyncio.sleep(0))

    async def _answered(self, review: dict[str, Any]) -> bytes:
        request = review["request"]
        self.asked.append(request)
        found = self.answer(request)
        if asyncio.iscoroutine(found):
            found = await found
        if isinstance(found, bytes):
            return found
        response = {"uid": request["uid"], **found}
        body = {**review, "response": response, **self.review}
        body.pop("request", None)
        return http_answer(json.dumps(body).encode())

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}/check"

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.authority.certificate).decode()

    def configuration(self, *, kind: str = "Validating", **webhook: Any) -> dict[str, Any]:
        given = {
            "name": "check.example.com",
            "clientConfig": {"url": self.url, "caBundle": self.ca_bundle},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": [
                {
                    "apiGroups": ["*"],
                    "apiVersions": ["*"],
                    "operations": ["*"],
                    "resources": ["configmaps"],
                }
            ],
            **webhook,
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": "c"},
            "webhooks": [given],
        }


def http_answer(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def json_patch(*operations: dict[str, Any]) -> dict[str, Any]:
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": text}


def _context(folder: Path, pair: Pair) -> ssl.SSLContext:
    files = folder / "webhook.crt", folder / "webhook.key"
    files[0].write_bytes(pair.certificate)
    files[1].write_bytes(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    return context
