"""A driver on a stage: a real API server in the process, and a kubelet that speaks by sockets."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from moorage.api.core import Node
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)
from moorage.apiserver.auth.authorizer import AlwaysAllow
from moorage.apiserver.namespace_controller import create_system_namespaces
from moorage.apiserver.server import make_application, make_server_context
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import in_process_client
from moorage.client.writes import Create, Delete, Target, Update
from moorage.driver import Claim, ClaimName, ContainerEdits, Device, Driver, Inventory, Prepared
from moorage.driver.settings import Settings
from moorage.store.sqlite import open_sqlite
from moorage.wire import dra_v1_pb2 as dra
from moorage.wire import registration_pb2 as registration
from moorage.wire.services import DRA_V1, GET_INFO, NOTIFY, PREPARE, UNPREPARE, call, open_socket

NAME = "blinker.example.com"
NODE = "node-1"
WAIT_S = 20.0


class Blinkers(Driver):
    """A driver that notes what it is asked."""

    name = NAME

    def __init__(self, names: Iterable[str] = ("red", "green", "blue")) -> None:
        self.inventory: list[Any] = [Device(name=name) for name in names]
        self.lit: dict[str, tuple[str, ...]] = {}
        self.calls: list[str] = []
        self.errors: list[Exception] = []

    def devices(self) -> Inventory:
        return list(self.inventory)

    def prepare(self, claim: Claim) -> Iterable[Prepared]:
        self.calls.append(f"prepare {claim.name}")
        self.lit[claim.uid] = tuple(device.name for device in claim.devices)
        for device in claim.devices:
            yield Prepared(device, ContainerEdits(env=(f"BLINKER={device.name}",)))

    def unprepare(self, claim: ClaimName) -> None:
        self.calls.append(f"unprepare {claim.name}")
        self.lit.pop(claim.uid, None)

    def report(self, error: Exception) -> None:
        self.errors.append(error)


@contextmanager
def short_folder() -> Iterator[Path]:
    """Give a folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="moor-") as name:
        yield Path(name)


def settings_in(folder: Path, **changes: Any) -> Settings:
    settings = Settings(
        node_name=NODE, kubelet_dir=folder / "kubelet", cdi_dir=folder / "cdi", boot_id="boot-1"
    )
    return replace(settings, **changes)


@asynccontextmanager
async def api_server(folder: Path, gates: Gates | None = None) -> AsyncIterator[ApiClient]:
    """Run a server with one node in it."""
    async with open_sqlite(folder / "store") as store:
        service = make_server_context(store, gates=gates) if gates else make_server_context(store)
        await create_system_namespaces(service)
        application = make_application(service, AlwaysAllow())
        async with in_process_client(application) as client:
            await client.write(Create(Node(metadata=ObjectMeta(name=NODE))))
            yield client


def played(scene: Callable[[Path, ApiClient], Awaitable[None]]) -> Callable[[], None]:
    """Make a test of a scene that gets a folder and a client of a server."""

    def test() -> None:
        async def play() -> None:
            async with asyncio.timeout(WAIT_S):
                with short_folder() as folder:
                    async with api_server(folder) as client:
                        await scene(folder, client)

        asyncio.run(play())

    test.__name__ = scene.__name__
    return test


async def slices(client: ApiClient) -> list[ResourceSlice]:
    return list((await client.list(ResourceSlice)).values)


