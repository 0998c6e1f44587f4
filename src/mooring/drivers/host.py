"""The machine that a driver is on: its sysfs and its proc, which may be those of another.

What is read may vanish or change meanwhile. So nothing here raises: what cannot be read is None,
or empty, and a device that lacks what it must have is left out until it is looked for again.
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import NamedTuple

from mooring.hardware.attributes import DeviceLocation, NumaNodeForm
from mooring.hardware.errors import TreeError
from mooring.hardware.numbers import PciAddress, parse_cpu_list, parse_integer
from mooring.hardware.sysfs_tree import FILE_BYTES_MAX, SysfsTree, folder_tree

LARGE_FILE_BYTES_MAX = 8 << 20  # of files that grow with the machine, such as its mounts


class Host(NamedTuple):
    """Where a driver looks for devices."""

    sys: SysfsTree
    proc: SysfsTree
    form: NumaNodeForm = NumaNodeForm.SCALAR

    @property
    def place(self) -> DeviceLocation:
        """Where its devices stand."""
        return DeviceLocation(self.sys, self.form)


def host_at(
    sysfs: str | Path = "/sys", proc: str | Path = "/proc", form: NumaNodeForm = NumaNodeForm.SCALAR
) -> Host:
    """Return the machine whose sysfs and proc are in these folders; by default this one."""
    return Host(folder_tree(sysfs), folder_tree(proc), form)


def read_text(tree: SysfsTree, path: str, bytes_max: int = FILE_BYTES_MAX) -> str | None:
    """Return what a file says, without space around it; None if it cannot be read."""
    try:
        return tree.read(path, bytes_max).strip()
    except TreeError:
        return None


def read_integer(tree: SysfsTree, path: str) -> int | None:
    """Return the integer in a file; None if it cannot be read."""
    said = read_text(tree, path)
    try:
        return None if said is None else parse_integer(said)
    except ValueError:
        return None


def read_natural(tree: SysfsTree, path: str) -> int | None:
    """Return the integer in a file; the kernel writes -1 where it does not know."""
    found = read_integer(tree, path)
    return found if found is not None and found >= 0 else None


def read_list(tree: SysfsTree, path: str) -> tuple[int, ...] | None:
    """Return the list in a file, such as 0-3,8; None if it cannot be read."""
    said = read_text(tree, path)
    try:
        return None if said is None else parse_cpu_list(said)
    except ValueError:
        return None


def folder_names(tree: SysfsTree, path: str) -> list[str]:
    """Return the names in a folder, in order; none if it cannot be read."""
    try:
        return tree.names(path)
    except TreeError:
        return []


def link_steps(tree: SysfsTree, path: str) -> list[str]:
    """Return the steps from the root to where a link leads; none if it is no link."""
    try:
        target = tree.link(path)
    except TreeError:
        return []
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return [] if place.startswith(("/", "..")) else place.split("/")


def pci_address(steps: list[str]) -> str:
    """Return the last device on PCI on a way; empty if there is none."""
    for step in reversed(steps):
        try:
            return str(PciAddress.parse(step))
        except ValueError:
            continue
    return ""
