"""What campaigns write to a server: objects of four kinds, each owned by one writer.

An object says which writes made it: the number of the last write of all but the status is in an
annotation, beside a text that only this write has; the number of the last write of the status is
in the status. So an object that was read is compared completely with the one sent.

# known: as the last answer said
# under way: sent, and not answered; after the server was killed it has happened or it has not
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from soak._http import Connection, Reply

WRITERS = 16
NAMES = 5  # of each kind and writer
NAMESPACES = 4
SHARDS = 8
NODES = 4
SIZES = (0, 20, 20, 300, 300, 3000)

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"

RESOURCE = "resource.k8s.io/v1"


class Kind(NamedTuple):
    """A kind of object that is written."""

    name: str
    api_version: str
    plural: str
    namespaced: bool = True
    has_status: bool = False
    has_node: bool = False

    def collection(self, namespace: str = "") -> str:
        """Return the path of all objects, or of those in a namespace."""
        start = (
            f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        )
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{start}{within}/{self.plural}"


CLAIMS = Kind("ResourceClaim", RESOURCE, "resourceclaims", has_status=True)
SLICES = Kind("ResourceSlice", RESOURCE, "resourceslices", namespaced=False, has_node=True)
PODS = Kind("Pod", "v1", "pods", has_status=True, has_node=True)
REVISIONS = Kind("ControllerRevision", "apps/v1", "controllerrevisions")
KINDS = (CLAIMS, SLICES, PODS, REVISIONS)


class Key(NamedTuple):
    """Which object."""

    kind: Kind
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """The path of the object."""
        return f"{self.kind.collection(self.namespace)}/{self.name}"

    @property
    def node(self) -> str:
        """The node that it is on, if its kind is on nodes."""
        return f"node-{sum(self.name.encode()) % NODES}" if self.kind.has_node else ""


class Made(NamedTuple):
    """The writes that produced an object's state."""

    main: int
    status: int
    shard: int


class Known(NamedTuple):
    """The known state of an object."""

    made: Made | None = None  # None: it is not there
    revision: int = 0


class Write(NamedTuple):
    """A write that happened; the revision of a deletion is unknown."""

    revision: int | None
    key: Key
    before: Made | None
    after: Made | None


class Step(NamedTuple):
    """A write to be sent."""

    method: str
    path: str
    body: Any
    media: str
    key: Key
    after: Made | None