async def published(client: ApiClient) -> list[str]:
    return sorted(d.name for each in await slices(client) for d in each.spec.devices or ())


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what a server will show."""
    while not await condition():
        await asyncio.sleep(0.005)


# --- claims ---------------------------------------------------------------------------------------


async def make_claim(
    client: ApiClient,
    name: str,
    *devices: str,
    driver: str = NAME,
    configs: Iterable[DeviceAllocationConfiguration] = (),
    annotations: dict[str, str] | None = None,
    changes: dict[str, Any] | None = None,
    is_allocated: bool = True,
) -> ResourceClaim:
    """Make a claim that has devices: `device`, or `request=device`."""
    asks = [each.partition("=")[::2] if "=" in each else ("all", each) for each in devices]
    requests = tuple(_request(each) for each in dict.fromkeys(r for r, _ in asks or [("a", "")]))
    value: ResourceClaim = await client.write(
        Create(
            ResourceClaim(
                metadata=ObjectMeta(name=name, namespace="default", annotations=annotations or {}),
                spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)),
            )
        )
    )
    if not is_allocated:
        return value
    results = tuple(
        DeviceRequestAllocationResult(
            request=request, driver=driver, pool=NODE, device=device, **(changes or {})
        )
        for request, device in asks
    )
    allocation = AllocationResult(
        devices=DeviceAllocationResult(results=results, config=tuple(configs))
    )
    status = replace(value.status, allocation=allocation)
    found: ResourceClaim = await client.write(Update(replace(value, status=status), "status"))
    return found


def _request(name: str) -> DeviceRequest:
    base, _, sub = name.partition("/")
    if sub:
        wish = DeviceSubRequest(name=sub, device_class_name="blinkers")
        return DeviceRequest(name=base, first_available=(wish,))
    return DeviceRequest(name=base, exactly=ExactDeviceRequest(device_class_name="blinkers"))


async def drop_claim(client: ApiClient, claim: ResourceClaim) -> None:
    """Delete a claim as if nobody had held it."""
    await client.write(
        Update(replace(claim, status=replace(claim.status, allocation=None)), "status")
    )
    fresh = await client.get(ResourceClaim, "default", claim.metadata.name)
    if fresh is not None and fresh.metadata.finalizers:
        await client.write(Update(replace(fresh, metadata=replace(fresh.metadata, finalizers=()))))
    await client.write(Delete(Target(ResourceClaim, "default", claim.metadata.name)))


def config(
    source: str, parameters: str, *requests: str, driver: str = NAME
) -> DeviceAllocationConfiguration:
    return DeviceAllocationConfiguration(
        source=source,
        requests=requests,
        opaque=OpaqueDeviceConfiguration(driver=driver, parameters=Raw(parameters.encode())),
    )


# --- the node -------------------------------------------------------------------------------------


class Kubelet:
    """Asks a driver as a kubelet does."""

    def __init__(self, socket: Path, version: str = DRA_V1) -> None:
        self._socket = socket
        self._version = version

    async def prepare(self, *claims: Any) -> dict[str, Any]:
        """Return for each claim its devices, or the text of its error."""
        request = dra.NodePrepareResourcesRequest(claims=[_wire(each) for each in claims])
        async with open_socket(self._socket) as channel:
            answer = await call(channel, PREPARE.of(self._version))(request, timeout=WAIT_S)
        return {uid: each.error or list(each.devices) for uid, each in answer.claims.items()}

    async def unprepare(self, *claims: Any) -> dict[str, str]:
        request = dra.NodeUnprepareResourcesRequest(claims=[_wire(each) for each in claims])
        async with open_socket(self._socket) as channel:
            answer = await call(channel, UNPREPARE.of(self._version))(request, timeout=WAIT_S)
        return {uid: each.error for uid, each in answer.claims.items()}


async def register(socket: Path, error: str = "") -> registration.PluginInfo:
    """Ask a driver who it is, and tell it what becomes of it."""
    async with open_socket(socket) as channel:
        info: registration.PluginInfo = await call(channel, GET_INFO)(
            registration.InfoRequest(), timeout=WAIT_S
        )
        status = registration.RegistrationStatus(plugin_registered=not error, error=error)
        await call(channel, NOTIFY)(status, timeout=WAIT_S)
    return info


def _wire(claim: Any) -> dra.Claim:
    if isinstance(claim, ClaimName):
        return dra.Claim(uid=claim.uid, namespace=claim.namespace, name=claim.name)
    metadata = claim.metadata
    return dra.Claim(uid=metadata.uid, namespace=metadata.namespace, name=metadata.name)
