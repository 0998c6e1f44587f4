"""sriovnetwork.k8snetworkplumbingwg.io (dra-driver-sriov): virtual functions of NICs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moorage.api.resource.v1 import Device
from moorage.hardware.attributes import DeviceLocation, flag, tame, text, whole
from moorage.hardware.board import Nic
from moorage.hardware.machine import Machine, Sheet
from moorage.hardware.sysfs import interface_name

DRIVER = "sriovnetwork.k8snetworkplumbingwg.io"
LINKS = {"ether": "ethernet", "infiniband": "infiniband"}


class VirtualFunction(NamedTuple):
    """A part of a NIC that is a device of its own on PCI."""

    number: int
    address: str
    parent: str  # address of the NIC
    parent_name: str  # its interface
    vendor_id: str  # all three with 0x
    device_id: str
    parent_device_id: str
    link: str = "ether"
    has_rdma: bool = False

    @property
    def device_name(self) -> str:
        """The device name, by PCI address."""
        return self.address.replace(":", "-").replace(".", "-")


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield the virtual functions of all interfaces that have some."""
    if machine.board.options.sriov:
        found = _functions(machine)
        yield Sheet(tuple(function_device(machine.place, each) for each in found))


def function_device(place: DeviceLocation, function: VirtualFunction) -> Device:
    """Return a virtual function."""
    node = place.scalar_numa_node(function.address)
    texts = {
        "k8s.cni.cncf.io/deviceID": function.address,
        f"{DRIVER}/pciAddress": function.address,
        f"{DRIVER}/pfPciAddress": function.parent,
        f"{DRIVER}/PFName": function.parent_name,
        f"{DRIVER}/EswitchMode": "legacy",
        f"{DRIVER}/vendor": function.vendor_id.removeprefix("0x"),
        f"{DRIVER}/deviceID": function.device_id.removeprefix("0x"),
        f"{DRIVER}/pfDeviceID": function.parent_device_id.removeprefix("0x"),
        f"{DRIVER}/linkType": LINKS.get(function.link, function.link),
    }
    return Device(
        name=function.device_name,
        attributes={
            **place.pci_attributes(function.address),
            **({} if node is None else {"dra.net/numaNode": whole(node)}),
            **{name: text(tame(value)) for name, value in texts.items() if tame(value)},
            f"{DRIVER}/vfID": whole(function.number),
            f"{DRIVER}/rdmaCapable": flag(function.has_rdma),
        },
    )


def _functions(machine: Machine) -> Iterator[VirtualFunction]:
    for device, model in machine.devices(Nic):
        for index, address in enumerate(map(str, device.virtual_addresses())):
            yield VirtualFunction(
                number=index,
                address=address,
                parent=device.address,
                parent_name=interface_name(device.address, model),
                vendor_id=model.vendor_id,
                device_id=model.virtual_device_id,
                parent_device_id=model.device_id,
                link=model.link,
                has_rdma=model.rdma,
            )
