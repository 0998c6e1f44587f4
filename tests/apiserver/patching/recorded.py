"""Writes that a real server answered, each with the object it found before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from moorage.api.catalogue import SERVED
from moorage.api.kinds import Kind
from tests.corpus import corpus


class Write(NamedTuple):
    """A request that writes, and its answer."""

    label: str
    method: str
    kind: Kind
    subresource: str
    content_type: str
    manager: str
    force: bool
    body: bytes
    before: Any  # the object as it was, or None
    status: int
    answer: Any

    @property
    def now(self) -> str:
        """The time at which the server wrote the manager's entry."""
        entries = self.answer.get("metadata", {}).get("managedFields", [])
        mine = [e for e in entries if e.get("manager") == self.manager and e.get("time")]
        return str(max((e["time"] for e in mine), default="2026-11-15T06:51:59Z"))


def writes() -> Iterator[Write]:
    """Yield every recorded write of kinds that we serve, in order."""
    objects: dict[str, Any] = {}
    for path in sorted(corpus("http", "1.37").glob("*.json")):
        for exchange in json.loads(path.read_text()):
            yield from _write(path.stem, exchange, objects)
            _remember(exchange, objects)


def _write(label: str, exchange: Any, objects: dict[str, Any]) -> Iterator[Write]:
    url = urlsplit(exchange["uri"])
    found = _resource(url.path)
    if exchange["method"] not in ("PATCH", "POST", "PUT") or found is None:
        return
    kind, name, subresource = found
    answer, body = exchange["responseBody"], exchange["requestBody"]
    if not isinstance(answer, dict) or "kind" not in answer:
        return
    if not isinstance(body, dict | list | str):
        return
    if isinstance(body, str) and not body.startswith("{"):
        return  # protobuf
    if answer.get("kind") == "Status" and exchange["method"] != "PATCH":
        return  # refused before or after what is tested here
    query = {key: values[0] for key, values in parse_qs(url.query).items()}
    headers = exchange["requestHeaders"]
    yield Write(
        label=label,
        method=exchange["method"],
        kind=kind,
        subresource=subresource,
        content_type=headers.get("Content-Type", ""),
        manager=query.get("fieldManager", headers.get("User-Agent", "").partition("/")[0]),
        force=query.get("force") == "true",
        body=body.encode() if isinstance(body, str) else json.dumps(body).encode(),
        before=objects.get(f"{kind.plural}/{name}"),
        status=exchange["status"],
        answer=answer,
    )


def _remember(exchange: Any, objects: dict[str, Any]) -> None:
    """Keep what the server showed of its objects; a dry run shows what there never was."""
    answer = exchange["responseBody"]
    if not isinstance(answer, dict) or "dryRun" in exchange["uri"]:
        return
    for shown in answer.get("items") or [answer]:
        found = _resource(urlsplit(exchange["uri"]).path)
        name = shown.get("metadata", {}).get("name") if isinstance(shown, dict) else None
        if found and name and "managedFields" in shown["metadata"]:
            kind = found[0]
            named = {"apiVersion": kind.api_version, "kind": kind.name, **shown}
            objects[f"{kind.plural}/{name}"] = named  # items of lists do not say it
        if found and exchange["method"] == "DELETE":
            objects.pop(f"{found[0].plural}/{found[1]}", None)


def _resource(path: str) -> tuple[Kind, str, str] | None:
    """Return the kind, name and subresource of a path."""
    parts = path.strip("/").split("/")
    prefix = 3 if parts[0] == "apis" else 2
    api_version = "/".join(parts[1:prefix])
    rest = parts[prefix:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    for kind in SERVED:
        if rest and (kind.api_version, kind.plural) == (api_version, rest[0]):
            name, subresource, *_ = (*rest[1:], "", "")
            return kind, name, subresource
    return None
