"""dra.net (kubernetes-sigs/dranet): whole network interfaces.

Interfaces whose virtual functions are published belong to the SR-IOV driver.
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Iterator
from typing import NamedTuple

from moorage.api.names import dns1123_label
from moorage.api.resource.v1 import Device
from moorage.hardware.attributes import Attributes, DeviceLocation, flag, tame, text, whole
from moorage.hardware.board import Nic, PciDevice
from moorage.hardware.machine import Machine, Sheet
from moorage.hardware.sysfs import interface_name

DRIVER = "dra.net"
INTERFACE = "dra.net/ifName"
RDMA_DEVICE = "dra.net/rdmaDevice"


class Interface(NamedTuple):
    """A network interface, or an RDMA device without one; empty fields are unknown."""

    name: str = ""
    address: str = ""  # on PCI; virtual ones have none
    vendor: str = ""
    product: str = ""
    mac: str = ""
    mtu: int | None = None
    link: str = ""  # ether, infiniband, …
    state: str = ""
    sort: str = "device"  # the kernel's type: device, bridge, veth, …
    is_virtual: bool = False
    functions: int | None = None  # virtual functions; None: it supports none
    is_function: bool = False  # is itself a virtual function
    rdma_device: str = ""
    has_default_route: bool | None = None  # the machine reaches others through it
    has_programs: bool | None = None  # of eBPF

    @property
    def device_name(self) -> str:
        """The device name: by PCI address, else by its own name."""
        if self.address:
            return f"pci-{self.address.replace(':', '-').replace('.', '-')}"
        if not dns1123_label(self.name):
            return self.name
        return f"net-{b32encode(self.name.encode()).decode().rstrip('=').lower()}"


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield the interfaces that are published whole."""
    gives_virtual = machine.board.options.sriov
    interfaces = (
        _interface(machine, index, device, model)
        for index, (device, model) in enumerate(machine.devices(Nic))
        if not (gives_virtual and device.virtual_functions)
    )
    yield Sheet(tuple(interface_device(machine.place, each) for each in interfaces))


def interface_device(place: DeviceLocation, interface: Interface) -> Device:
    """Return a network interface."""
    node = place.scalar_numa_node(interface.address) if interface.address else None
    texts = {
        INTERFACE: interface.name,
        "dra.net/pciAddress": interface.address,
        "dra.net/pciVendor": interface.vendor,
        "dra.net/pciDevice": interface.product,
        "dra.net/mac": interface.mac,
        "dra.net/encapsulation": interface.link,
        "dra.net/state": interface.state,
        "dra.net/type": interface.sort,
        RDMA_DEVICE: interface.rdma_device,
    }
    flags = {
        "dra.net/virtual": interface.is_virtual,
        "dra.net/rdma": bool(interface.rdma_device),
        "dra.net/ebpf": interface.has_programs,
        "dra.net/defaultRoute": interface.has_default_route,
    }
    numbers = {"dra.net/numaNode": node, "dra.net/mtu": interface.mtu}
    return Device(
        name=interface.device_name,
        attributes={
            **(place.pci_attributes(interface.address) if interface.address else {}),
            **{name: whole(value) for name, value in numbers.items() if value is not None},
            **{name: text(tame(value)) for name, value in texts.items() if tame(value)},
            **{name: flag(value) for name, value in flags.items() if value is not None},
            **_virtual_functions(interface),
        },
    )


def _virtual_functions(interface: Interface) -> Attributes:
    own = {"dra.net/isSriovVf": flag(True)} if interface.is_function else {}
    if interface.functions is None:
        return {"dra.net/sriov": flag(False), **own}
    return {"dra.net/sriov": flag(True), "dra.net/sriovVfs": whole(interface.functions), **own}


def _interface(machine: Machine, index: int, device: PciDevice, model: Nic) -> Interface:
    return Interface(
        name=interface_name(device.address, model),
        address=device.address,
        vendor=model.vendor,
        product=model.product,
        mac=_mac(machine, device),
        mtu=model.mtu,
        link=model.link,
        state="up",
        functions=0 if device.virtual_functions else None,
        rdma_device=f"rdma{index}" if model.rdma else "",
        has_programs=False,
    )


def _mac(machine: Machine, device: PciDevice) -> str:
    digits = machine.digest(device.address)
    # The second bit of the first byte marks a locally administered address.
    return ":".join(("02", *(digits[index : index + 2] for index in range(0, 10, 2))))
