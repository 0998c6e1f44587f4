"""Requests that once froze a server, or might: the worst known ones, and random ones like them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any, NamedTuple

import yaml

from moorage.api.kinds import Kind
from soak._oversized import FILLINGS, filled, least, spots

BYTES_MAX = 3 * 1024 * 1024 - 1024
JSON, YAML = "application/json", "application/yaml"
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
SIZES = (9_000, 100_000, 400_000, 1_000_000, BYTES_MAX)


class Worst(NamedTuple):
    """A request; `before` creates the object that it changes."""

    name: str
    method: str
    path: str
    body: bytes
    media: str = JSON
    before: tuple[str, bytes] | None = None  # path and body
    accept: str = JSON


def path_of(kind: Kind, namespace: str) -> str:
    """Return the path of a kind's objects."""
    start = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    return (
        f"{start}/namespaces/{namespace}/{kind.plural}"
        if kind.namespaced
        else (f"{start}/{kind.plural}")
    )


def encoded(tree: Any) -> bytes:
    """Return compact JSON."""
    return json.dumps(tree, separators=(",", ":")).encode()


def _config_map(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **more}


def _finalizers(numbers: range) -> list[str]:
    return [f"a.b/f{number}" for number in numbers]


@cache
def known(namespace: str, part: float = 1.0) -> tuple[Worst, ...]:
    """Return the worst requests that are known, or such as have only a part of their size."""

    def some(number: int) -> range:
        return range(int(number * part))

    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    claims = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    pods = f"/api/v1/namespaces/{namespace}/pods"
    keys = encoded(_config_map(data={f"k{number}": "" for number in some(50_000)}))
    held = encoded(_config_map(metadata={"name": "h", "finalizers": _finalizers(some(25_000))}))
    removals = [{"op": "remove", "path": f"/data/k{number}"} for number in some(9_900)]
    front = [{"op": "add", "path": "/metadata/finalizers/0", "value": "a.b/c"}] * len(some(9_000))
    tags = "".join(f"%TAG !a{number}! x:{number}\n" for number in some(80_000)) + "---\na: 1\n"
    selector = {"cel": {"expression": " || ".join(f"device.driver=='d{n}'" for n in range(380))}}
    requests = [
        {"name": f"r{n}", "exactly": {"deviceClassName": "a", "selectors": [selector] * 9}}
        for n in some(32)
    ]
    claim: dict[str, Any] = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    claim |= {"metadata": {"name": "a"}, "spec": {"devices": {"requests": requests}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    containers = [{"name": f"c{number}", "image": "i"} for number in some(3_000)]
    flow = "[" * 90 + "a," * len(some(60_000)) + "]" * 90
    return (
        Worst("removals", "PATCH", f"{maps}/a", encoded(removals), JSON_PATCH, (maps, keys)),
        Worst("front insertions", "PATCH", f"{maps}/h", encoded(front), JSON_PATCH, (maps, held)),
        Worst("directives", "POST", maps, tags.encode(), YAML),
        Worst("directives, applied", "PATCH", f"{maps}/a?fieldManager=m", tags.encode(), APPLY),
        Worst("flow", "POST", maps, f"data: {flow}".encode(), YAML),
        Worst("yaml keys", "POST", maps, _yaml_keys(some(120_000)), YAML),
        Worst("selectors", "POST", claims, encoded(_distinct_selectors(claim))),
        Worst("finalizers", "POST", maps, encoded(
            _config_map(metadata={"name": "b", "finalizers": _finalizers(some(120_000))})
        )),
        Worst("containers", "POST", pods, encoded({**pod, "spec": {"containers": containers}})),
        Worst("empty containers", "POST", pods, b'{"apiVersion":"v1","kind":"Pod","metadata":'
              b'{"name":"a"},"spec":{"containers":[' + b"{}," * len(some(1_000_000)) + b"{}]}}"),
        Worst("brackets", "POST", maps, b'{"data":' + b"[" * len(some(BYTES_MAX - 10))),
        Worst("long number", "POST", maps, b'{"data":' + b"1" * len(some(BYTES_MAX - 10)) + b"}"),
        Worst("as a table", "GET", maps, b"", before=(maps, keys),
              accept=f"{JSON};as=Table;v=v1;g=meta.k8s.io"),
        Worst("as YAML", "GET", f"{maps}/a", b"", before=(maps, keys), accept=YAML),
        Worst("as protobuf", "GET", maps, b"", before=(maps, keys),
              accept="application/vnd.kubernetes.protobuf"),
        Worst("values of a selector", "GET",
              f"{maps}?labelSelector=a+in+({','.join(f'v{n}' for n in some(20_000))})", b""),
        Worst("applied keys", "PATCH", f"{maps}/a?fieldManager=m&force=true", keys, APPLY,
              (maps, keys)),
        Worst("merged keys", "PATCH", f"{maps}/a", keys, MERGE, (maps, keys)),
    )  # fmt: skip


def _yaml_keys(numbers: range) -> bytes:
    return b"data:\n" + b"".join(b"  k%d: v\n" % number for number in numbers)


def _distinct_selectors(claim: dict[str, Any]) -> dict[str, Any]:
    tree = json.loads(json.dumps(claim))
    for r, request in enumerate(tree["spec"]["devices"]["requests"]):
        for s, selector in enumerate(request["exactly"]["selectors"]):
            selector["cel"]["expression"] += f" || device.driver=='{r}-{s}'"
    return dict(tree)


# --- random ones ----------------------------------------------------------------------------------


def random_request(random: Random, namespace: str) -> Worst:
    """Return a random request that is as large as it may be, or smaller."""
    spot = random.choice(spots())
    size = random.choice(SIZES)
    tree = filled(spot, random.choice(FILLINGS), size)
    if random.random() < 0.3:  # a second field of the same kind
        others = [other for other in spots() if other.kind == spot.kind]
        tree = _joined(tree, filled(random.choice(others), random.choice(FILLINGS), size // 2))
    path = path_of(spot.kind, namespace)
    tree["metadata"] = {**tree.get("metadata", {}), "name": f"x{random.randrange(4)}"}
    before = (path, encoded({**least(spot.kind), "metadata": {"name": tree["metadata"]["name"]}}))
    named = f"{path}/{tree['metadata']['name']}"
    dry = random.choice(("", "", "dryRun=All&"))
    maker = random.choice(_MAKERS)
    worst = maker(random, tree, path, named)
    joint = "&" if "?" in worst.path else "?"
    url = f"{worst.path}{joint}{dry}fieldManager=m".replace("&&", "&")
    return worst._replace(name=f"{worst.name} {spot}", path=url, before=before)


def _joined(left: Any, right: Any) -> Any:
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **{k: _joined(left[k], v) if k in left else v for k, v in right.items()}}
    return left


def _created(_: Random, tree: Any, path: str, __: str) -> Worst:
    return Worst("create", "POST", path, _cut(encoded(tree)))


def _in_yaml(random: Random, tree: Any, path: str, named: str) -> Worst:
    text = yaml.dump(tree, Dumper=yaml.CSafeDumper).encode(errors="replace")
    if random.random() < 0.5:
        return Worst("apply", "PATCH", named, _cut(text), APPLY)
    return Worst("create in YAML", "POST", path, _cut(text), YAML)


def _replaced(_: Random, tree: Any, __: str, named: str) -> Worst:
    return Worst("replace", "PUT", named, _cut(encoded(tree)))


def _merged(random: Random, tree: Any, _: str, named: str) -> Worst:
    return Worst("merge", "PATCH", named, _cut(encoded(tree)), random.choice((MERGE, STRATEGIC)))


def _patched(random: Random, tree: Any, _: str, named: str) -> Worst:
    """Return a JSON patch that sets the parts of a tree, and then changes them often."""
    pointers = list(_pointers(tree, ""))
    operations: list[Any] = [
        {"op": "add", "path": f"/{key}", "value": value} for key, value in tree.items()
    ]
    for _n in range(random.choice((10, 1_000, 9_900))):
        word = random.choice(("add", "remove", "replace", "move", "copy", "test"))
        path, source = random.choice(pointers), random.choice(pointers)
        operations.append({"op": word, "path": path, "from": source, "value": "v"})
    return Worst("JSON patch", "PATCH", named, _cut(encoded(operations)), JSON_PATCH)


def _pointers(tree: Any, path: str) -> Iterator[str]:
    items = enumerate(tree) if isinstance(tree, list) else tree.items()
    for number, (key, value) in enumerate(items):
        if number > 20:
            return
        yield f"{path}/{key}"
        if isinstance(value, dict | list):
            yield from _pointers(value, f"{path}/{key}")


def _cut(body: bytes) -> bytes:
    return body[:BYTES_MAX]


Maker = Callable[[Random, Any, str, str], Worst]
_MAKERS: tuple[Maker, ...] = (_created, _created, _in_yaml, _replaced, _merged, _patched)
