"""Drivers register: each socket in the registry folder is asked who is behind it.

A socket that is refused, dead or silent is asked again after a while that grows, and said once. A
socket that vanishes, or is made anew, ends what was registered by it. Types of plugins that are
not ours go to whoever handles them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from mooring.kit.backoff import Backoff
from mooring.kit.clock import REAL, Clock
from mooring.node.dra.instances import CallError, readable
from mooring.node.dra.registryfolder import Socket
from mooring.wire import grpc
from mooring.wire import registration_pb2 as registration
from mooring.wire.services import GET_INFO, NOTIFY, Method, call, open_socket

LOG = logging.getLogger(__name__)

INFO_TIMEOUT_S = 5.0  # a socket is there a moment before it answers
NOTIFY_TIMEOUT_S = 5.0
BACKOFF = Backoff(first_s=0.5, longest_s=122.0)
VERSIONS_MAX = 64
TEXT_MAX = 1024


class RegistrationRefusedError(Exception):
    """A plugin cannot be used; the text is told to it."""


class Plugin(Struct, frozen=True):
    """What a plugin says of itself."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...] = ()


class PluginHandler(Protocol):
    """Uses plugins of one type."""

    def check(self, plugin: Plugin) -> None:
        """Raise RegistrationRefusedError unless the plugin is one that can be used."""

    async def register(self, plugin: Plugin) -> None:
        """Begin to use a plugin, or raise RegistrationRefusedError."""

    async def deregister(self, plugin: Plugin) -> None:
        """Use it no more."""


class Registrar:
    """Registers the plugins behind sockets, and deregisters them."""

    def __init__(
        self,
        handlers: Mapping[str, PluginHandler],
        *,
        clock: Clock = REAL,
        info_timeout_s: float = INFO_TIMEOUT_S,
        notify_timeout_s: float = NOTIFY_TIMEOUT_S,
    ) -> None:
        self._handlers, self._clock = handlers, clock
        self._info_timeout_s, self._notify_timeout_s = info_timeout_s, notify_timeout_s
        self._attended: dict[Path, asyncio.Task[None]] = {}
        self._registered: dict[Path, Plugin] = {}

    async def run(self, folder: AsyncIterator[frozenset[Socket]]) -> None:
        """Follow what sockets there are until cancelled; what was registered then ends."""
        known: frozenset[Socket] = frozenset()
        try:
            async for found in folder:
                await self._leave({socket.path for socket in known - found})
                for socket in found - known:
                    self._attended[socket.path] = asyncio.create_task(self._attend(socket.path))
                known = found
        finally:
            await self._leave(set(self._attended))

    async def _leave(self, paths: set[Path]) -> None:
        tasks = [self._attended.pop(path) for path in paths]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for path in paths:
            await self._deregister(path)

    async def _attend(self, path: Path) -> None:
        failures, said = 0, ""
        while True:
            try:
                await self._register(path)
            except Exception as error:  # handlers may be anybody's
                failures += 1
                delay_s = BACKOFF.delay_s(failures)
                if str(error) != said:
                    is_expected = isinstance(error, RegistrationRefusedError | CallError)
                    trace = None if is_expected else error
                    LOG.warning("%s: %s; again in %.3g s", path, error, delay_s, exc_info=trace)
                    said = str(error)
                await self._clock.sleep(delay_s)
            else:
                return

    async def _register(self, path: Path) -> None:
        async with open_socket(path) as channel:
            info = await self._ask(channel, GET_INFO, registration.InfoRequest())
            plugin = _read(info, path)
            handler = self._handlers.get(plugin.type)
            if handler is None:
                text = f"no handler registered for plugin type: {plugin.type} at socket {path}"
                raise await self._refusal(channel, text)
            try:
                handler.check(plugin)
            except RegistrationRefusedError as error:
                text = f"plugin validation failed with err: {error}"
                raise await self._refusal(channel, text) from error
            try:
                await handler.register(plugin)
            except RegistrationRefusedError as error:
                text = f"plugin registration failed with err: {error}"
                raise await self._refusal(channel, text) from error
            self._registered[path] = plugin
            try:
                accepted = registration.RegistrationStatus(plugin_registered=True)
                await self._ask(channel, NOTIFY, accepted)
            except CallError:
                await self._deregister(path)
                raise

    async def _deregister(self, path: Path) -> None:
        plugin = self._registered.pop(path, None)
        if plugin is not None:
            await self._handlers[plugin.type].deregister(plugin)

    async def _refusal(self, channel: grpc.aio.Channel, reason: str) -> RegistrationRefusedError:
        text = f"RegisterPlugin error -- {reason}"
        status = registration.RegistrationStatus(plugin_registered=False, error=text)
        await self._ask(channel, NOTIFY, status)
        return RegistrationRefusedError(text)

    async def _ask(self, channel: grpc.aio.Channel, method: Method, request: Any) -> Any:
        is_info = method is GET_INFO
        timeout_s = self._info_timeout_s if is_info else self._notify_timeout_s
        try:
            ask = call(channel, method)
            answer = await ask(request, timeout=timeout_s, wait_for_ready=is_info)
            return readable(answer, method)
        except grpc.aio.AioRpcError as error:
            raise CallError(error.code(), f"{method.name}: {error.details() or ''}") from error


def _read(info: registration.PluginInfo, path: Path) -> Plugin:
    versions = tuple(each[:TEXT_MAX] for each in info.supported_versions[:VERSIONS_MAX])
    return Plugin(
        info.type[:TEXT_MAX], info.name[:TEXT_MAX], info.endpoint[:TEXT_MAX] or str(path), versions
    )
