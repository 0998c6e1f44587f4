"""Random requests to a server: mostly nearly right, some wrong from the first byte on.

Objects of every kind, in JSON, YAML and protobuf, whole and damaged; patches of every form;
queries, selectors and headers; paths made of random segments; and bytes that are hardly HTTP.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

import yaml

from moorage.api import protobuf
from moorage.api.catalogue import KINDS
from moorage.api.catalogue import SERVED as KNOWN
from moorage.api.gates import Gates
from moorage.api.kinds import Kind
from moorage.apiserver.resources import REVIEWS
from moorage.apiserver.runtime_config import RuntimeConfig
from soak._damage import ODD_VALUES, bases, damaged_bytes, damaged_tree

# What a server serves without further options.
SERVED = tuple(kind for kind in KNOWN if RuntimeConfig().serves(kind, Gates.parse()))

NAMESPACE = "fuzz"
NAMES = ("a", "b")
JSON, YAML, PROTOBUF = "application/json", "application/yaml", protobuf.CONTENT_TYPE
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
CBOR_APPLY = "application/apply-patch+cbor"

PARTS = ("binding", "eviction", "token", "finalize", "scale", "log", "x")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", "get")
FORMS = (
    JSON,
    PROTOBUF,
    f"{JSON};as=Table;v=v1;g=meta.k8s.io",
    f"{JSON};as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
)
ACCEPTS = (
    YAML, PROTOBUF, "*/*", "", "text/html", "application/cbor",
    f"{JSON};as=Table;v=v1;g=meta.k8s.io", f"{JSON};as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    f"{JSON};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,{JSON}",
    f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io", f"{PROTOBUF},{JSON};q=0.5",
    f"{JSON};as=Table;v=v1beta1;g=meta.k8s.io", f"{JSON};q=x", ";;,,", f"{JSON};stream=watch",
)  # fmt: skip
WORDS = (
    *("api", "apis", "v1", "v1beta1", "v1beta2", "v1alpha3", "resource.k8s.io", "apps", "batch"),
    *("namespaces", "default", NAMESPACE, "pods", "deviceclasses", "resourceclaims", "events"),
    *("status", "binding", "finalize", "a", "gpu", "", "..", ".", "%2e%2e", "a%20b", "%", "%zz"),
    *("%00", "%c3%a9", "%ff", "x" * 300, "openapi", "v2", "v3", "healthz", "livez", "readyz"),
    *("metrics", "version", "watch", "proxy", "log", "logs", "ping", "configz", ";", "a:b", "*"),
)
SELECTORS = (
    "a=b", "a==b,c!=d", "a in (b,c)", "a notin (b)", "!a", "a", "a>1", "a<x", "a in (b", "a=b,,c",
    "=", "!", ",", "a in ()", "a=b=c", "x/y/z=1", "app.kubernetes.io/name in (x)", "é=ü", "a = b",
    "metadata.name=a", "metadata.name!=a,metadata.namespace=fuzz", "spec.nodeName=n",
    "spec.driver=d,spec.pool.name=p", "status.phase=Running", "spec.nodename=x", "\\,=\\\\",
    "metadata.name=a\\,b", "involvedObject.name=x", "a" * 5000, "(" * 300, "\x00", "type=Normal",
)  # fmt: skip
NUMBERS = ("0", "1", "2", "-1", "x", "", "1.5", "99999999999999999999", "1e3", "٣", " 1", "500")
QUERY: tuple[tuple[str, Sequence[str]], ...] = (
    ("labelSelector", SELECTORS),
    ("fieldSelector", SELECTORS),
    ("limit", NUMBERS),
    ("continue", ("", "x", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIvIn0", "=")),
    ("resourceVersion", (*NUMBERS, "5", "999999999")),
    ("resourceVersionMatch", ("Exact", "NotOlderThan", "x", "")),
    ("sendInitialEvents", ("true", "false", "x")),
    ("allowWatchBookmarks", ("true", "x")),
    ("timeoutSeconds", ("1", "0", "-1", "x")),
    ("dryRun", ("All", "x", "", "All,All")),
    ("fieldManager", ("me", "", "x" * 200, "\x07", "é")),
    ("fieldValidation", ("Strict", "Warn", "Ignore", "x", "")),
    ("force", ("true", "false", "x")),
    ("propagationPolicy", ("Foreground", "Background", "Orphan", "x", "")),
    ("gracePeriodSeconds", NUMBERS),
    ("orphanDependents", ("true", "x")),
    ("includeObject", ("None", "Metadata", "Object", "x")),
    ("pretty", ("true", "x")),
    ("timeout", ("1s", "x", "0")),
    ("verbose", ("1",)),
    ("exclude", ("x",)),
    ("as", ("x",)),
    ("\xff", ("\xfe",)),
)
HEADERS = (
    ("Impersonate-User", ("bob", "", "system:node:n", "é", "system:serviceaccount:fuzz:a", "a\tb")),
    ("Impersonate-Group", ("system:masters", "", "x", "system:nodes")),
    ("Impersonate-Uid", ("1", "")),
    ("Impersonate-Extra-x%2fy", ("1", "%")),
    ("Authorization", ("Bearer x", "Bearer", "Bearer a.b.c", "Basic eDp5", "", "Bearer \xff")),
    ("Accept-Encoding", ("gzip", "br", "identity;q=0")),
    ("Content-Encoding", ("gzip", "br", "")),
    ("If-None-Match", ("*", '"x"', "")),
    ("User-Agent", ("kubectl/v1.36", "", "x" * 3000, "é/ü")),
    ("Expect", ("100-continue", "x")),
    ("X-Forwarded-For", ("1.2.3.4",)),
    ("Warning", ("299",)),
)


class Sent(NamedTuple):
    """A request as bytes, and the facts that a check needs."""

    data: bytes
    method: str = ""  # "" where it is not sure to be a whole request
    path: str = ""
    query: tuple[tuple[str, str], ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether an answer is due."""
        return bool(self.method)

    @property
    def is_watch(self) -> bool:
        """Whether the answer may go on."""
        return any(name == "watch" for name, _ in self.query)


