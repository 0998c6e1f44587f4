"""One plugin at its socket. Every call has its time; what goes wrong is a PluginError."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from mooring.wire import deviceplugin_pb2 as wire
from mooring.wire import grpc, services

CONNECT_S_MAX = 10.0
PREFER_S_MAX = 10.0
ALLOCATE_S_MAX = 60.0  # Kubernetes waits for as long as it takes
PRE_START_S_MAX = 30.0


class PluginError(Exception):
    """A plugin did not answer, or not as it should; the text is as Kubernetes has it."""


class Plugin:
    """A plugin that registered for a resource."""

    def __init__(self, resource: str, socket: Path) -> None:
        self.resource = resource
        self.socket = socket
        self.options = wire.DevicePluginOptions()
        self._channel = services.open_socket(socket)

    async def connect(self) -> None:
        """Reach the plugin, and learn what it wants to be asked."""
        method = services.GET_OPTIONS
        try:
            self.options = await self._ask(method, wire.Empty(), CONNECT_S_MAX, has_time=True)
        except PluginError as error:
            raise PluginError(f"failed to get device plugin options: {error}") from None

    async def lists(self) -> AsyncIterator[wire.ListAndWatchResponse]:
        """Yield all devices each time that one of them changes, as long as the plugin lives."""
        try:
            async for each in services.call(self._channel, services.LIST_AND_WATCH)(wire.Empty()):
                yield each
        except grpc.aio.AioRpcError as error:
            raise PluginError(_text(error)) from None

    async def prefer(
        self, available: Sequence[str], must: Sequence[str], size: int
    ) -> Sequence[str]:
        """Return which devices the plugin would take; nothing if it does not mind."""
        if not self.options.get_preferred_allocation_available:
            return ()
        request = wire.PreferredAllocationRequest()
        request.container_requests.add(
            available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
        )
        try:
            answer = await self._ask(services.GET_PREFERRED, request, PREFER_S_MAX)
        except PluginError as error:
            what = "device plugin GetPreferredAllocation rpc failed with err"
            raise PluginError(f"{what}: {error}") from None
        return answer.container_responses[0].deviceIDs if answer.container_responses else ()

    async def allocate(self, ids: Sequence[str]) -> wire.ContainerAllocateResponse:
        """Tell the plugin that a container gets devices; return what comes with them."""
        request = wire.AllocateRequest()
        request.container_requests.add(devices_ids=ids)
        answer = await self._ask(services.ALLOCATE, request, ALLOCATE_S_MAX)
        if not answer.container_responses:
            raise PluginError("no containers return in allocation response")
        first: wire.ContainerAllocateResponse = answer.container_responses[0]
        return first

    async def before_start(self, ids: Sequence[str]) -> None:
        """Tell the plugin that a container is about to start, if it wants to know."""
        if not self.options.pre_start_required:
            return
        request = wire.PreStartContainerRequest(devices_ids=ids)
        try:
            await self._ask(services.PRE_START, request, PRE_START_S_MAX)
        except PluginError as error:
            what = "device plugin PreStartContainer rpc failed with err"
            raise PluginError(f"{what}: {error}") from None

    async def close(self) -> None:
        """Leave the plugin alone."""
        await self._channel.close()

    async def _ask(
        self, method: services.Method, request: Any, timeout_s: float, *, has_time: bool = False
    ) -> Any:
        call = services.call(self._channel, method)
        try:
            return await call(request, timeout=timeout_s, wait_for_ready=has_time)
        except grpc.aio.AioRpcError as error:
            raise PluginError(_text(error)) from None


def _text(error: grpc.aio.AioRpcError) -> str:
    """Return an error of gRPC as Go writes it."""
    code = "".join(part.capitalize() for part in error.code().name.split("_"))
    return f"rpc error: code = {code} desc = {(error.details() or '')[:1024]}"
