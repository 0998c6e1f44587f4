"""Device plugins at their sockets: registered, connected, called.

    registered ─► connected ─► lists … ─► stream ends ─► disconnected

A resource may have several plugins, as while one takes over from another: the newest is called, and
the last list counts. A plugin that registers again at its socket replaces itself. Every call has a
timeout; what goes wrong is a PluginError.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from moorage.kit.bulkhead import FAULTS
from moorage.kit.cancellation import is_cancelled
from moorage.kit.clock import Clock
from moorage.node.device_plugins.inventory import (
    PluginDevice,
    check_endpoint,
    check_registration,
    devices_of,
    duplicates,
)
from moorage.node.errors import PluginError, code_name
from moorage.wire import deviceplugin_pb2 as wire
from moorage.wire import grpc, services

CONNECT_S_MAX = 10.0
PREFER_S_MAX = 10.0
ALLOCATE_S_MAX = 60.0  # Kubernetes has no timeout
PRE_START_S_MAX = 30.0
PLUGINS_MAX = 256
LISTS_AT_ONCE_MAX = 20  # then as many per second
DISCONNECTED = "grpc: the client connection is closing"  # as Go says it
_LOG = logging.getLogger(__name__)
SOCKET_NAME = "kubelet.sock"


class DevicePlugin:
    """A plugin that registered for a resource."""

    def __init__(self, resource: str, socket: Path) -> None:
        self.resource = resource
        self.socket = socket
        self.options = wire.DevicePluginOptions()
        self._channel = services.open_socket(socket)

    async def connect(self) -> None:
        """Connect to the plugin, and read its options."""
        method = services.GET_OPTIONS
        try:
            self.options = await self._ask(method, wire.Empty(), CONNECT_S_MAX, waits=True)
        except PluginError as error:
            raise PluginError(f"failed to get device plugin options: {error}") from None

    async def lists(self) -> AsyncIterator[wire.ListAndWatchResponse]:
        """Yield all devices whenever one changes, for as long as the plugin lives."""
        try:
            async for each in services.call(self._channel, services.LIST_AND_WATCH)(wire.Empty()):
                yield each
        except grpc.aio.AioRpcError as error:
            raise PluginError(_text(error.code(), error.details())) from None

    async def prefer(
        self, available: Sequence[str], must: Sequence[str], size: int
    ) -> Sequence[str]:
        """Return the devices that the plugin prefers; nothing if it has no preference."""
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
        """Return what comes with devices that a container gets."""
        request = wire.AllocateRequest()
        request.container_requests.add(devices_ids=ids)
        answer = await self._ask(services.ALLOCATE, request, ALLOCATE_S_MAX)
        if not answer.container_responses:
            raise PluginError("no containers return in allocation response")
        first: wire.ContainerAllocateResponse = answer.container_responses[0]
        return first

    async def before_start(self, ids: Sequence[str]) -> None:
        """Notify the plugin that a container is about to start, if it wants that."""
        if not self.options.pre_start_required:
            return
        request = wire.PreStartContainerRequest(devices_ids=ids)
        try:
            await self._ask(services.PRE_START, request, PRE_START_S_MAX)
        except PluginError as error:
            what = "device plugin PreStartContainer rpc failed with err"
            raise PluginError(f"{what}: {error}") from None

    async def close(self) -> None:
        """Disconnect."""
        await self._channel.close()

    async def _ask(
        self, method: services.Method, request: Any, timeout_s: float, *, waits: bool = False
    ) -> Any:
        call = services.call(self._channel, method)
        try:
            return await call(request, timeout=timeout_s, wait_for_ready=waits)
        except grpc.aio.AioRpcError as error:
            raise PluginError(_text(error.code(), error.details())) from None
        except grpc.aio.UsageError:  # disconnected before
            raise PluginError(_text(grpc.StatusCode.CANCELLED, DISCONNECTED)) from None
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            raise PluginError(_text(grpc.StatusCode.CANCELLED, DISCONNECTED)) from None


def _text(code: grpc.StatusCode, details: str | None) -> str:
    """Return a gRPC error as Go writes it."""
    return f"rpc error: code = {code_name(code)} desc = {(details or '')[:1024]}"


# --- connections ----------------------------------------------------------------------------------


class PluginListener(Protocol):
    """Is notified of plugins."""

    def started(self, resource: str) -> None:
        """Note that a plugin registered."""

    def listed(self, resource: str, devices: tuple[PluginDevice, ...]) -> None:
        """Take in a plugin's list of devices."""

    def stopped(self, resource: str) -> None:
        """Note that the last plugin of a resource is gone."""


class _Connection(NamedTuple):
    plugin: DevicePlugin
    following: asyncio.Task[None]


