"""dra.nvme: the disks of this machine, each for one claim.

A disk that the machine uses has the attribute inUse and a taint: only a claim that tolerates the
taint gets it. A container gets the disk's device files, and their names:

    MOORAGE_DISKS_<uid>_<request>=/dev/nvme0n1

Disks are read from

class/nvme/nvme0        controllers on PCI; their namespaces are below them: nvme0n1, or, with
                        several paths to one, nvme0c0n1
class/block/vda         other disks; partitions, loops and volumes are not devices of their own
proc/self/mountinfo     mounts, by number and by name; proc/swaps has swap devices
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from moorage.api.cdi import ContainerEdits, DeviceNode
from moorage.api.process_binding import binding_variable
from moorage.api.resource.v1 import Device
from moorage.driver.driver import Claim, Prepared
from moorage.drivers.host import (
    LARGE_FILE_BYTES_MAX,
    Host,
    WatchingDriver,
    check_present,
    devices_of_request,
    folder_names,
    join_unique,
    link_steps,
    pci_address,
    read_natural,
    read_text,
)
from moorage.hardware.attributes import bytes_of, tame
from moorage.hardware.drivers.nvme import DRIVER, Disk, disk_device
from moorage.hardware.sysfs import SECTOR_BYTES

VARIABLE = "MOORAGE_DISKS"

_CONTROLLER = re.compile(r"nvme[0-9]{1,4}")
_NAMESPACE = re.compile(r"(nvme[0-9]{1,4})(?:c[0-9]{1,4})?(n[0-9]{1,6})")
_DISK = re.compile(r"[a-z][a-z0-9]{1,30}")
_SECTORS_MAX = 1 << 54
# The bus of a disk, from a step of its path.
_TYPES = (
    (re.compile(r"virtio[0-9]+"), "virtio"),
    (re.compile(r"usb[0-9]+"), "usb"),
    (re.compile(r"ata[0-9]+"), "ata"),
    (re.compile(r"host[0-9]+"), "scsi"),
    (re.compile(r"mmc[0-9]+"), "mmc"),
    (re.compile(r"vbd-.*"), "xen"),
)


class NvmeDriver(WatchingDriver):
    """Allocates whole disks."""

    name = DRIVER
    subsystems = frozenset({"block", "nvme"})

    def devices(self) -> list[Device]:
        """Return the current disks."""
        return [disk_device(self._host.place, found.disk) for found in disks_of(self._host)]

    def prepare(self, claim: Claim) -> Iterator[Prepared]:
        """Give containers the device files of their disks."""
        nodes = {found.disk.name: found.nodes for found in disks_of(self._host)}
        check_present(claim, nodes)
        for device in claim.devices:
            fellows = devices_of_request(claim, device.request)
            paths = join_unique(path for each in fellows for path in nodes[each.name])
            env = (f"{binding_variable(VARIABLE, claim.uid, device.request)}={paths}",)
            files = tuple(DeviceNode(path=path) for path in nodes[device.name])
            yield Prepared(device, ContainerEdits(env=env, device_nodes=files))


# --- sysfs ----------------------------------------------------------------------------------------


class FoundDisk(NamedTuple):
    """A disk, and its device files."""

    disk: Disk
    nodes: tuple[str, ...]


def disks_of(host: Host) -> Iterator[FoundDisk]:
    """Yield all disks, NVMe first; one that vanishes meanwhile is left out."""
    used = _used(host)
    for name in folder_names(host.sys, "class/nvme"):
        if _CONTROLLER.fullmatch(name):
            yield from _controller(host, name, used)
    for name in folder_names(host.sys, "class/block"):
        if _DISK.fullmatch(name) and not _NAMESPACE.fullmatch(name):
            yield from _block(host, name, used)


# --- NVMe ---------------------------------------------------------------------------------


def _controller(host: Host, name: str, used: frozenset[str]) -> Iterator[FoundDisk]:
    """Yield a controller with its namespaces, as one disk; none for a remote one."""
    folder = f"class/nvme/{name}"
    address = pci_address(link_steps(host.sys, folder))
    matches = (_NAMESPACE.fullmatch(each) for each in folder_names(host.sys, folder))
    spaces = sorted({each[1] + each[2] for each in matches if each is not None})
    sizes = [_size(host, each) for each in spaces]
    readable = [size for size in sizes if size is not None]
    if not address or not readable:
        return
    read = {
        file: tame(read_text(host.sys, f"{folder}/{file}") or "")
        for file in ("model", "serial", "firmware_rev", "transport")
    }
    disk = Disk(
        name=name,
        size=bytes_of(sum(readable)),
        address=address,
        model=read["model"],
        serial=read["serial"],
        firmware=read["firmware_rev"],
        transport=read["transport"],
        is_rotational=False,
        is_in_use=any(_is_in_use(host, each, used) for each in spaces),
    )
    yield FoundDisk(disk, tuple(f"/dev/{each}" for each in spaces))


# --- others -------------------------------------------------------------------------------


def _block(host: Host, name: str, used: frozenset[str]) -> Iterator[FoundDisk]:
    """Yield a whole disk; none for a partition or a virtual disk."""
    folder = f"class/block/{name}"
    steps = link_steps(host.sys, folder)
    size = _size(host, name)
    if not steps or "virtual" in steps[:2] or not size:
        return
    if read_natural(host.sys, f"{folder}/partition") is not None:
        return
    disk = Disk(
        name=name,
        size=bytes_of(size),
        type=_type(steps),
        address=pci_address(steps),
        model=tame(read_text(host.sys, f"{folder}/device/model") or ""),
        serial=tame(read_text(host.sys, f"{folder}/serial") or ""),
        is_rotational=_flag(host, f"{folder}/queue/rotational"),
        is_read_only=_flag(host, f"{folder}/ro"),
        is_in_use=_is_in_use(host, name, used),
    )
    yield FoundDisk(disk, (f"/dev/{name}",))


def _type(steps: list[str]) -> str:
    for pattern, type_ in _TYPES:
        if any(pattern.fullmatch(step) for step in steps):
            return type_
    return "other"


def _size(host: Host, name: str) -> int | None:
    sectors = read_natural(host.sys, f"class/block/{name}/size")
    return None if sectors is None or sectors > _SECTORS_MAX else sectors * SECTOR_BYTES


def _flag(host: Host, path: str) -> bool | None:
    found = read_natural(host.sys, path)
    return None if found is None else bool(found)


# --- use ----------------------------------------------------------------------------------


def _used(host: Host) -> frozenset[str]:
    """Return mounted and swap devices: names under /dev, and numbers such as 254:0."""
    found: set[str] = set()
    for line in (read_text(host.proc, "self/mountinfo", LARGE_FILE_BYTES_MAX) or "").splitlines():
        before, _, after = line.partition(" - ")
        found.update(before.split()[2:3])
        found.update(part.removeprefix("/dev/") for part in after.split()[1:2])
    for line in (read_text(host.proc, "swaps") or "").splitlines():
        found.update(part.removeprefix("/dev/") for part in line.split()[:1])
    return frozenset(found)


def _is_in_use(host: Host, name: str, used: frozenset[str]) -> bool:
    """Return whether a disk, or a partition of it, is mounted or part of a volume."""
    folder = f"class/block/{name}"
    inside = (
        f"{folder}/{each}" for each in folder_names(host.sys, folder) if each.startswith(name)
    )
    parts = [each for each in inside if read_natural(host.sys, f"{each}/partition") is not None]
    return any(
        place.rpartition("/")[2] in used
        or read_text(host.sys, f"{place}/dev") in used
        or bool(folder_names(host.sys, f"{place}/holders"))
        for place in (folder, *parts)
    )
