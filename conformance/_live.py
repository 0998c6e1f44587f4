"""A cluster of ours in this process as recordings had it, and requests to it.

Time is simulated: what takes twenty seconds takes as long as the work in it.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import random
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from conformance.runner import UnreadableError
from moorage.api.catalogue import SERVED
from moorage.api.core import ServiceAccount
from moorage.api.errors import ApiError
from moorage.api.gates import Gates
from moorage.api.kinds import Kind
from moorage.client.contract import Request
from moorage.cluster.embedded import EmbeddedCluster, embedded
from moorage.cluster.programs import ProgramContext
from moorage.kit.clock import LoopClock
from moorage.store.memory import open_memory

Tree = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
PATCH_TYPES = {
    "merge": MERGE,
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}

NODES = ("node-a", "node-b")
ROOM = {"cpu": "16", "memory": "64Gi", "pods": "110"}
FEATURES = ["DRANodeAllocatableResources", "DRAOptionalNodeOperations"]
LOOK_EVERY_S = 0.25
ACCOUNT_S_MAX = 30.0


class RefusedError(Exception):
    """The server refused a request; `status` is its Status."""

    def __init__(self, status: Tree) -> None:
        super().__init__(status.get("message", ""))
        self.status = {key: value for key, value in status.items() if key != "metadata"}


class Live:
    """A cluster that runs, as who plays a recording sees it."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.objects = cluster.controlling.informers.objects

    async def ask(
        self,
        method: str,
        path: str,
        body: Tree | None = None,
        *,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> Tree:
        """Return the answer to a request of the administrator, or raise RefusedError."""
        transport = self.cluster.transport_of(headers=headers)
        data = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, urlencode(query), data, content_type)
        answer = await transport.send(request)
        found: Tree = json.loads(answer.body)
        if answer.status >= 400:
            raise RefusedError(found)
        return found

    async def make_nodes(self) -> None:
        """Make the nodes that recordings begin with."""
        for name in NODES:
            metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
            await self.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
            await self.furnish_node(name)

    async def furnish_node(self, name: str) -> None:
        """Make a node like those of recordings: ready, and with free capacity."""
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
        status = {
            "capacity": ROOM,
            "allocatable": ROOM,
            "declaredFeatures": FEATURES,
            "conditions": [ready],
        }
        path = path_of("v1", "Node", "", name)
        await self.ask("PATCH", path, {"spec": {"taints": None}}, content_type=MERGE)
        await self.ask("PATCH", f"{path}/status", {"status": status}, content_type=MERGE)

    async def make_namespace(self, name: str) -> None:
        """Make a namespace, unless it is there; return when pods can be made in it."""
        if all(each["metadata"]["name"] != name for each in await self.all("v1", "Namespace")):
            await self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        async with asyncio.timeout(ACCOUNT_S_MAX):
            while self.objects.get(ServiceAccount, name, "default") is None:
                await asyncio.sleep(LOOK_EVERY_S)

    async def create(self, tree: Tree, namespace: str = "", **options: Any) -> Tree:
        """Create an object."""
        metadata = tree.get("metadata") or {}
        namespace = metadata.get("namespace") or namespace
        path = path_of(tree["apiVersion"], tree["kind"], namespace)
        return await self.ask("POST", path, tree, **options)

    async def all(self, api_version: str, kind: str, namespace: str = "") -> list[Tree]:
        """Return all objects of a kind, or those in a namespace."""
        found = await self.ask("GET", path_of(api_version, kind, namespace))
        items: list[Tree] = found["items"]
        return items


@asynccontextmanager
async def live_cluster(folder: Path, gates: Gates) -> AsyncIterator[Live]:
    """Run a cluster without nodes; call it in a simulated event loop.

    The folder caches files that are costly to make, and can be reused; objects are not kept.
    """
    clock = LoopClock()
    around = ProgramContext(gates, clock, random.Random(0).random)  # noqa: S311
    async with (
        open_memory(clock=lambda: clock.now().timestamp()) as store,
        embedded(folder, around, store=store) as cluster,
    ):
        yield Live(cluster)


def credentials_folder() -> Path:
    """Return a new folder for what clusters keep, which goes when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="conformance-live-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def path_of(api_version: str, kind: str, namespace: str, name: str = "") -> str:
    """Return where an object is, or all objects of its kind."""
    found = next((k for k in SERVED if (k.api_version, k.name) == (api_version, kind)), None)
    if found is None:
        raise UnreadableError(f"no kind {kind} in {api_version}")
    root = f"/apis/{api_version}" if found.group else f"/api/{api_version}"
    place = f"/namespaces/{quote(namespace)}" if found.namespaced and namespace else ""
    return f"{root}{place}/{found.plural}" + (f"/{quote(name)}" if name else "")


def kind_of(name: str) -> Kind:
    """Return a kind in the version that we work with."""
    found = [kind for kind in SERVED if kind.name == name]
    if not found:
        raise UnreadableError(f"no kind {name}")
    return next((kind for kind in found if kind.api_version == kind.hub_version), found[0])


def impersonation(user: str, extra: Mapping[str, str | Sequence[str]]) -> dict[str, str]:
    """Return the headers by which the administrator acts as somebody else."""
    headers = {"impersonate-user": user}
    for key, value in extra.items():
        name = "".join(c if c.isalnum() or c in "-_." else f"%{ord(c):02x}" for c in key)
        headers[f"impersonate-extra-{name}"] = value if isinstance(value, str) else value[0]
    return headers


def gates_of(wanted: object) -> Gates:
    """Return the gates of a recording: all, or a flag."""
    try:
        return Gates.parse("" if wanted in (None, "all") else str(wanted))
    except ApiError as fault:
        raise UnreadableError(f"gates: {fault}") from fault