class Writer:
    """Writes its own objects, one write after the other, and remembers the answers."""

    def __init__(self, number: int, random: Random) -> None:
        self.log: list[Write] = []
        self.answers = 0
        self.under_way: Step | None = None
        self.known: dict[Key, Known] = {
            Key(kind, f"team-{number % NAMESPACES}" if kind.namespaced else "", f"w{number}-{n}"): (
                Known()
            )
            for kind in KINDS
            for n in range(NAMES)
        }
        self._random = random
        self._count = 0
        self._shards = dict.fromkeys(self.known, 0)
        self._specs: dict[Key, Any] = {}  # of pods: values that the server added must stay

    async def write(self, connection: Connection, step: Step | None = None) -> None:
        """Send a write and take its answer; LostError leaves it under way."""
        self.under_way = step = step or self.step()
        reply = await connection.ask(step.method, step.path, step.body, media=step.media)
        self._answered(step, reply)

    async def settle(self, connection: Connection) -> None:
        """Find out whether the write that is under way has happened."""
        assert self.under_way is not None
        reply = await connection.ask("GET", self.under_way.key.path)
        assert reply.status in (200, 404), f"{self.under_way.key.path}: {reply}"
        self.take(self.under_way.key, reply.json if reply.status == 200 else None)

    def take(self, key: Key, found: Any | None) -> None:
        """Compare an object with its possible states; then its state is known."""
        known, step = self.known[key], self.under_way
        made = None if found is None else made_of(key, found)
        revision = 0 if found is None else int(found["metadata"]["resourceVersion"])
        self._note_spec(key, found)
        if step is not None and step.key == key:
            self.under_way = None
            if made == step.after and (made is None or revision > known.revision):
                self._happened(step, revision)
                return
        assert made == known.made, f"{key.path}: found {made}, answered was {known}, sent {step}"
        assert made is None or revision == known.revision, f"{key.path}: at {revision}: {known}"

    def last(self) -> Iterator[Step]:
        """Yield a write of each object that leaves it there, where it last was selected."""
        for key, known in self.known.items():
            yield self._put(key, known, self._shards[key])

    # --- choosing -----------------------------------------------------------------------------

    def step(self) -> Step:
        """Return the next write."""
        random = self._random
        key = random.choice(list(self.known))
        known = self.known[key]
        shard = self._shards[key] if random.random() < 0.8 else random.randrange(SHARDS)
        if known.made is None:
            return self._put(key, known, random.randrange(SHARDS))
        chance = random.random()
        if chance < 0.2:
            path = f"{key.path}?gracePeriodSeconds=0"
            return Step("DELETE", path, None, "", key, None)
        if chance < 0.4 and key.kind.has_status:
            return self._status(key, known.made)
        if chance < 0.7:
            return self._put(key, known, shard)
        return self._patch(key, known.made, shard)

    def _put(self, key: Key, known: Known, shard: int) -> Step:
        number = self._next()
        body = object_of(key, number, shard)
        if known.made is None:
            path = key.kind.collection(key.namespace)
            return Step("POST", path, body, "application/json", key, Made(number, 0, shard))
        body["metadata"]["resourceVersion"] = str(known.revision)
        if key in self._specs:
            body["spec"] = self._specs[key]
        after = Made(number, known.made.status, shard)
        return Step("PUT", key.path, body, "application/json", key, after)

    def _patch(self, key: Key, before: Made, shard: int) -> Step:
        number = self._next()
        metadata = metadata_of(key, number, shard)
        after = Made(number, before.status, shard)
        media = self._random.choice((MERGE, STRATEGIC, JSON_PATCH, APPLY))
        if media == JSON_PATCH:
            body: Any = [
                {"op": "test", "path": "/metadata/annotations/n", "value": str(before.main)},
                {"op": "add", "path": "/metadata/annotations", "value": metadata["annotations"]},
                {"op": "replace", "path": "/metadata/labels/shard", "value": str(shard)},
            ]
            return Step("PATCH", key.path, body, media, key, after)
        body = {"metadata": {k: metadata[k] for k in ("annotations", "labels")}}
        if media != APPLY:
            return Step("PATCH", key.path, body, media, key, after)
        body |= {"apiVersion": key.kind.api_version, "kind": key.kind.name}
        path = f"{key.path}?fieldManager=campaign&force=true"
        return Step("PATCH", path, body, media, key, after)

    def _status(self, key: Key, before: Made) -> Step:
        number = self._next()
        body = {"status": status_of(key.kind, number)}
        after = Made(before.main, number, before.shard)
        return Step("PATCH", f"{key.path}/status", body, MERGE, key, after)

    def _next(self) -> int:
        self._count += 1
        return self._count

    # --- answers ------------------------------------------------------------------------------

    def _answered(self, step: Step, reply: Reply) -> None:
        wanted = 201 if step.method == "POST" else 200
        assert reply.status == wanted, f"{step}: {reply.status} {reply.body[:500]!r}"
        self.under_way = None
        self.answers += 1
        revision = 0
        if step.after is not None:
            tree = reply.json
            revision = int(tree["metadata"]["resourceVersion"])
            self._note_spec(step.key, tree)
            assert made_of(step.key, tree) == step.after, f"{step}: answered {reply.body!r}"
            assert revision > self.known[step.key].revision, f"{step}: revision {revision}"
        self._happened(step, revision)

    def _note_spec(self, key: Key, tree: Any | None) -> None:
        if key.kind is PODS and tree is not None:
            self._specs[key] = tree["spec"]

    def _happened(self, step: Step, revision: int) -> None:
        before = self.known[step.key].made
        self.log.append(Write(revision or None, step.key, before, step.after))
        self.known[step.key] = Known(step.after, revision)
        if step.after is not None:
            self._shards[step.key] = step.after.shard


