"""What drivers share: the machine's sysfs and proc, its uevents, and helpers to prepare claims.

Files may vanish or change at any time. So reading raises nothing: what cannot be read is None or
empty, and a device without a required property is left out until the next scan.

The kernel broadcasts when a device is added or removed (uevents, over netlink). It does not report
mounts and pages, so drivers also scan periodically. Where listening is not allowed, they only do
that.
"""

from __future__ import annotations

import asyncio
import logging
import posixpath
import socket
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import ClassVar, NamedTuple

from moorage.api.quantity import Quantity
from moorage.driver.driver import AllocatedDevice, Claim, ClaimName, Driver, PrepareError
from moorage.hardware.attributes import DeviceLocation, NumaNodeForm
from moorage.hardware.errors import TreeError
from moorage.hardware.numbers import PciAddress, parse_cpu_list, parse_integer
from moorage.hardware.sysfs_tree import FILE_BYTES_MAX, SysfsTree, folder_tree

LOG = logging.getLogger(__name__)

LARGE_FILE_BYTES_MAX = 8 << 20  # of files that grow with the machine, such as mounts
LOOK_AGAIN_S = 60.0
SETTLE_S = 0.5  # devices rarely change alone
MESSAGE_BYTES_MAX = 65_536
MESSAGES_MAX = 1_000  # at once, so that other tasks run, too
_UEVENTS = 15  # NETLINK_KOBJECT_UEVENT
_KERNEL = 1  # the group that the kernel itself sends to


class Host(NamedTuple):
    """The sysfs and proc of a machine."""

    sys: SysfsTree
    proc: SysfsTree
    form: NumaNodeForm = NumaNodeForm.SCALAR

    @property
    def place(self) -> DeviceLocation:
        """What determines the standard attributes of its devices."""
        return DeviceLocation(self.sys, self.form)


def host_at(
    sysfs: str | Path = "/sys", proc: str | Path = "/proc", form: NumaNodeForm = NumaNodeForm.SCALAR
) -> Host:
    """Return the machine with sysfs and proc in these folders, by default this one."""
    return Host(folder_tree(sysfs), folder_tree(proc), form)


def read_text(tree: SysfsTree, path: str, bytes_max: int = FILE_BYTES_MAX) -> str | None:
    """Return the text of a file, stripped; None if it cannot be read."""
    try:
        return tree.read(path, bytes_max).strip()
    except TreeError:
        return None


def read_integer(tree: SysfsTree, path: str) -> int | None:
    """Return the integer in a file; None if it cannot be read."""
    text = read_text(tree, path)
    try:
        return None if text is None else parse_integer(text)
    except ValueError:
        return None


def read_natural(tree: SysfsTree, path: str) -> int | None:
    """Return the integer in a file; None also for -1, the kernel's unknown."""
    found = read_integer(tree, path)
    return found if found is not None and found >= 0 else None


def read_list(tree: SysfsTree, path: str) -> tuple[int, ...] | None:
    """Return the list in a file, such as 0-3,8; None if it cannot be read."""
    text = read_text(tree, path)
    try:
        return None if text is None else parse_cpu_list(text)
    except ValueError:
        return None


def folder_names(tree: SysfsTree, path: str) -> list[str]:
    """Return the names in a folder, sorted; none if it cannot be read."""
    try:
        return tree.names(path)
    except TreeError:
        return []


def link_steps(tree: SysfsTree, path: str) -> list[str]:
    """Return the path that a link leads to, in steps from the root; none if it is not a link."""
    try:
        target = tree.link(path)
    except TreeError:
        return []
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return [] if place.startswith(("/", "..")) else place.split("/")


def pci_address(steps: list[str]) -> str:
    """Return the last PCI device of a path; empty if there is none."""
    for step in reversed(steps):
        try:
            return str(PciAddress.parse(step))
        except ValueError:
            continue
    return ""


# --- claims ---------------------------------------------------------------------------------------


def consumed(device: AllocatedDevice, name: str) -> Quantity | None:
    """Return how much of a capacity a claim consumes; the name may omit its domain."""
    for key in (name, name.rpartition("/")[2]):
        if key in device.consumed:
            return device.consumed[key]
    for key, value in device.consumed.items():
        if key.rpartition("/")[2] == name:
            return value
    return None


def devices_of_request(claim: Claim, request: str) -> tuple[AllocatedDevice, ...]:
    """Return the devices of one request, of which a container gets all or none."""
    return tuple(device for device in claim.devices if device.request == request)


def device_gone(device: AllocatedDevice) -> PrepareError:
    """Return the error for a device that was published and has disappeared."""
    return PrepareError(f"device {device.name}: there is no such device here now")


def check_present(claim: Claim, present: Container[str]) -> None:
    """Raise PrepareError unless all devices of a claim are present."""
    for device in claim.devices:
        if device.name not in present:
            raise device_gone(device)


def join_unique(values: Iterable[str]) -> str:
    """Join distinct values by commas, for an environment variable."""
    return ",".join(dict.fromkeys(values))


# --- changes --------------------------------------------------------------------------------------


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
