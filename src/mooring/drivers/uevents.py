"""Notices changes of the machine, so that drivers scan for devices again.

The kernel broadcasts when a device is added or removed (uevents, over netlink). It does not report
mounts and pages, so drivers also scan periodically. Where listening is not allowed, they only do
that.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import ClassVar

from mooring.driver.driver import ClaimName, Driver
from mooring.drivers.host import Host

LOG = logging.getLogger(__name__)

LOOK_AGAIN_S = 60.0
SETTLE_S = 0.5  # devices rarely change alone
MESSAGE_BYTES_MAX = 65_536
MESSAGES_MAX = 1_000  # at once, so that other tasks run, too
_UEVENTS = 15  # NETLINK_KOBJECT_UEVENT
_KERNEL = 1  # the group that the kernel itself sends to


def subsystem_of(message: bytes) -> str:
    """Return the subsystem of a uevent; empty if it has none.

    message = action "@" path NUL *( name "=" value NUL )
    """
    for line in message[:MESSAGE_BYTES_MAX].split(b"\0")[1:]:
        if line.startswith(b"SUBSYSTEM="):
            return line.removeprefix(b"SUBSYSTEM=").decode(errors="replace")
    return ""


class DeviceChanges:
    """Calls back once, a little after one or more changes."""

    def __init__(
        self,
        subsystems: frozenset[str],
        changed: Callable[[], None],
        *,
        source: socket.socket | None = None,
        settle_s: float = SETTLE_S,
        look_again_s: float = LOOK_AGAIN_S,
    ) -> None:
        self._subsystems = subsystems
        self._changed = changed
        self._source = source
        self._settle_s = settle_s
        self._look_again_s = look_again_s
        self._soon: asyncio.TimerHandle | None = None
        self._later: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start listening."""
        self._source = self._source or _open_uevents()
        loop = asyncio.get_running_loop()
        if self._source is not None:
            self._source.setblocking(False)
            loop.add_reader(self._source, self._hear)
        self._later = loop.call_later(self._look_again_s, self._look)

    def stop(self) -> None:
        """Stop listening."""
        for timer in (self._soon, self._later):
            if timer is not None:
                timer.cancel()
        if self._source is not None:
            asyncio.get_running_loop().remove_reader(self._source)
            self._source.close()

    def _hear(self) -> None:
        assert self._source is not None
        for _ in range(MESSAGES_MAX):
            try:
                message = self._source.recv(MESSAGE_BYTES_MAX)
            except BlockingIOError:
                return
            except OSError:
                # The buffer overflowed, so something changed.
                self._look_soon()
                return
            if not message:
                return
            if subsystem_of(message) in self._subsystems:
                self._look_soon()

    def _look_soon(self) -> None:
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(self._settle_s, self._look)

    def _look(self) -> None:
        for timer in (self._soon, self._later):
            if timer is not None:
                timer.cancel()
        self._soon = None
        self._later = asyncio.get_running_loop().call_later(self._look_again_s, self._look)
        self._changed()


class WatchingDriver(Driver):
    """Base of drivers for devices that come and go."""

    subsystems: ClassVar[frozenset[str]]  # whose changes matter
    _changes: DeviceChanges | None = None

    def __init__(self, host: Host) -> None:
        self._host = host

    def unprepare(self, claim: ClaimName) -> None:
        """Do nothing: most of these drivers reserve nothing on the machine."""

    async def started(self) -> None:
        """Start noticing changes."""
        self._changes = DeviceChanges(self.subsystems, self.republish)
        self._changes.start()

    async def stopped(self) -> None:
        """Stop noticing changes."""
        if self._changes is not None:
            self._changes.stop()
            self._changes = None


def _open_uevents() -> socket.socket | None:
    """Return a socket for the kernel's uevents; None if that is not allowed."""
    try:
        found = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _UEVENTS)
    except (AttributeError, OSError) as error:
        LOG.info("cannot listen for changes of devices: %s", error)
        return None
    try:
        found.bind((0, _KERNEL))
    except OSError as error:
        found.close()
        LOG.info("cannot listen for changes of devices: %s", error)
        return None
    return found