# --- objects --------------------------------------------------------------------------------------


def text_of(key: Key, number: int) -> str:
    """Return the text that only one write of an object has."""
    seed = hashlib.sha256(f"{key.path} {number}".encode()).hexdigest()
    size = SIZES[int(seed[:4], 16) % len(SIZES)]
    return (seed * (size // len(seed) + 1))[:size]


def metadata_of(key: Key, number: int, shard: int) -> dict[str, Any]:
    """Return the metadata of an object as a write sends it."""
    metadata: dict[str, Any] = {"name": key.name, "labels": {"shard": str(shard)}}
    metadata["annotations"] = {"n": str(number), "text": text_of(key, number)}
    return metadata | ({"namespace": key.namespace} if key.namespace else {})


def object_of(key: Key, number: int, shard: int) -> dict[str, Any]:
    """Return an object as a write sends it."""
    head = {"apiVersion": key.kind.api_version, "kind": key.kind.name}
    return {**head, "metadata": metadata_of(key, number, shard), **_content(key)}


def _content(key: Key) -> dict[str, Any]:
    if key.kind is CLAIMS:
        requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
        return {"spec": {"devices": {"requests": requests}}}
    if key.kind is SLICES:
        pool = {"name": key.name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{n}", "attributes": {"index": {"int": n}}} for n in range(4)]
        driver = "gpu.example.com"
        spec = {"driver": driver, "nodeName": key.node, "pool": pool, "devices": devices}
        return {"spec": spec}
    if key.kind is PODS:
        return {"spec": {"nodeName": key.node, "containers": [{"name": "c", "image": "i"}]}}
    return {"revision": 1, "data": {"for": key.name}}


def status_of(kind: Kind, number: int) -> dict[str, Any]:
    """Return a status as a write sends it."""
    if kind is PODS:
        return {"message": str(number)}
    device = {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "gpu-0"}
    consumer = {"resource": "pods", "name": "p", "uid": str(number)}
    return {"allocation": {"devices": {"results": [device]}}, "reservedFor": [consumer]}


def made_of(key: Key, tree: Any) -> Made:
    """Return which writes made an object, or raise that it is not as they made it."""
    metadata = tree["metadata"]
    number, shard = int(metadata["annotations"]["n"]), int(metadata["labels"]["shard"])
    wanted = object_of(key, number, shard)
    for field in ("name", "labels", "annotations"):
        assert metadata[field] == wanted["metadata"][field], f"torn: {key.path}: {tree}"
    assert metadata.get("namespace", "") == key.namespace, f"torn: {key.path}: {tree}"
    assert _holds(tree, _content(key)), f"torn: {key.path}: {tree}"
    return Made(number, _status_number(key.kind, tree.get("status") or {}), shard)


def _status_number(kind: Kind, status: Any) -> int:
    if kind is PODS:
        return int(status.get("message", 0))
    if kind is CLAIMS and status:
        number = int(status["reservedFor"][0]["uid"])
        assert _holds(status, status_of(kind, number)), f"torn: {status}"
        return number
    return 0


def _holds(found: Any, wanted: Any) -> bool:
    """Return whether a tree has all expected values; defaults may have been added."""
    if isinstance(wanted, dict):
        return all(key in found and _holds(found[key], value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_holds, found, wanted))
    return bool(found == wanted)


async def prepare(connection: Connection) -> None:
    """Create the namespaces that writers write to."""
    for number in range(NAMESPACES):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}"}}
        reply = await connection.ask("POST", "/api/v1/namespaces", body)
        assert reply.status == 201, reply
