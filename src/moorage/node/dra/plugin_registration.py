"""Plugin registration: GetInfo at each socket of the registry folder names a plugin.

A socket that refuses, or does not answer, is tried again with a backoff, and logged once. A socket
that vanishes, or is replaced, ends its registration. Plugins go to the handler of their type.

Whatever happens in the folder, all of it is read again, so no event can be missed or misunderstood.
Events only say when to look; without them the folder is polled every second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from moorage.kit.backoff import Backoff
from moorage.kit.bulkhead import FAULTS
from moorage.kit.clock import REAL, Clock
from moorage.node.errors import CallError, RegistrationRefusedError
from moorage.node.host_folders import HostFolders, node_path
from moorage.node.inotify import FolderEvents
from moorage.wire import grpc
from moorage.wire import registration_pb2 as registration
from moorage.wire.services import GET_INFO, NOTIFY, Method, call, open_socket

LOG = logging.getLogger(__name__)

INFO_TIMEOUT_S = 5.0  # a socket exists a moment before it answers
NOTIFY_TIMEOUT_S = 5.0
BACKOFF = Backoff(first_s=0.5, longest_s=122.0)
VERSIONS_MAX = 64
TEXT_MAX = 1024
ENTRIES_MAX = 4096  # files and folders that are read
DEPTH_MAX = 8
POLL_S = 1.0
LOOK_ANYWAY_S = 60.0  # with events, in case they stop
PAUSE_S = 0.02  # between two looks, however many events
PATH_BYTES_MAX = 107
WARNINGS_MAX = 100  # logged
NO_FOLDERS: HostFolders = {}


class PluginInfo(Struct, frozen=True):
    """The PluginInfo of a plugin."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...] = ()


class PluginHandler(Protocol):
    """Uses plugins of one type."""

    def check(self, plugin: PluginInfo) -> None:
        """Raise RegistrationRefusedError unless the plugin can be used."""

    async def register(self, plugin: PluginInfo) -> None:
        """Begin to use a plugin, or raise RegistrationRefusedError."""

    async def deregister(self, plugin: PluginInfo) -> None:
        """Stop using a plugin."""


class Registrar:
    """Registers the plugins behind sockets, and deregisters them."""

    def __init__(
        self,
        handlers: Mapping[str, PluginHandler],
        *,
        host_folders: HostFolders = NO_FOLDERS,
        clock: Clock = REAL,
        info_timeout_s: float = INFO_TIMEOUT_S,
        notify_timeout_s: float = NOTIFY_TIMEOUT_S,
    ) -> None:
        self._handlers, self._clock, self._host_folders = handlers, clock, host_folders
        self._info_timeout_s, self._notify_timeout_s = info_timeout_s, notify_timeout_s
        self._tasks: dict[Path, asyncio.Task[None]] = {}
        self._registered: dict[Path, PluginInfo] = {}

    async def run(self, folder: AsyncIterator[frozenset[PluginSocket]]) -> None:
        """Follow the sockets until cancelled; all registrations end then."""
        known: frozenset[PluginSocket] = frozenset()
        try:
            async for found in folder:
                await self._leave({socket.path for socket in known - found})
                for socket in found - known:
                    self._tasks[socket.path] = asyncio.create_task(
                        self._keep_registered(socket.path)
                    )
                known = found
        finally:
            await self._leave(set(self._tasks))

    async def _leave(self, paths: set[Path]) -> None:
        tasks = [self._tasks.pop(path) for path in paths]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for path in paths:
            await self._deregister(path)

    async def _keep_registered(self, path: Path) -> None:
        failures, warned = 0, ""
        while True:
            try:
                await self._register(path)
            except Exception as error:  # from any handler
                failures += 1
                delay_s = BACKOFF.delay_s(failures)
                if not isinstance(error, RegistrationRefusedError | CallError):
                    FAULTS.note("registering plugins", str(path), error, "is tried again")
                elif str(error) != warned:
                    LOG.warning("%s: %s; again in %.3g s", path, error, delay_s)
                    warned = str(error)
                await self._clock.sleep(delay_s)
            else:
                return

    async def _register(self, path: Path) -> None:
        async with open_socket(path) as channel:
            info = await self._ask(channel, GET_INFO, registration.InfoRequest())
            plugin = _read(info, path, self._host_folders)
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


