"""The DRA plugins of this node: registered drivers, and the connections to them.

A driver may have several plugins at a time, as when one version takes over from another; the newest
connected one is called. A driver without a connected plugin is unusable, and its slices are deleted
unless one connects in time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol

from moorage.api.names import dns1123_subdomain
from moorage.kit.bulkhead import keep_running
from moorage.kit.cancellation import is_cancelled
from moorage.kit.clock import REAL, Clock
from moorage.kit.go_quote import go_quote, go_quote_list
from moorage.node.dra.plugin_registration import PluginInfo, readable
from moorage.node.errors import CallError, NotRegisteredError, RegistrationRefusedError, code_name
from moorage.wire import grpc
from moorage.wire.services import (
    DRA_V1,
    DRA_V1BETA1,
    HEALTH_V1,
    HEALTH_V1ALPHA1,
    SOCKET_PATH_BYTES_MAX,
    WATCH_HEALTH,
    Method,
    call,
    open_socket,
)

LOG = logging.getLogger(__name__)

VERSIONS = (DRA_V1, DRA_V1BETA1)
HEALTH_VERSIONS = (HEALTH_V1, HEALTH_V1ALPHA1)  # in order of preference
NAME_CHARACTERS_MAX = 63
INSTANCES_MAX = 16  # of one driver; a rolling update needs two
CALL_TIMEOUT_S = 45.0  # half of the kubelet's interval between syncs of a pod

CALLS_MAX = 64  # in progress at one driver; each costs memory, and most drivers serve one at a time

# Called after each call: driver, method, status, seconds.
Observe = Callable[[str, str, str, float], None]


class DraPlugin:
    """A connection to a driver's endpoint, for as long as the plugin is registered."""

    def __init__(
        self,
        driver: str,
        endpoint: str,
        *,
        version: str,
        health_version: str | None,
        clock: Clock,
        observe: Observe,
        changed: Callable[[], None],
        call_timeout_s: float = CALL_TIMEOUT_S,
    ) -> None:
        self.driver, self.endpoint = driver, endpoint
        self.version, self.health_version = version, health_version
        self.is_connected = False
        self._clock, self._observe, self._changed = clock, observe, changed
        self._call_timeout_s = call_timeout_s
        self._channel = open_socket(endpoint)
        self._turns = asyncio.Semaphore(CALLS_MAX)

    async def follow(self) -> None:
        """Keep the connection, and report when it comes and goes, until cancelled."""
        while True:
            state = self._channel.get_state(try_to_connect=True)
            is_connected = state is grpc.ChannelConnectivity.READY
            if is_connected != self.is_connected:
                self.is_connected = is_connected
                self._changed()
            await self._channel.wait_for_state_change(state)

    async def call(self, method: Method, request: Any) -> Any:
        """Return the response to a call, or raise CallError."""
        async with self._turns:
            return await self._ask(method.of(self.version), request)

    async def _ask(self, method: Method, request: Any) -> Any:
        began_s, code = self._clock.monotonic(), grpc.StatusCode.OK
        try:
            answer = await call(self._channel, method)(request, timeout=self._call_timeout_s)
            return readable(answer, method)
        except grpc.aio.AioRpcError as error:
            code = error.code()
            raise CallError(code, error.details() or "") from error
        except CallError as error:
            code = error.code
            raise
        except grpc.aio.UsageError as error:  # closed meanwhile
            code = grpc.StatusCode.CANCELLED
            raise CallError(code, "the driver was deregistered") from error
        except asyncio.CancelledError:
            code = grpc.StatusCode.CANCELLED
            if is_cancelled():
                raise
            raise CallError(code, "the driver was deregistered") from None
        finally:
            taken_s = self._clock.monotonic() - began_s
            self._observe(self.driver, method.path, code_name(code), taken_s)

    async def health_reports(self) -> AsyncIterator[Any]:
        """Yield the driver's health reports until the stream ends, or raise CallError."""
        assert self.health_version is not None
        method = WATCH_HEALTH.of(self.health_version)
        stream = call(self._channel, method)(method.request())
        try:
            async for report in stream:
                yield readable(report, method)
        except grpc.aio.AioRpcError as error:
            raise CallError(error.code(), error.details() or "") from error
        finally:
            stream.cancel()

    async def close(self) -> None:
        """Close the connection, and cancel calls on it."""
        self.is_connected = False
        await self._channel.close()


# --- the manager ----------------------------------------------------------------------------------


class UsabilityWatcher(Protocol):
    """Wants to know which drivers can be used."""

    def usable(self, driver: str) -> None:
        """Note that a driver is connected."""

    def unusable(self, driver: str) -> None:
        """Note that it is not, for now or for good; may be called repeatedly."""


# Follows the health stream of a plugin until cancelled.
FollowHealth = Callable[[DraPlugin], Coroutine[Any, Any, None]]


