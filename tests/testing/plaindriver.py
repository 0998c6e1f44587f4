"""A small driver without the SDK, in this process: it does right, unless a subclass does wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.resource.v1 import (
    Device,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.client.informer_factory import InformerFactory
from moorage.client.writes import Create
from moorage.driver.serving import served
from moorage.testing.check.bench import Bench
from moorage.wire import dra_v1_pb2 as dra
from moorage.wire import health_v1_pb2 as health
from moorage.wire import registration_pb2 as registration
from moorage.wire.services import (
    DRA_PLUGIN,
    DRA_V1,
    GET_INFO,
    HEALTH_V1,
    NOTIFY,
    PREPARE,
    UNPREPARE,
    WATCH_HEALTH,
)


class PlainDriver:
    """A driver that can be started, killed and started again, as a program could."""

    name = "plain.example.com"
    type = DRA_PLUGIN
    versions: Sequence[str] = (DRA_V1, HEALTH_V1)
    devices: Sequence[str] = ("a", "b", "c")
    methods_version = DRA_V1
    kind = "plain.example.com/device"
    published_name = ""  # empty: its own
    is_checked = True  # whether claims are looked at before they are prepared

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.folder = bench.folders.plugins / self.name
        self.socket = self.folder / "dra.sock"
        self.registrar = bench.folders.registry / f"{self.name}-reg.sock"
        self.exit_code: int | None = None
        self._stack = AsyncExitStack()

    # --- as a program ---------------------------------------------------------------------------

    async def start(self) -> None:
        self.exit_code = None
        self.folder.mkdir(exist_ok=True)
        self.write_specs()
        informers = InformerFactory(self.bench.client, random=lambda: 0.0)
        informers.informer_for(ResourceSlice).add_event_handler(self._slice_changed)
        await self._stack.enter_async_context(informers.running())
        await self.publish()
        methods = {
            PREPARE.of(self.methods_version): self._prepare,
            UNPREPARE.of(self.methods_version): self._unprepare,
            WATCH_HEALTH: self._health,
        }
        await self._stack.enter_async_context(served(self.socket, methods))
        known = {GET_INFO: self._info, NOTIFY: self._notify}
        await self._stack.enter_async_context(served(self.registrar, known))

    async def kill(self) -> None:
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()
        self.exit_code = 137

    async def stop(self) -> bool:
        await self.kill()
        return True

    async def die(self) -> None:
        """End by itself, as a program with a bug does."""
        asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(self._die()))
        await asyncio.Event().wait()

    async def _die(self) -> None:
        await self.kill()
        self.exit_code = 2

    def last_words(self, lines: int = 8) -> str:
        return "panic: no such claim" if self.exit_code == 2 else ""

    # --- what it publishes ----------------------------------------------------------------------

    async def publish(self) -> None:
        node = self.bench.node.metadata
        owner = OwnerReference(api_version="v1", kind="Node", name=node.name, uid=node.uid)
        spec = ResourceSliceSpec(
            driver=self.published_name or self.name,
            node_name=node.name,
            pool=ResourcePool(name=node.name, generation=1, resource_slice_count=1),
            devices=tuple(Device(name=name) for name in self.devices),
        )
        metadata = ObjectMeta(generate_name="plain-", owner_references=(owner,))
        slices = await self.bench.client.list(ResourceSlice)
        if all(each.spec.driver != spec.driver for each in slices.values):
            await self.bench.client.write(Create(ResourceSlice(metadata=metadata, spec=spec)))

    def _slice_changed(self, _: Any, new: Any) -> None:
        if new is None:
            self._publishing = asyncio.ensure_future(self.publish())

    def write_specs(self) -> None:
        found = [
            {"name": name, "containerEdits": {"env": [f"PLAIN={name}"]}} for name in self.devices
        ]
        spec = {"cdiVersion": "0.6.0", "kind": self.kind, "devices": found}
        (self.bench.folders.cdi / "plain.json").write_text(json.dumps(spec))

    # --- registration ---------------------------------------------------------------------------

    async def _info(self, _: Any, __: Any) -> registration.PluginInfo:
        return registration.PluginInfo(
            type=self.type,
            name=self.name,
            endpoint=str(self.socket),
            supported_versions=self.versions,
        )

    async def _notify(self, _: Any, __: Any) -> registration.RegistrationStatusResponse:
        return registration.RegistrationStatusResponse()

    # --- claims ---------------------------------------------------------------------------------

    @property
    def _file(self) -> Path:
        return self.folder / "prepared.json"

    def prepared(self) -> dict[str, list[str]]:
        return dict(json.loads(self._file.read_text())) if self._file.exists() else {}

    def note(self, prepared: dict[str, list[str]]) -> None:
        self._file.write_text(json.dumps(prepared))

    async def _prepare(self, request: Any, _: Any) -> dra.NodePrepareResourcesResponse:
        answer = dra.NodePrepareResourcesResponse()
        for claim in request.claims:
            try:
                answer.claims[claim.uid].devices.extend(await self.prepare(claim))
            except ValueError as error:
                answer.claims[claim.uid].error = str(error)
        return answer

    async def prepare(self, claim: dra.Claim) -> list[dra.Device]:
        found = await self.bench.client.get(ResourceClaim, claim.namespace, claim.name)
        if found is None:
            raise ValueError("no such claim")
        if self.is_checked and found.metadata.uid != claim.uid:
            raise ValueError("another claim")
        if found.status.allocation is None:
            if not self.is_checked:
                return []
            raise ValueError("no devices")
        names = [each.device for each in found.status.allocation.devices.results]
        prepared = self.prepared()
        if any(set(names) & set(others) for uid, others in prepared.items() if uid != claim.uid):
            raise ValueError("it has an owner")
        self.note({**prepared, claim.uid: names})
        return [self.device(name) for name in names]

    def device(self, name: str) -> dra.Device:
        return dra.Device(
            request_names=["devices"],
            pool_name=self.bench.node.metadata.name,
            device_name=name,
            cdi_device_ids=[f"{self.kind}={name}"],
        )

    async def _unprepare(self, request: Any, _: Any) -> dra.NodeUnprepareResourcesResponse:
        answer = dra.NodeUnprepareResourcesResponse()
        for claim in request.claims:
            answer.claims[claim.uid].error = await self.unprepare(claim)
        return answer

    async def unprepare(self, claim: dra.Claim) -> str:
        self.note({uid: names for uid, names in self.prepared().items() if uid != claim.uid})
        return ""

    # --- health ---------------------------------------------------------------------------------

    async def _health(self, _: Any, __: Any) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        yield self.report(*self.devices)
        await asyncio.Event().wait()

    def report(self, *names: str) -> health.NodeWatchResourcesResponse:
        pool = self.bench.node.metadata.name
        found = [
            health.DeviceHealth(
                device=health.DeviceIdentifier(pool_name=pool, device_name=name),
                health=health.HEALTHY,
            )
            for name in names
        ]
        return health.NodeWatchResourcesResponse(devices=found)
