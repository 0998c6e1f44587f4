"""Plugins that are connected: their lists are followed for as long as they live.

    # registered ─► connected ─► lists … ─► stream ends ─► disconnected

A resource may have several plugins, as while one takes over from another: the newest is asked, and
whoever lists last says what there is. One that comes again at its socket takes its own place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from mooring.kit.clock import Clock
from mooring.node.device_plugins.inventory import PluginDevice
from mooring.node.device_plugins.plugin import Plugin, PluginError
from mooring.node.device_plugins.readings import check_registration, devices_of, duplicates

PLUGINS_MAX = 256
LISTS_AT_ONCE_MAX = 20  # then so many a second
_LOG = logging.getLogger(__name__)


class Listener(Protocol):
    """Who is told of plugins."""

    def started(self, resource: str) -> None:
        """A plugin is there."""

    def listed(self, resource: str, devices: tuple[PluginDevice, ...]) -> None:
        """A plugin says which devices there are."""

    def stopped(self, resource: str) -> None:
        """The last plugin of a resource is gone."""


class _Connection(NamedTuple):
    plugin: Plugin
    following: asyncio.Task[None]


class Connections:
    """All plugins."""

    def __init__(self, listener: Listener, clock: Clock) -> None:
        self._listener = listener
        self._clock = clock
        self._all: list[_Connection] = []  # newest last

    def plugin(self, resource: str) -> Plugin | None:
        """Return the plugin that is asked for devices of a resource."""
        return next((each.plugin for each in reversed(self._all) if _is(each, resource)), None)

    async def register(self, resource: str, socket: Path, versions: tuple[str, ...]) -> None:
        """Connect to a plugin; ValueError or PluginError if that cannot be."""
        check_registration(resource, versions)
        if len(self._all) >= PLUGINS_MAX:
            raise ValueError(f"{PLUGINS_MAX} device plugins are connected, and no more can be")
        plugin = Plugin(resource, socket)
        try:
            await plugin.connect()
        except BaseException:
            await plugin.close()
            raise
        former = list(self._at(resource, socket))
        following = asyncio.create_task(self._follow(plugin), name=f"device plugin {resource}")
        self._all.append(_Connection(plugin, following))
        for each in former:
            await self._leave(each)
        self._listener.started(resource)

    async def deregister(self, resource: str, socket: Path) -> None:
        """Leave a plugin whose registration is gone."""
        for each in list(self._at(resource, socket)):
            await self._leave(each)
            self._tell_stopped(resource)

    async def close(self) -> None:
        """Leave all plugins."""
        while self._all:
            await self._leave(self._all[-1])

    def _at(self, resource: str, socket: Path) -> Iterator[_Connection]:
        return (each for each in self._all if _is(each, resource) and each.plugin.socket == socket)

    async def _leave(self, connection: _Connection) -> None:
        self._all = [each for each in self._all if each is not connection]
        connection.following.cancel()
        with suppress(asyncio.CancelledError):
            await connection.following
        await connection.plugin.close()

    async def _follow(self, plugin: Plugin) -> None:
        """Take what a plugin lists until it ends."""
        try:
            await self._take_lists(plugin)
            why = "the stream has ended"
        except (PluginError, ValueError) as error:
            why = str(error)
        _LOG.warning("device plugin of %s is left: %s", plugin.resource, why)
        self._all = [each for each in self._all if each.plugin is not plugin]
        await plugin.close()
        self._tell_stopped(plugin.resource)

    async def _take_lists(self, plugin: Plugin) -> None:
        since_s, count = self._clock.monotonic(), 0
        async for message in plugin.lists():
            devices = devices_of(message)
            if duplicates(message):
                text = "device plugin of %s lists %d devices more often than once"
                _LOG.warning(text, plugin.resource, duplicates(message))
            self._listener.listed(plugin.resource, devices)
            count += 1
            ahead_s = count / LISTS_AT_ONCE_MAX - (self._clock.monotonic() - since_s)
            if ahead_s > 1:  # a plugin that never rests must not keep others from their turn
                await self._clock.sleep(ahead_s - 1)

    def _tell_stopped(self, resource: str) -> None:
        if self.plugin(resource) is None:
            self._listener.stopped(resource)


def _is(connection: _Connection, resource: str) -> bool:
    return connection.plugin.resource == resource