class DraPluginManager:
    """All registered drivers; the handler of plugins of type DRAPlugin."""

    def __init__(
        self,
        watcher: UsabilityWatcher,
        *,
        follow_health: FollowHealth | None = None,
        observe: Observe = lambda *_: None,
        registered: Callable[[], None] = lambda: None,
        clock: Clock = REAL,
        call_timeout_s: float = CALL_TIMEOUT_S,
    ) -> None:
        self._watcher, self._follow_health = watcher, follow_health
        self._registered = registered
        self._observe, self._clock, self._call_timeout_s = observe, clock, call_timeout_s
        self._instances: dict[str, list[DraPlugin]] = {}  # in the order of registration
        self._followers: dict[DraPlugin, asyncio.Task[None]] = {}

    def get(self, driver: str) -> DraPlugin:
        """Return the plugin to call: the newest connected one, else the newest."""
        instances = self._instances.get(driver)
        if not instances:
            raise NotRegisteredError(driver)
        connected = (each for each in reversed(instances) if each.is_connected)
        return next(connected, instances[-1])

    def names(self) -> list[str]:
        """Return the registered drivers."""
        return sorted(self._instances)

    def is_usable(self, driver: str) -> bool:
        """Return whether a plugin of a driver is connected."""
        return any(each.is_connected for each in self._instances.get(driver, ()))

    def check(self, plugin: PluginInfo) -> None:
        """Raise RegistrationRefusedError unless this is a usable DRA plugin."""
        if problems := _name_problems(plugin.name):
            raise RegistrationRefusedError(
                f"invalid DRA driver name {go_quote(plugin.name[:256])}: {'; '.join(problems)}"
            )
        if len(plugin.endpoint.encode()) > SOCKET_PATH_BYTES_MAX or "\0" in plugin.endpoint:
            raise RegistrationRefusedError(
                f"endpoint of DRA driver plugin {plugin.name} cannot be a socket: "
                f"{go_quote(plugin.endpoint[:256])}"
            )
        _version_of(plugin)

    async def register(self, plugin: PluginInfo) -> None:
        """Begin to use a plugin, or raise RegistrationRefusedError."""
        self.check(plugin)
        name, endpoint = plugin.name, plugin.endpoint
        instances = self._instances.get(name, [])
        if any(each.endpoint == endpoint for each in instances):
            raise RegistrationRefusedError(
                f"endpoint {endpoint} already registered for DRA driver plugin {name}"
            )
        if len(instances) >= INSTANCES_MAX:
            raise RegistrationRefusedError(f"DRA driver {name} has {INSTANCES_MAX} instances")
        instance = self._connect(plugin)
        self._instances[name] = [*instances, instance]
        self._followers[instance] = asyncio.create_task(self._follow(instance))
        self._report_usability(name)
        self._registered()
        LOG.info("driver %s registered at %s with %s", name, endpoint, instance.version)

    async def deregister(self, plugin: PluginInfo) -> None:
        """Stop using a plugin."""
        instances = self._instances.get(plugin.name, [])
        gone = next((each for each in instances if each.endpoint == plugin.endpoint), None)
        if gone is None:
            return
        rest = [each for each in instances if each is not gone]
        if rest:
            self._instances[plugin.name] = rest
        else:
            del self._instances[plugin.name]
        self._report_usability(plugin.name)
        await self._disconnect(gone)
        LOG.info("driver %s at %s is gone", plugin.name, plugin.endpoint)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[DraPluginManager]:
        """Disconnect all plugins at the end."""
        try:
            yield self
        finally:
            instances, self._instances = self._instances, {}
            for instance in [each for some in instances.values() for each in some]:
                await self._disconnect(instance)

    def _connect(self, plugin: PluginInfo) -> DraPlugin:
        health = next((each for each in HEALTH_VERSIONS if each in plugin.versions), None)
        return DraPlugin(
            plugin.name,
            plugin.endpoint,
            version=_version_of(plugin),
            health_version=health,
            clock=self._clock,
            observe=self._observe,
            changed=lambda: self._report_usability(plugin.name),
            call_timeout_s=self._call_timeout_s,
        )

    async def _follow(self, instance: DraPlugin) -> None:
        async with asyncio.TaskGroup() as tasks:
            keep = partial(keep_running, subject=f"driver {instance.driver}", clock=self._clock)
            tasks.create_task(keep("connections to drivers", instance.follow))
            if self._follow_health is not None and instance.health_version is not None:
                tasks.create_task(keep("health of devices", partial(self._follow_health, instance)))

    async def _disconnect(self, instance: DraPlugin) -> None:
        follower = self._followers.pop(instance)
        follower.cancel()
        await asyncio.wait([follower])
        await instance.close()

    def _report_usability(self, driver: str) -> None:
        if self.is_usable(driver):
            self._watcher.usable(driver)
        else:
            self._watcher.unusable(driver)


def _version_of(plugin: PluginInfo) -> str:
    refused = f"invalid supported gRPC versions of DRA driver plugin {plugin.name} at endpoint"
    if not plugin.versions:
        raise RegistrationRefusedError(
            f"{refused} {plugin.endpoint}: "
            "empty list of supported gRPC services (aka supported versions)"
        )
    for version in plugin.versions:
        if version in VERSIONS:
            return version
    raise RegistrationRefusedError(
        f"{refused} {plugin.endpoint}: none of services supported by the plugin "
        f"({go_quote_list(plugin.versions[:32])}) are supported by the kubelet "
        f"({go_quote_list(VERSIONS)})"
    )


def _name_problems(name: str) -> list[str]:
    if not name:
        return ["it is empty"]
    if len(name) > NAME_CHARACTERS_MAX:
        return [f"must be no more than {NAME_CHARACTERS_MAX} characters"]
    return dns1123_subdomain(name.lower())
