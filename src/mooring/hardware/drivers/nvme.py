"""dra.nvme (johnahull/dra-driver-nvme): disks on PCI."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.resource.v1 import Device
from mooring.hardware.board import PciDevice
from mooring.hardware.machine import Machine, Sheet, amount, text
from mooring.hardware.models import Nvme

DRIVER = "dra.nvme"


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Give all disks."""
    found = enumerate(machine.devices(Nvme))
    yield Sheet(tuple(_device(machine, index, *each) for index, each in found))


def _device(machine: Machine, index: int, device: PciDevice, model: Nvme) -> Device:
    return Device(
        name=f"nvme{index}",
        attributes={
            **machine.pci_attributes(device.address),
            "dra.nvme/model": text(model.product.replace(" ", "_")),
            "dra.nvme/serial": text(machine.digest(device.address)[:14].upper()),
            "dra.nvme/transport": text("pcie"),
        },
        capacity={"dra.nvme/size": amount(model.size)},
    )
