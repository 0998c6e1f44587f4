"""A server that answers at once with prepared responses, to measure the client alone."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import uvicorn

CLAIMS = 10_000


def _claim(number: int, revision: int) -> dict[str, Any]:
    uid = f"0b6dd4e2-4d3b-4a51-9a0c-{number:012}"
    devices = [
        {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": f"gpu-{i}"}
        for i in range(2)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"claim-{number}",
            "namespace": "default",
            "uid": uid,
            "resourceVersion": str(revision),
            "creationTimestamp": "2026-11-15T12:00:00Z",
            "finalizers": ["resource.kubernetes.io/delete-protection"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": f"pod-{number}", "uid": uid}
            ],
        },
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {
                            "deviceClassName": "gpu.example.com",
                            "allocationMode": "ExactCount",
                            "count": 2,
                        },
                    }
                ]
            }
        },
        "status": {
            "allocation": {"devices": {"results": devices}},
            "reservedFor": [{"resource": "pods", "name": f"pod-{number}", "uid": uid}],
        },
    }


CLAIM = msgspec.json.encode(_claim(0, 1))
RESOURCES = msgspec.json.encode({"resources": [{"name": "resourceclaims"}]})
JSON = [(b"content-type", b"application/json")]


class Trivial:
    """An application that knows one claim, a list of claims, and a watch of many events."""

    def __init__(self, events: int = 0) -> None:
        items = [_claim(number, number + 1) for number in range(CLAIMS)]
        self._items = [msgspec.json.encode(item) for item in items]
        self._lines = [
            msgspec.json.encode(
                {"type": "MODIFIED", "object": _claim(number % CLAIMS, CLAIMS + number)}
            )
            + b"\n"
            for number in range(events)
        ]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer."""
        if scope["type"] != "http":
            return
        path, query = scope["path"], parse_qs(scope["query_string"].decode())
        while (await receive()).get("more_body"):
            pass
        if "watch" in query:
            await self._watch(send)
            return
        if scope["method"] == "GET" and path.endswith("/v1/resourceclaims"):
            body = self._list(query)
        elif path.count("/") < 4:
            body = RESOURCES
        else:
            body = CLAIM
        length = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": JSON + length})
        await send({"type": "http.response.body", "body": body})

    def _list(self, query: dict[str, list[str]]) -> bytes:
        start, limit = int(query.get("continue", ["0"])[0]), int(query.get("limit", ["0"])[0])
        end = start + limit if limit else CLAIMS
        rest = str(end) if end < CLAIMS else ""
        metadata = msgspec.json.encode({"resourceVersion": str(CLAIMS), "continue": rest})
        items = b",".join(self._items[start:end])
        return b'{"metadata":' + metadata + b',"items":[' + items + b"]}"

    async def _watch(self, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": JSON})
        for line in self._lines:
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await asyncio.Event().wait()


async def _serve(folder: Path) -> None:
    """Serve with TLS if there is a folder of credentials."""
    config = uvicorn.Config(Trivial(), port=0, log_config=None, access_log=False, lifespan="off")
    if folder.exists():
        config.ssl_certfile, config.ssl_keyfile = folder / "server.crt", str(folder / "server.key")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    scheme = "https" if folder.exists() else "http"
    print(f"{scheme}://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", flush=True)
    await serving


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
