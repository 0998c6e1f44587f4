"""A driver for tests: real gRPC on real sockets, controlled by a test.

    async with FakeDriver(root, "gpu.example.com") as driver:
        driver.prepare_errors["uid-1"] = "no such device"
        ...
        assert driver.calls == [("prepare", ("uid-1",))]

It can hang, crash, leave its sockets behind, answer for claims nobody asked for or for too few,
and send messages of any size. By default it prepares one device for each claim.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from moorage.wire import dra_v1_pb2 as dra
from moorage.wire import health_v1_pb2 as health
from moorage.wire import registration_pb2 as registration
from moorage.wire.services import (
    DRA_PLUGIN,
    DRA_V1,
    DRA_V1BETA1,
    GET_INFO,
    HEALTH_V1,
    HEALTH_V1ALPHA1,
    NOTIFY,
    PREPARE,
    UNPREPARE,
    WATCH_HEALTH,
    serve,
)

HUGE_BYTES = 32 * 1024 * 1024
GARBAGE = b"\xff\xff\xff"  # no message at all


class _Raw:
    """Writes messages, and bytes as they are."""

    @staticmethod
    def SerializeToString(message: Any) -> bytes:  # noqa: N802  # as protobuf names it
        return message if isinstance(message, bytes) else bytes(message.SerializeToString())


Answer = Callable[[Sequence[dra.Claim]], dra.NodePrepareResourcesResponse]


class FakeDriver:
    """One instance of a driver."""

    def __init__(
        self,
        root: Path,
        name: str,
        *,
        instance: str = "",
        type_: str = DRA_PLUGIN,
        versions: Iterable[str] = (DRA_V1,),
        endpoint: str | None = None,
        log: list[tuple[str, tuple[str, ...]]] | None = None,
    ) -> None:
        self.name, self.type, self.versions = name, type_, tuple(versions)
        self.folder = root / "plugins" / name
        self.registry = root / "plugins_registry"
        self.socket = self.folder / f"dra{instance}.sock"
        self.registration_socket = self.registry / f"{name}{instance}-reg.sock"
        self.endpoint = str(self.socket) if endpoint is None else endpoint
        # What happened.
        self.calls: list[tuple[str, tuple[str, ...]]] = [] if log is None else log
        self.prepared: set[str] = set()  # uids
        self.versions_called: set[str] = set()
        self.statuses: list[registration.RegistrationStatus] = []
        self.streams = 0
        # What is to happen.
        self.prepare_errors: dict[str, str] = {}
        self.unprepare_errors: dict[str, str] = {}
        self.devices: dict[str, list[dra.Device]] = {}
        self.prepare_answer: Answer | None = None
        self.failure: grpc.StatusCode | None = None  # of every call
        self.skipped: set[str] = set()  # uids for which nothing is answered
        self.invented: set[str] = set()  # uids for which nobody asked
        self.is_huge = False
        self.is_garbled = False
        self.info_hangs = False
        self.notify_fails = False
        self.health_code: grpc.StatusCode | None = None  # instead of reports
        self.gate = asyncio.Event()  # calls wait for it
        self.gate.set()
        self.waiting = 0
        self.changed = asyncio.Condition()
        self._reports: asyncio.Queue[health.NodeWatchResourcesResponse | None] = asyncio.Queue()
        self._servers: list[grpc.aio.Server] = []

    # --- life -----------------------------------------------------------------------------------

    async def __aenter__(self) -> FakeDriver:
        await self.serve()
        await self.register()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def serve(self) -> None:
        """Answer calls, without being registered."""
        self.folder.mkdir(parents=True, exist_ok=True)
        methods: dict[Any, Any] = {}
        for version in (DRA_V1, DRA_V1BETA1):
            methods[PREPARE.of(version)] = self._counted(version, self._prepare)
            methods[UNPREPARE.of(version)] = self._counted(version, self._unprepare)
        for version in (HEALTH_V1, HEALTH_V1ALPHA1):
            methods[WATCH_HEALTH.of(version)] = self._watch
        await self._start(self.socket, methods)

    async def register(self) -> None:
        """Show the socket by which the agent finds the driver."""
        self.registry.mkdir(parents=True, exist_ok=True)
        methods = {GET_INFO: self._info, NOTIFY: self._notify}
        await self._start(self.registration_socket, methods)

    async def stop(self) -> None:
        """End as a driver should: its sockets are gone."""
        self.registration_socket.unlink(missing_ok=True)
        await self.crash()
        self.socket.unlink(missing_ok=True)

    async def crash(self) -> None:
        """End at once; the sockets stay."""
        self.gate.set()
        servers, self._servers = self._servers, []
        for server in servers:
            await server.stop(None)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds that a call changes."""
        async with self.changed:
            await self.changed.wait_for(holds)

    async def until_told(self) -> registration.RegistrationStatus:
        """Wait until the agent said what it thinks of the driver, and return the last word."""
        await self.until(lambda: bool(self.statuses))
        return self.statuses[-1]

    def report(self, *devices: health.DeviceHealth) -> None:
        """Say something of devices."""
        self._reports.put_nowait(health.NodeWatchResourcesResponse(devices=devices))

    def end_stream(self) -> None:
        """Stop talking of health."""
        self._reports.put_nowait(None)

    def uids(self, operation: str) -> list[str]:
        """Return the claims of all calls of an operation, in order."""
        return [uid for name, uids in self.calls if name == operation for uid in uids]

    # --- answers --------------------------------------------------------------------------------

    async def _start(self, path: Path, methods: dict[Any, Any]) -> None:
        server = grpc.aio.server(options=[("grpc.max_send_message_length", 2 * HUGE_BYTES)])
        raw = {method._replace(response=_Raw): handle for method, handle in methods.items()}
        server.add_generic_rpc_handlers((serve(raw),))
        # gRPC removes the file that it made; the other name stays, as after a crash.
        hidden = path.with_name(f".{path.name}")
        server.add_insecure_port(f"unix:{hidden}")
        path.unlink(missing_ok=True)
        path.hardlink_to(hidden)
        await server.start()
        self._servers.append(server)

    async def _note(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    def _counted(self, version: str, handle: Any) -> Any:
        async def counted(request: Any, context: Any) -> Any:
            self.versions_called.add(version)
            self.calls.append((handle.__name__.strip("_"), tuple(c.uid for c in request.claims)))
            self.waiting += 1
            await self._note()
            await self.gate.wait()
            self.waiting -= 1
            if self.failure is not None:
                await context.abort(self.failure, "told to fail")
            answer = handle(request.claims)
            await self._note()
            return GARBAGE if self.is_garbled else answer

        return counted

    def _prepare(self, claims: Sequence[dra.Claim]) -> dra.NodePrepareResourcesResponse:
        if self.prepare_answer is not None:
            return self.prepare_answer(claims)
        answer = dra.NodePrepareResourcesResponse()
        for claim in claims:
            if claim.uid in self.skipped:
                continue
            error = self.prepare_errors.get(claim.uid, "")
            if error:
                answer.claims[claim.uid].error = error
                continue
            self.prepared.add(claim.uid)
            devices = self.devices.get(claim.uid)
            answer.claims[claim.uid].devices.extend(
                [device(self.name, claim.uid)] if devices is None else devices
            )
        for uid in self.invented:
            answer.claims[uid].error = ""
        if self.is_huge:
            answer.claims[claims[0].uid].error = "x" * HUGE_BYTES
        return answer

    def _unprepare(self, claims: Sequence[dra.Claim]) -> dra.NodeUnprepareResourcesResponse:
        answer = dra.NodeUnprepareResourcesResponse()
        for claim in claims:
            if claim.uid in self.skipped:
                continue
            answer.claims[claim.uid].error = self.unprepare_errors.get(claim.uid, "")
            if claim.uid not in self.unprepare_errors:
                self.prepared.discard(claim.uid)
        for uid in self.invented:
            answer.claims[uid].error = ""
        return answer

    async def _watch(self, _: Any, context: Any) -> AsyncIterator[Any]:
        self.streams += 1
        await self._note()
        if self.health_code is not None:
            await context.abort(self.health_code, "told to fail")
        while (report := await self._reports.get()) is not None:
            yield GARBAGE if self.is_garbled else report

    async def _info(self, _: Any, __: Any) -> registration.PluginInfo | bytes:
        if self.info_hangs:
            await asyncio.Event().wait()
        if self.is_garbled:
            return GARBAGE
        return registration.PluginInfo(
            type=self.type,
            name=self.name,
            endpoint=self.endpoint,
            supported_versions=list(self.versions),
        )

    async def _notify(self, status: registration.RegistrationStatus, context: Any) -> Any:
        self.statuses.append(status)
        await self._note()
        if self.notify_fails:
            await context.abort(grpc.StatusCode.INTERNAL, "told to fail")
        return registration.RegistrationStatusResponse()


def device(driver: str, name: str, *requests: str, pool: str = "pool") -> dra.Device:
    """Return a device as drivers describe it, with a CDI id made of its name."""
    return dra.Device(
        request_names=requests,
        pool_name=pool,
        device_name=name,
        cdi_device_ids=[f"{driver}/device={name}"],
    )