def make_request(random: Random) -> Sent:
    """Return a random request."""
    makers: tuple[tuple[Callable[[Random], Sent], int], ...] = (
        (_object_request, 10),
        (_patch_request, 8),
        (_reading_request, 5),
        (_deleting_request, 3),
        (_review_request, 2),
        (_word_request, 2),
        (_raw_request, 1),
    )
    (maker,) = random.choices([m for m, _ in makers], [weight for _, weight in makers])
    return maker(random)


# --- objects --------------------------------------------------------------------------------------


@cache
def trees_of(kind: Kind) -> tuple[str, ...]:
    """Return objects of a kind, as JSON: examples, and the least one."""
    found = [text for base in bases() for text in base.trees if _is_of(json.loads(text), kind)]
    return tuple(found)


def _is_of(tree: Any, kind: Kind) -> bool:
    if not isinstance(tree, dict):
        return False
    return (tree.get("apiVersion"), tree.get("kind")) == (kind.api_version, kind.name)


def _tree(random: Random, kind: Kind) -> Any:
    """Return an object of a kind with a name and a namespace that are there; or a damaged one."""
    text = random.choice(trees_of(kind))
    tree = json.loads(text)
    metadata = tree.setdefault("metadata", {})
    if isinstance(metadata, dict):
        metadata["name"] = random.choice(NAMES)
        if kind.namespaced:
            metadata["namespace"] = NAMESPACE
        else:
            metadata.pop("namespace", None)
        if random.random() < 0.3:
            metadata.update(random.choice(_METADATA))
    return damaged_tree(random, json.dumps(tree)) if random.random() < 0.4 else tree


