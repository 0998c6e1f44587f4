"""A node for tests: a folder, claims that a fake server has, pods, and what runs the drivers."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceClaim, ResourceSlice
from moorage.client.contract import ObjectList
from moorage.client.errors import ClientError, NotFoundError
from moorage.client.writes import Delete
from moorage.kit.clock import REAL, Clock
from moorage.node.dra.service import Dra, DraSettings

NODE = "worker"
WAIT_S = 20.0


class FakeServer:
    """Claims and slices; a client of it."""

    def __init__(self) -> None:
        self.claims: dict[tuple[str, str], ResourceClaim] = {}
        self.slices: dict[str, ResourceSlice] = {}
        self.errors: list[ClientError] = []  # of the next requests
        self.selectors: list[str] = []
        self.changed = asyncio.Condition()

    def add(self, claim: ResourceClaim) -> ResourceClaim:
        self.claims[claim.metadata.namespace, claim.metadata.name] = claim
        return claim

    async def get(self, struct: type[Any], namespace: str, name: str) -> Any:
        self._fail()
        return self.claims.get((namespace, name))

    async def list(
        self,
        struct: type[Any],
        namespace: str = "",
        *,
        limit: int = 0,
        rest: str = "",
        fields: str = "",
        labels: str = "",
    ) -> ObjectList:
        self.selectors.append(fields)
        async with self.changed:
            self.changed.notify_all()
        self._fail()
        wanted = dict(each.split("=", 1) for each in fields.split(","))
        found = [
            each
            for each in self.slices.values()
            if each.spec.node_name == wanted["spec.nodeName"]
            and wanted.get("spec.driver", each.spec.driver) == each.spec.driver
        ]
        return ObjectList(tuple(found), "1")

    async def write(self, write: Any) -> Any:
        assert isinstance(write, Delete)
        if self.slices.pop(write.target.name, None) is None:
            raise NotFoundError("gone")
        async with self.changed:
            self.changed.notify_all()

    def watch(self, *_: Any, **__: Any) -> Any:
        raise AssertionError

    async def until(self, holds: Callable[[], bool]) -> None:
        async with self.changed:
            await self.changed.wait_for(holds)

    def _fail(self) -> None:
        if self.errors:
            raise self.errors.pop(0)


@contextmanager
def short_folder() -> Iterator[Path]:
    """Give a folder whose name is short enough for sockets in it."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="m"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


class World:
    """A node and its server."""

    def __init__(self, root: Path, clock: Clock = REAL) -> None:
        self.root, self.clock = root, clock
        self.server = FakeServer()
        self.pods: dict[str, Pod] = {}
        self.affected: list[set[str]] = []
        self.gates = Gates.parse()
        self.active: Iterable[str] | None = None
        self.find_active: Callable[[], Iterable[str] | None] = lambda: self.active
        self.settings: dict[str, Any] = {}
        self.dra: Dra

    def claim(self, name: str, *drivers: str, pods: Iterable[str] = ("p",), **more: Any) -> str:
        claim = make_claim(name, *drivers, pods=pods, **more)
        self.server.add(claim)
        return claim.metadata.uid

    def pod(self, name: str, *claims: str, **more: Any) -> Pod:
        pod = make_pod(name, *claims, **more)
        self.pods[pod.metadata.uid] = pod
        return pod

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[Dra]:
        settings = DraSettings(
            root=self.root,
            node=NODE,
            gates=self.gates,
            pods=lambda: list(self.pods.values()),
            active=self.find_active,
            affected=self.affected.append,
            clock=self.clock,
            **self.settings,
        )
        self.dra = dra = Dra(self.server, settings)
        async with dra.serving():
            yield dra


def play(
    scenario: Callable[[World], Awaitable[None]], clock: Callable[[], Clock] | None = None
) -> None:
    """Run a scenario in a world of its own."""

    async def run() -> None:
        with short_folder() as root:
            async with asyncio.timeout(WAIT_S):
                await scenario(World(root, clock() if clock else REAL))

    asyncio.run(run())


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds of which nobody tells us."""
    while not holds():  # the test has a bound
        await asyncio.sleep(0.002)


async def connected(dra: Dra, *drivers: str) -> None:
    """Wait until drivers can be used."""
    await until(lambda: all(dra.drivers.is_usable(driver) for driver in drivers))


def make_claim(
    name: str,
    *drivers: str,
    pods: Iterable[str] = ("p",),
    uid: str = "",
    skips: tuple[str, ...] = (),
    allocated: bool = True,
    owner: str = "",
) -> ResourceClaim:
    """Return a claim with one device of each driver, reserved for pods."""
    results = [
        {"request": "req", "driver": driver, "pool": "pool", "device": f"d{number}"}
        | ({"skipNodeOperations": list(skips)} if skips else {})
        for number, driver in enumerate(drivers)
    ]
    reserved = [{"resource": "pods", "name": pod, "uid": f"pod-{pod}"} for pod in pods]
    owners = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": owner,
            "uid": f"pod-{owner}",
            "controller": True,
        }
    ]
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-{name}",
            **({"ownerReferences": owners} if owner else {}),
        },
        "spec": {},
        "status": {
            "reservedFor": reserved,
            **({"allocation": {"devices": {"results": results}}} if allocated else {}),
        },
    }
    return decode_tree(tree, ResourceClaim).value


def make_pod(
    name: str, *claims: str, requests: dict[str, str] | None = None, status: Any = None
) -> Pod:
    """Return a pod that uses claims, each by its own name, in its container `main`."""
    used = [{"name": claim} for claim in claims]
    for claim in used:
        if requests and claim["name"] in requests:
            claim["request"] = requests[claim["name"]]
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"pod-{name}"},
        "spec": {
            "containers": [{"name": "main", "image": "i", "resources": {"claims": used}}],
            "resourceClaims": [{"name": each, "resourceClaimName": each} for each in claims],
        },
        "status": status or {},
    }
    return decode_tree(tree, Pod).value


def make_slice(name: str, driver: str, node: str = NODE) -> ResourceSlice:
    """Return a slice of a driver on a node."""
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        },
    }
    return decode_tree(tree, ResourceSlice).value
