"""dra.nvme (johnahull/dra-driver-nvme): disks on PCI; and here, other disks too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, DeviceCapacity, DeviceTaint
from moorage.hardware.attributes import Attributes, DeviceLocation, flag, tame, text, whole
from moorage.hardware.board import Nvme, PciDevice
from moorage.hardware.machine import Machine, Sheet

DRIVER = "dra.nvme"
SIZE = "dra.nvme/size"
IN_USE = "dra.nvme/inUse"


class Disk(NamedTuple):
    """A disk; empty fields are unknown."""

    name: str
    size: Quantity
    type: str = "nvme"  # the transport: nvme, virtio, scsi, …
    address: str = ""  # on PCI, or of its controller there
    model: str = ""
    serial: str = ""
    firmware: str = ""
    transport: str = ""
    is_rotational: bool | None = None
    is_read_only: bool | None = None
    is_in_use: bool | None = None  # by the machine itself: mounted, swap, part of a volume


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield all disks."""
    found = enumerate(machine.devices(Nvme))
    disks = (_disk(machine, index, *each) for index, each in found)
    yield Sheet(tuple(disk_device(machine.place, disk) for disk in disks))


def disk_device(place: DeviceLocation, disk: Disk) -> Device:
    """Return a disk; one that the machine uses is tainted, so that a claim must tolerate that."""
    texts = {
        "dra.nvme/model": disk.model.replace(" ", "_"),
        "dra.nvme/serial": disk.serial,
        "dra.nvme/firmwareRev": disk.firmware,
        "dra.nvme/transport": disk.transport,
    }
    flags = {
        "dra.nvme/rotational": disk.is_rotational,
        "dra.nvme/readOnly": disk.is_read_only,
        IN_USE: disk.is_in_use,
    }
    taint = DeviceTaint(key=IN_USE, value="true", effect="NoSchedule")
    return Device(
        name=disk.name,
        attributes={
            **_place(place, disk.address),
            **{name: text(tame(value)) for name, value in texts.items() if tame(value)},
            **{name: flag(value) for name, value in flags.items() if value is not None},
            "dra.nvme/type": text(disk.type),
        },
        capacity={SIZE: DeviceCapacity(value=disk.size)},
        taints=(taint,) if disk.is_in_use else (),
    )


def _place(place: DeviceLocation, address: str) -> Attributes:
    if not address:
        return {}
    node = place.scalar_numa_node(address)
    own = {} if node is None else {"dra.nvme/numaNode": whole(node)}
    return {**place.pci_attributes(address), **own}


def _disk(machine: Machine, index: int, device: PciDevice, model: Nvme) -> Disk:
    return Disk(
        name=f"nvme{index}",
        size=Quantity.parse(model.size),
        address=device.address,
        model=model.product,
        serial=machine.digest(device.address)[:14].upper(),
        transport="pcie",
    )