_METADATA: tuple[dict[str, Any], ...] = (
    {"generateName": "g-", "name": ""},
    {"labels": {"a": "b"}, "annotations": {"x": "y" * 1000}},
    {"finalizers": ["x/y"]},
    {"finalizers": ["foregroundDeletion"]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}]},
    {"resourceVersion": "1"},
    {"uid": "x"},
    {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    {"managedFields": [{"manager": "x", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]},
    {"managedFields": [{"manager": "x", "operation": "Update", "fieldsV1": {"k:{": 1}}]},
    {"creationTimestamp": "yesterday"},
    {"name": "A B"},
    {"namespace": "other"},
)


def _body(random: Random, tree: Any, kind: Kind) -> tuple[bytes, str]:
    """Return the bytes of an object, which may be damaged, and their content type."""
    media = random.choice((JSON, JSON, JSON, YAML, PROTOBUF))
    data = _encoded(tree, media, kind)
    if random.random() < 0.15:
        data = damaged_bytes(random, data)
    if random.random() < 0.05:
        media = random.choice((JSON, YAML, PROTOBUF, "text/plain", "", "x/y;charset=utf-8", MERGE))
    return data, media


def _encoded(tree: Any, media: str, kind: Kind) -> bytes:
    if media == YAML:
        return yaml.safe_dump(tree, sort_keys=False).encode(errors="replace")
    if media == PROTOBUF:
        try:
            return protobuf.encode(tree)
        except Exception:  # a damaged tree that has no form in protobuf
            return protobuf.encode(json.loads(trees_of(kind)[0]))
    return json.dumps(tree).encode()


def _object_request(random: Random) -> Sent:
    kind = random.choice(SERVED)
    method = random.choice(("POST", "POST", "PUT"))
    tree = _tree(random, kind)
    data, media = _body(random, tree, kind)
    path = _path(random, kind, is_named=method == "PUT" or random.random() < 0.05)
    return request(random, method, path, data, media)


def _path(random: Random, kind: Kind, *, is_named: bool) -> str:
    start = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    within = f"/namespaces/{NAMESPACE}" if kind.namespaced else ""
    if random.random() < 0.05:
        within = random.choice(("", "/namespaces/other", "/namespaces/default"))
    path = f"{start}{within}/{kind.plural}"
    if not is_named:
        return path
    part = random.choice(PARTS) if random.random() < 0.15 else ""
    if kind.has_status and random.random() < 0.25:
        part = "status"
    return f"{path}/{random.choice(NAMES)}" + (f"/{part}" if part else "")


# --- patches --------------------------------------------------------------------------------------


def _patch_request(random: Random) -> Sent:
    kind = random.choice(SERVED)
    media = random.choice((MERGE, STRATEGIC, JSON_PATCH, APPLY, APPLY))
    tree = _tree(random, kind)
    body: Any = tree
    if media == JSON_PATCH:
        body = json_patch(random, tree)
    elif media == STRATEGIC:
        body = with_directives(random, tree)
    elif media == MERGE and isinstance(tree, dict) and tree:
        body = {key: tree[key] for key in random.sample(list(tree), random.randint(0, len(tree)))}
    data = json.dumps(body).encode()
    if random.random() < 0.1:
        data = damaged_bytes(random, data)
    if random.random() < 0.05:
        media = random.choice((JSON, CBOR_APPLY, "", "x", f"{MERGE}; charset=utf-8"))
    return request(random, "PATCH", _path(random, kind, is_named=True), data, media)


def json_patch(random: Random, tree: Any) -> Any:
    """Return a random JSON patch of a tree, now and then damaged."""
    body = [_operation(random, tree) for _ in range(random.randint(0, 4))]
    return damaged_tree(random, json.dumps(body)) if random.random() < 0.1 else body


def _operation(random: Random, tree: Any) -> Any:
    operation = {"op": random.choice(("add", "remove", "replace", "move", "copy", "test", "x"))}
    operation["path"] = pointer(random, tree)
    if random.random() < 0.4:
        operation["from"] = pointer(random, tree)
    if random.random() < 0.8:
        operation["value"] = random.choice(ODD_VALUES)
    return operation


def pointer(random: Random, tree: Any) -> str:
    """Return a random JSON pointer into a tree, or out of it."""
    words: list[str] = []
    while isinstance(tree, dict | list) and tree and random.random() < 0.85:
        key = random.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
        words.append(str(key).replace("~", "~0").replace("/", "~1"))
        tree = tree[key]
    odd = ("-", "x", "", "~2", "-1", "99999999999", "01", "~", "é")
    if random.random() < 0.2:
        words.append(random.choice(odd))
    return "".join(f"/{word}" for word in words)


def with_directives(random: Random, tree: Any) -> Any:
    """Put directives of strategic merge patches into a tree."""
    if isinstance(tree, list):
        items = [with_directives(random, item) for item in tree]
        if random.random() < 0.1:
            items.append({"$patch": random.choice(("replace", "delete", "merge", "x", 1, None))})
        return items
    if not isinstance(tree, dict):
        return tree
    found = {key: with_directives(random, value) for key, value in tree.items()}
    if random.random() < 0.1:
        found["$patch"] = random.choice(("replace", "delete", "merge", "x", 1, None, {}))
    for name in list(found):
        if random.random() < 0.05:
            word = random.choice(("$setElementOrder", "$deleteFromPrimitiveList", "$retainKeys"))
            value = random.choice((found[name], ["x"], [{"name": "a"}], "x", None, []))
            found[word if word == "$retainKeys" else f"{word}/{name}"] = value
    return found


# --- others ---------------------------------------------------------------------------------------


def _reading_request(random: Random) -> Sent:
    kind = random.choice(SERVED)
    path = _path(random, kind, is_named=random.random() < 0.3)
    query = some_query(random)
    if random.random() < 0.25:
        query = (("watch", random.choice(("true", "1", "x"))), *query)
    return request(random, random.choice(("GET", "GET", "GET", "HEAD")), path, query=query)


def _deleting_request(random: Random) -> Sent:
    kind = random.choice([kind for kind in SERVED if kind.plural != "namespaces"])
    path = _path(random, kind, is_named=random.random() < 0.8)
    options: Any = {"kind": "DeleteOptions", "apiVersion": random.choice(("v1", "meta.k8s.io/v1"))}
    options |= random.choice(
        (
            {},
            {"propagationPolicy": random.choice(("Foreground", "Orphan", "x"))},
            {"gracePeriodSeconds": random.choice((0, 1, -1, "x", 2**63))},
            {"preconditions": {"uid": "x"}},
            {"preconditions": {"resourceVersion": "1"}},
            {"dryRun": ["All"]},
            {"dryRun": random.choice(("All", ["x"], [], [1]))},
            {"orphanDependents": True, "propagationPolicy": "Orphan"},
            {"ignoreStoreReadErrorWithClusterBreakingPotential": True},
        )
    )
    data = json.dumps(options).encode() if random.random() < 0.6 else b""
    if data and random.random() < 0.1:
        data = damaged_bytes(random, data)
    return request(random, "DELETE", path, data, random.choice((JSON, JSON, YAML, PROTOBUF)))


def _review_request(random: Random) -> Sent:
    review = random.choice(REVIEWS)
    api_version = f"{review.group}/{review.version}"
    attributes = {"verb": random.choice(("get", "*", "")), "resource": "pods", "namespace": "fuzz"}
    spec: dict[str, Any] = {
        "resourceAttributes": attributes,
        "user": random.choice(("bob", "", 1)),
        "groups": ["x"],
        "token": random.choice(("x", "a.b.c", "")),
        "namespace": random.choice(("fuzz", "")),
        "nonResourceAttributes": {"path": "/x", "verb": "get"},
        "extra": {"a": ["b"]},
    }
    kept = {key: value for key, value in spec.items() if random.random() < 0.5}
    tree = {"apiVersion": api_version, "kind": review.kind, "metadata": {}, "spec": kept}
    text = json.dumps(tree)
    if random.random() < 0.4:
        text = json.dumps(damaged_tree(random, text))
    within = f"/namespaces/{NAMESPACE}" if review.namespaced else ""
    path = f"/apis/{api_version}{within}/{review.plural}"
    return request(random, random.choice(("POST", "POST", "POST", "GET")), path, text.encode())


def _word_request(random: Random) -> Sent:
    words = [random.choice(WORDS) for _ in range(random.randint(0, 7))]
    data = random.choice((b"", b"{}", b"[]", b"null", b"\x00", b"k8s\x00", b"a: b"))
    return request(random, random.choice(METHODS), "/" + "/".join(words), data)


def some_query(random: Random) -> tuple[tuple[str, str], ...]:
    """Return some options with some values."""
    chosen = random.sample(QUERY, random.choice((0, 1, 1, 2, 3)))
    return tuple((name, random.choice(values)) for name, values in chosen)


def request(
    random: Random,
    method: str,
    path: str,
    data: bytes = b"",
    media: str = JSON,
    query: tuple[tuple[str, str], ...] | None = None,
) -> Sent:
    """Return a whole request, with random queries and headers."""
    if query is None:
        query = some_query(random) if random.random() < 0.4 else ()
    joined = "&".join(f"{quote(k.encode('latin-1', 'replace'))}={quote(v)}" for k, v in query)
    lines = [f"{method} {path}{'?' + joined if joined else ''} HTTP/1.1", "Host: localhost"]
    lines.append(f"Accept: {JSON if random.random() < 0.7 else random.choice(ACCEPTS)}")
    if random.random() < 0.15:
        name, values = random.choice(HEADERS)
        value = random.choice(values)
        if (name, value) == ("Content-Encoding", "gzip") and random.random() < 0.7:
            data = gzip.compress(data, mtime=0)
        lines.append(f"{name}: {value}")
    if data:
        lines.append(f"Content-Type: {media}")
    if data and random.random() < 0.05:
        lines.append("Transfer-Encoding: chunked")
        data = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
    else:
        lines.append(f"Content-Length: {len(data)}")
    head = "\r\n".join((*lines, "", "")).encode("latin-1", "replace")
    return Sent(head + data, method, path, query)


# --- hardly HTTP ----------------------------------------------------------------------------------

_POST = b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\n"
_GET = b"GET /version HTTP/1.1\r\nHost: x\r\n"

ODD_REQUESTS: tuple[bytes, ...] = (
    b"\r\n\r\n",
    b"\x00" * 100,
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET  /  HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\nHost: x\n\n",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: \xff\r\n\r\n",
    b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://example.com/version HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    _GET + b" folded: y\r\n\r\n",
    _GET + b"a: b\r\n" * 20_000 + b"\r\n",
    _GET + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
    _GET + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    _GET + b"Connection: close\r\n\r\n" + _GET + b"\r\n",
    (_GET + b"\r\n") * 50,
    _POST + b"Content-Length: -1\r\n\r\n",
    _POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
    _POST + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    _POST + b"Content-Length: 5000000\r\n\r\n{}",
    _POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    _POST + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\nx",
    _POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
)


def _raw_request(random: Random) -> Sent:
    if random.random() < 0.4:
        return Sent(random.choice(ODD_REQUESTS))
    kind = random.choice(KINDS)
    whole = request(random, "POST", "/api/v1/namespaces/fuzz/pods", trees_of(kind)[0].encode())
    return Sent(damaged_bytes(random, whole.data))
