"""Tables of a real server, made again from the objects that it had."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from moorage.api.catalogue import SERVED, to_hub
from moorage.api.codec import decode_tree, encode_json
from moorage.api.kinds import Kind
from moorage.api.meta import ListMeta
from moorage.api.timestamp import Timestamp
from moorage.apiserver.tables import Include, table_of, table_of_one
from tests.corpus import corpus

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Recorded(NamedTuple):
    label: str
    kind: Kind
    table: dict[str, Any]


def _kind(api_version: str, plural: str) -> Kind:
    return next(k for k in SERVED if (k.api_version, k.plural) == (api_version, plural))


def _recorded() -> Iterator[Recorded]:
    for path in sorted(corpus("http", "tables").glob("*.table.json")):
        table = json.loads(path.read_text())
        api_version, _, plural = path.name.partition(".table")[0].rpartition("_")
        if path.name.startswith(("single", "deviceclasses")):
            api_version, plural = "resource.k8s.io/v1", "deviceclasses"
        api_version = "v1" if api_version == "core" else api_version.replace("_", "/")
        yield Recorded(path.name, _kind(api_version, plural), table)
    for path in sorted(corpus("http", "1.37").glob("5[01]-get-*.json")):
        for exchange in json.loads(path.read_text()):
            parts = urlsplit(exchange["uri"]).path.split("/")
            api_version = "v1" if parts[1] == "api" else "/".join(parts[2:4])
            table = exchange["responseBody"]
            if isinstance(table, dict) and table.get("kind") == "Table":
                yield Recorded(path.name, _kind(api_version, parts[-1]), table)


@cache
def _objects() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the objects of the recordings by uid and version."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in (*corpus("golden").glob("*.json"), *corpus("http", "1.37").glob("*.json")):
        _gather(json.loads(path.read_text()), found)
    return found


def _gather(tree: Any, found: dict[tuple[str, str], dict[str, Any]]) -> None:
    if isinstance(tree, list):
        for item in tree:
            _gather(item, found)
    elif isinstance(tree, dict):
        metadata = tree.get("metadata")
        has_content = "spec" in tree or "involvedObject" in tree
        if isinstance(metadata, dict) and has_content and "resourceVersion" in metadata:
            found[metadata.get("uid", ""), metadata["resourceVersion"]] = tree
        for item in tree.values():
            _gather(item, found)


def _object_of(kind: Kind, row: dict[str, Any]) -> Any:
    """Return the object of a row; None if it was not recorded."""
    metadata = row["object"]["metadata"]
    tree = _objects().get((metadata["uid"], metadata["resourceVersion"]))
    if tree is None and kind.name not in ("DeviceClass", "ResourceClaimTemplate", "ServiceAccount"):
        return None
    body = dict(tree or row["object"])
    body.update(kind=kind.name, apiVersion=kind.api_version, metadata=metadata)
    return to_hub(decode_tree(body, kind.struct).value)


def _now(row: dict[str, Any]) -> Timestamp:
    """Return the earliest time at which the row's last cell was true."""
    created = Timestamp.parse(row["object"]["metadata"]["creationTimestamp"])
    ages = [cell for cell in row["cells"] if isinstance(cell, str) and _seconds(cell) is not None]
    seconds = max((_seconds(cell) or 0 for cell in ages), default=0)
    return Timestamp(created.instant + timedelta(seconds=seconds))


def _seconds(cell: str) -> int | None:
    total, digits = 0, ""
    for letter in cell:
        if letter.isdigit():
            digits += letter
        elif letter in _UNITS and digits:
            total, digits = total + int(digits) * _UNITS[letter], ""
        else:
            return None
    return total if not digits and cell else None


def _bare(columns: Any) -> list[dict[str, Any]]:
    return [{k: v for k, v in column.items() if k != "description"} for column in columns]


def test_columns_are_those_of_kubernetes() -> None:
    now = Timestamp.parse("2026-11-15T06:53:18Z")
    for label, kind, table in _recorded():
        mine = json.loads(encode_json(table_of(kind, (), now)))
        assert _bare(mine["columnDefinitions"]) == _bare(table["columnDefinitions"]), label
        assert all(column["description"] for column in mine["columnDefinitions"])
        assert mine.keys() == table.keys()


def test_rows_are_those_of_kubernetes() -> None:
    compared = 0
    for recorded in _recorded():
        for row in recorded.table["rows"]:
            value = _object_of(recorded.kind, row)
            if value is None:
                continue
            is_whole = row["object"]["kind"] != "PartialObjectMetadata"
            include = Include.OBJECT if is_whole else Include.METADATA
            # A cell shows the age in few letters, so the very moment is not known.
            tables = [
                table_of(recorded.kind, (value,), Timestamp(instant), include=include)
                for instant in _moments(row)
            ]
            mine = [json.loads(encode_json(table))["rows"][0] for table in tables]
            assert row in mine, (recorded.label, row["cells"], [m["cells"] for m in mine])
            compared += 1
    assert compared > 200, compared


def _moments(row: dict[str, Any]) -> list[Any]:
    start = _now(row).instant
    return [start + timedelta(seconds=s) for s in (0, 1, 30, -1, -30)]


def test_a_watch_sends_columns_once_and_bookmarks_as_rows() -> None:
    kind = _kind("resource.k8s.io/v1", "deviceclasses")
    lines = corpus("http", "tables", "watch-sendInitialEvents.table.jsonl").read_text().splitlines()
    for i, line in enumerate(lines):
        wanted = json.loads(line)["object"]
        (row,) = wanted["rows"]
        body = {"metadata": row["object"]["metadata"], "apiVersion": kind.api_version}
        value: Any = decode_tree({**body, "kind": kind.name}, kind.struct).value
        is_bookmark = value.metadata.creation_timestamp is None
        now = Timestamp.parse("2026-11-15T00:00:00Z") if is_bookmark else _now(row)
        mine = json.loads(encode_json(table_of_one(kind, value, now, headers=i == 0)))
        if i == 0:
            wanted["columnDefinitions"] = mine["columnDefinitions"]
        assert mine == wanted


def test_a_list_that_goes_on_says_so() -> None:
    kind = _kind("v1", "pods")
    metadata = ListMeta(resource_version="7", continue_="abc", remaining_item_count=3)
    now = Timestamp.parse("2026-11-15T06:53:18Z")
    mine = json.loads(encode_json(table_of(kind, (), now, metadata=metadata)))
    assert mine["metadata"] == {
        "resourceVersion": "7",
        "continue": "abc",
        "remainingItemCount": 3,
    }
    assert mine["rows"] == []
