"""What drivers share: the machine's sysfs and proc, and helpers to prepare claims.

Files may vanish or change at any time. So reading raises nothing: what cannot be read is None or
empty, and a device without a required property is left out until the next scan.
"""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterable
from pathlib import Path
from typing import NamedTuple

from mooring.api.quantity import Quantity
from mooring.driver.driver import AllocatedDevice, Claim, PrepareError
from mooring.hardware.attributes import DeviceLocation, NumaNodeForm
from mooring.hardware.errors import TreeError
from mooring.hardware.numbers import PciAddress, parse_cpu_list, parse_integer
from mooring.hardware.sysfs_tree import FILE_BYTES_MAX, SysfsTree, folder_tree

LARGE_FILE_BYTES_MAX = 8 << 20  # of files that grow with the machine, such as mounts


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