class PluginConnections:
    """All connected plugins."""

    def __init__(self, listener: PluginListener, clock: Clock) -> None:
        self._listener = listener
        self._clock = clock
        self._all: list[_Connection] = []  # newest last

    def plugin(self, resource: str) -> DevicePlugin | None:
        """Return the plugin to call for a resource."""
        return next((each.plugin for each in reversed(self._all) if _is(each, resource)), None)

    async def register(self, resource: str, socket: Path, versions: tuple[str, ...]) -> None:
        """Connect to a plugin; raises ValueError or PluginError."""
        check_registration(resource, versions)
        if len(self._all) >= PLUGINS_MAX:
            raise ValueError(f"{PLUGINS_MAX} device plugins are connected, and no more can be")
        plugin = DevicePlugin(resource, socket)
        try:
            await plugin.connect()
        except BaseException:
            await plugin.close()
            raise
        former = list(self._at(resource, socket))
        following = asyncio.create_task(self._follow(plugin), name=f"device plugin {resource}")
        self._all.append(_Connection(plugin, following))
        for each in former:
            await self._disconnect(each)
        self._listener.started(resource)

    async def deregister(self, resource: str, socket: Path) -> None:
        """Disconnect a plugin whose registration is gone."""
        for each in list(self._at(resource, socket)):
            await self._disconnect(each)
            self._report_stopped(resource)

    async def close(self) -> None:
        """Disconnect all plugins."""
        while self._all:
            await self._disconnect(self._all[-1])

    def _at(self, resource: str, socket: Path) -> Iterator[_Connection]:
        return (each for each in self._all if _is(each, resource) and each.plugin.socket == socket)

    async def _disconnect(self, connection: _Connection) -> None:
        self._all = [each for each in self._all if each is not connection]
        connection.following.cancel()
        with suppress(asyncio.CancelledError):
            await connection.following
        await connection.plugin.close()

    async def _follow(self, plugin: DevicePlugin) -> None:
        try:
            await self._take_lists(plugin)
            why = "the stream has ended"
        except (PluginError, ValueError) as error:
            why = str(error)
        except Exception as error:
            FAULTS.note("device plugins", plugin.resource, error, "is disconnected")
            why = "internal error"
        _LOG.warning("device plugin of %s disconnected: %s", plugin.resource, why)
        self._all = [each for each in self._all if each.plugin is not plugin]
        await plugin.close()
        self._report_stopped(plugin.resource)

    async def _take_lists(self, plugin: DevicePlugin) -> None:
        since_s, count = self._clock.monotonic(), 0
        async for message in plugin.lists():
            devices = devices_of(message)
            if duplicates(message):
                text = "device plugin of %s lists %d devices more than once"
                _LOG.warning(text, plugin.resource, duplicates(message))
            self._listener.listed(plugin.resource, devices)
            count += 1
            ahead_s = count / LISTS_AT_ONCE_MAX - (self._clock.monotonic() - since_s)
            if ahead_s > 1:  # a plugin that never pauses must not starve others
                await self._clock.sleep(ahead_s - 1)

    def _report_stopped(self, resource: str) -> None:
        if self.plugin(resource) is None:
            self._listener.stopped(resource)


def _is(connection: _Connection, resource: str) -> bool:
    return connection.plugin.resource == resource


# --- registration ---------------------------------------------------------------------------------


class PluginRegistrar(Protocol):
    """Registers plugins."""

    async def register(self, resource: str, socket: Path, versions: tuple[str, ...]) -> None:
        """Connect to a plugin; raises ValueError or PluginError."""


class RegistrationServer:
    """Serves the registration socket, `device-plugins/kubelet.sock`."""

    def __init__(self, folder: Path, registrar: PluginRegistrar) -> None:
        self._folder = folder
        self._registrar = registrar
        self._server = services.new_server()

    async def start(self) -> None:
        """Remove old sockets, so that plugins register again, and serve."""
        path = self._folder / SOCKET_NAME
        length = len(str(path).encode())
        if length > services.SOCKET_PATH_BYTES_MAX:
            raise OSError(f"{path}: {length} bytes are too long for the path of a socket")
        self._folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        clear_sockets(self._folder)
        handlers = services.serve({services.REGISTER: self._register})
        self._server.add_generic_rpc_handlers((handlers,))
        self._server.add_insecure_port(f"unix:{path}")
        await self._server.start()

    async def stop(self) -> None:
        """Stop serving."""
        await self._server.stop(None)

    async def _register(
        self, request: wire.RegisterRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> wire.Empty:
        try:
            check_endpoint(request.endpoint)
            socket = self._folder / request.endpoint
            await self._registrar.register(request.resource_name, socket, (request.version,))
        except (ValueError, PluginError) as error:
            _LOG.warning("device plugin of %s refused: %s", request.resource_name[:256], error)
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return wire.Empty()


def clear_sockets(folder: Path) -> None:
    """Remove the sockets in a folder, left by an earlier run, and nothing else."""
    for path in folder.iterdir():
        try:
            if stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink()
        except FileNotFoundError:
            continue
