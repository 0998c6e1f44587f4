"""sriovnetwork.k8snetworkplumbingwg.io (dra-driver-sriov): virtual functions of NICs."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.resource.v1 import Device
from mooring.hardware.board import PciDevice
from mooring.hardware.drivers.dranet import interface_name
from mooring.hardware.machine import Machine, Sheet, flag, text, whole
from mooring.hardware.models import Nic

DRIVER = "sriovnetwork.k8snetworkplumbingwg.io"
LINKS = {"ether": "ethernet", "infiniband": "infiniband"}


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Give the virtual functions of all interfaces that have some."""
    if machine.board.options.sriov:
        yield Sheet(tuple(_devices(machine)))


def _devices(machine: Machine) -> Iterator[Device]:
    for device, model in machine.devices(Nic):
        for index, address in enumerate(map(str, device.virtual_addresses())):
            yield _device(machine, device, model, index, address)


def _device(machine: Machine, device: PciDevice, model: Nic, index: int, address: str) -> Device:
    node = machine.scalar_numa_node(address)
    return Device(
        name=address.replace(":", "-").replace(".", "-"),
        attributes={
            **machine.pci_attributes(address),
            **({} if node is None else {"dra.net/numaNode": whole(node)}),
            "k8s.cni.cncf.io/deviceID": text(address),
            f"{DRIVER}/pciAddress": text(address),
            f"{DRIVER}/pfPciAddress": text(device.address),
            f"{DRIVER}/PFName": text(interface_name(device.address, model)),
            f"{DRIVER}/EswitchMode": text("legacy"),
            f"{DRIVER}/vendor": text(model.vendor_id.removeprefix("0x")),
            f"{DRIVER}/deviceID": text(model.virtual_device_id.removeprefix("0x")),
            f"{DRIVER}/pfDeviceID": text(model.device_id.removeprefix("0x")),
            f"{DRIVER}/vfID": whole(index),
            f"{DRIVER}/linkType": text(LINKS[model.link]),
            f"{DRIVER}/rdmaCapable": flag(model.rdma),
        },
    )
