"""dra.net and the SR-IOV driver: interfaces as a whole, and virtual functions of NICs.

A container gets the names of what it has, and the files of RDMA devices:

    MOORING_INTERFACES_<uid>_<request>=enp5s0         interfaces
    MOORING_RDMA_DEVICES_<uid>_<request>=mlx5_0       their RDMA devices
    PCIDEVICE_<uid>_<request>=0000:05:00.2            virtual functions

Interfaces are not moved: a process sees all of the machine's.
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.binding import variable
from mooring.api.cdi import ContainerEdits, DeviceNode
from mooring.api.resource.v1 import Device, NetworkDeviceData
from mooring.driver.driver import AllocatedDevice, Claim, ClaimName, Prepared
from mooring.drivers.changes import WatchingDriver
from mooring.drivers.given import gone, listed, of_request
from mooring.drivers.host import Host
from mooring.drivers.interfaces import functions_of, interfaces_of, rdma_files
from mooring.hardware.drivers import dranet, sriov
from mooring.hardware.drivers.dranet import Interface, interface_device
from mooring.hardware.drivers.sriov import VirtualFunction, function_device

INTERFACES = "MOORING_INTERFACES"
RDMA_DEVICES = "MOORING_RDMA_DEVICES"
FUNCTIONS = "PCIDEVICE"


class NetDriver(WatchingDriver):
    """Gives interfaces away as a whole."""

    name = dranet.DRIVER
    subsystems = frozenset({"net", "infiniband", "pci"})

    def __init__(self, host: Host, *, with_sriov: bool = True) -> None:
        self._host = host
        self._with_sriov = with_sriov

    def devices(self) -> list[Device]:
        """Return the interfaces that there are now."""
        return [interface_device(self._host.place, each) for each in self._found().values()]

    def prepare(self, claim: Claim) -> Iterator[Prepared]:
        """Tell containers which interfaces are theirs."""
        found = self._found()
        for device in claim.devices:
            if device.name not in found:
                raise gone(device)
        for device in claim.devices:
            fellows = [found[each.name] for each in of_request(claim, device.request)]
            yield self._prepared(claim, device, found[device.name], fellows)

    def unprepare(self, claim: ClaimName) -> None:
        """Do nothing: interfaces stay where they are."""

    def _prepared(
        self, claim: Claim, device: AllocatedDevice, own: Interface, fellows: list[Interface]
    ) -> Prepared:
        env = []
        for prefix, values in (
            (INTERFACES, listed(each.name for each in fellows if each.name)),
            (RDMA_DEVICES, listed(each.rdma_device for each in fellows if each.rdma_device)),
        ):
            if values:
                env.append(f"{variable(prefix, claim.uid, device.request)}={values}")
        files = rdma_files(self._host, own.rdma_device) if own.rdma_device else []
        nodes = tuple(DeviceNode(path=path) for path in files)
        data = NetworkDeviceData(interface_name=own.name, hardware_address=own.mac)
        return Prepared(
            device,
            ContainerEdits(env=tuple(env), device_nodes=nodes),
            network_data=data if own.name else None,
        )

    def _found(self) -> dict[str, Interface]:
        found = interfaces_of(self._host, with_sriov=self._with_sriov)
        return {each.device_name: each for each in found}


class SriovDriver(WatchingDriver):
    """Gives virtual functions away."""

    name = sriov.DRIVER
    subsystems = frozenset({"net", "pci"})

    def __init__(self, host: Host) -> None:
        self._host = host

    def devices(self) -> list[Device]:
        """Return the virtual functions that there are now."""
        return [function_device(self._host.place, each) for each in self._found().values()]

    def prepare(self, claim: Claim) -> Iterator[Prepared]:
        """Tell containers which virtual functions are theirs."""
        found = self._found()
        for device in claim.devices:
            if device.name not in found:
                raise gone(device)
        for device in claim.devices:
            fellows = of_request(claim, device.request)
            addresses = listed(found[each.name].address for each in fellows)
            env = (f"{variable(FUNCTIONS, claim.uid, device.request)}={addresses}",)
            yield Prepared(device, ContainerEdits(env=env))

    def unprepare(self, claim: ClaimName) -> None:
        """Do nothing: virtual functions stay where they are."""

    def _found(self) -> dict[str, VirtualFunction]:
        return {each.device_name: each for each in functions_of(self._host)}
