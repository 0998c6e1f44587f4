"""dra.net (kubernetes-sigs/dranet): network interfaces as a whole.

Interfaces whose virtual functions are given away belong to the SR-IOV driver.
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.resource.v1 import Device
from mooring.hardware.attributes import PCI_BUS_ID
from mooring.hardware.board import PciDevice
from mooring.hardware.machine import Attributes, Machine, Sheet, flag, text, whole
from mooring.hardware.models import Nic
from mooring.hardware.numbers import PciAddress

DRIVER = "dra.net"


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Give the interfaces that are given away as a whole."""
    gives_virtual = machine.board.options.sriov
    yield Sheet(
        tuple(
            _device(machine, index, device, model)
            for index, (device, model) in enumerate(machine.devices(Nic))
            if not (gives_virtual and device.virtual_functions)
        )
    )


def _device(machine: Machine, index: int, device: PciDevice, model: Nic) -> Device:
    standard = machine.pci_attributes(device.address)
    standard.pop(PCI_BUS_ID, None)  # the driver has dra.net/pciAddress for it
    node = machine.scalar_numa_node(device.address)
    return Device(
        name=f"pci-{device.address.replace(':', '-').replace('.', '-')}",
        attributes={
            **standard,
            **({} if node is None else {"dra.net/numaNode": whole(node)}),
            "dra.net/ifName": text(interface_name(device.address, model)),
            "dra.net/pciAddress": text(device.address),
            "dra.net/pciVendor": text(model.vendor),
            "dra.net/pciDevice": text(model.product),
            "dra.net/mac": text(_mac(machine, device)),
            "dra.net/mtu": whole(model.mtu),
            "dra.net/encapsulation": text(model.link),
            "dra.net/state": text("up"),
            "dra.net/type": text("device"),
            "dra.net/virtual": flag(False),
            "dra.net/ebpf": flag(False),
            **_virtual_functions(device),
            **_rdma(index, model),
        },
    )


def _virtual_functions(device: PciDevice) -> Attributes:
    if not device.virtual_functions:
        return {"dra.net/sriov": flag(False)}
    return {"dra.net/sriov": flag(True), "dra.net/sriovVfs": whole(0)}


def _rdma(index: int, model: Nic) -> Attributes:
    device = {"dra.net/rdmaDevice": text(f"rdma{index}")} if model.rdma else {}
    return {"dra.net/rdma": flag(model.rdma), **device}


def interface_name(address: str, model: Nic) -> str:
    """Return the name that udev gives the interface by its place on PCI."""
    place = PciAddress.parse(address)
    kind = "ib" if model.link == "infiniband" else "en"
    domain = f"P{place.domain}" if place.domain else ""
    function = f"f{place.function}" if place.function else ""
    return f"{kind}{domain}p{place.bus}s{place.slot}{function}"


def _mac(machine: Machine, device: PciDevice) -> str:
    digits = machine.digest(device.address)
    # The second bit of the first byte says that nobody assigned it.
    return ":".join(("02", *(digits[index : index + 2] for index in range(0, 10, 2))))