def _read(info: registration.PluginInfo, path: Path, host_folders: HostFolders) -> PluginInfo:
    """Return what a plugin says of itself; one in a pod names its socket as the pod sees it."""
    versions = tuple(each[:TEXT_MAX] for each in info.supported_versions[:VERSIONS_MAX])
    endpoint = info.endpoint[:TEXT_MAX] or str(path)
    if "\0" not in endpoint:
        endpoint = str(node_path(endpoint, host_folders))
    return PluginInfo(info.type[:TEXT_MAX], info.name[:TEXT_MAX], endpoint, versions)


def readable(answer: Any, method: Method) -> Any:
    """Return a response, or raise CallError for malformed bytes: gRPC returns None for them."""
    if answer is None:
        name = method.response.__name__
        raise CallError(grpc.StatusCode.INTERNAL, f"the answer is no {name}")
    return answer


# --- the registry folder --------------------------------------------------------------------------


class PluginSocket(NamedTuple):
    """A socket; one that is replaced under its name is another one."""

    path: Path
    inode: int
    made_ns: int


async def follow_sockets(
    folder: Path, *, clock: Clock = REAL, has_events: bool = True
) -> AsyncGenerator[frozenset[PluginSocket], None]:
    """Yield the sockets in a folder and below it, at once and whenever they change."""
    with contextlib.closing(FolderEvents()) as events:
        if not (has_events and events.is_available):
            LOG.info("polling %s every %g s", folder, POLL_S)
            events.close()
        before: frozenset[PluginSocket] | None = None
        warned: set[str] = set()
        while True:
            with contextlib.suppress(OSError):  # reading it reports why
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            found = frozenset(_look(folder, events, warned))
            if found != before:
                before = found
                yield found
            await _wait(events, clock)


async def _wait(events: FolderEvents, clock: Clock) -> None:
    if not events.is_available:
        await clock.sleep(POLL_S)
        return
    timer = clock.call_later(LOOK_ANYWAY_S, events.happened.set)
    try:
        await events.happened.wait()
    finally:
        timer.cancel()
    await clock.sleep(PAUSE_S)
    events.happened.clear()


def _look(folder: Path, events: FolderEvents, warned: set[str]) -> Iterator[PluginSocket]:
    seen = 0
    todo = [(folder, 0)]
    while todo:
        place, depth = todo.pop()
        events.watch(place)  # before reading it, so that nothing is missed
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    seen += 1
                    if seen > ENTRIES_MAX:
                        _warn_once(
                            f"{folder}: more than {ENTRIES_MAX} files, some are ignored", warned
                        )
                        return
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if depth < DEPTH_MAX:
                            todo.append((Path(entry.path), depth + 1))
                    elif (socket := _socket(entry)) is not None:
                        yield socket
        except OSError as error:
            _warn_once(f"{place}: {error.strerror or error}", warned)


def _socket(entry: os.DirEntry[str]) -> PluginSocket | None:
    try:
        found = entry.stat()
    except OSError:  # gone meanwhile, or a broken link
        return None
    if not stat.S_ISSOCK(found.st_mode) or len(os.fsencode(entry.path)) > PATH_BYTES_MAX:
        return None
    return PluginSocket(Path(entry.path), found.st_ino, found.st_mtime_ns)


def _warn_once(text: str, warned: set[str]) -> None:
    if text not in warned and len(warned) < WARNINGS_MAX:
        warned.add(text)
        LOG.warning("%s", text)
