"""dra.net and the SR-IOV driver: whole interfaces, and virtual functions of NICs.

A container gets the names of its devices, and the files of RDMA devices:

    MOORAGE_INTERFACES_<uid>_<request>=enp5s0         interfaces
    MOORAGE_RDMA_DEVICES_<uid>_<request>=mlx5_0       their RDMA devices
    PCIDEVICE_<uid>_<request>=0000:05:00.2            virtual functions

Interfaces are not moved: a process sees all interfaces of the machine. They are read from

class/net/eth0               a link whose target shows its parent: a PCI device, or `virtual`
class/infiniband/mlx5_0      RDMA devices; one below the same PCI device is the interface's
class/infiniband_verbs/…     the files under /dev/infiniband of an RDMA device
bus/pci/devices/ADDRESS/     sriov_numvfs, virtfn0 …, and physfn in a virtual function
proc/net/route, ipv6_route   which interface has the default route
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from moorage.api.cdi import ContainerEdits, DeviceNode
from moorage.api.process_binding import binding_variable
from moorage.api.resource.v1 import Device, NetworkDeviceData
from moorage.driver.driver import AllocatedDevice, Claim, Prepared
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
from moorage.hardware.drivers import dranet, sriov
from moorage.hardware.drivers.dranet import Interface, interface_device
from moorage.hardware.drivers.sriov import VirtualFunction, function_device
from moorage.hardware.sysfs import LINK_TYPES

INTERFACES = "MOORAGE_INTERFACES"
RDMA_DEVICES = "MOORAGE_RDMA_DEVICES"
FUNCTIONS = "PCIDEVICE"
PCI_IDS_PATHS = ("/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids")
PCI_IDS_BYTES_MAX = 16 << 20

_PCI = "bus/pci/devices"
_LOOPBACK = 772  # ARPHRD_LOOPBACK
_LINKS = {number: name for name, number in LINK_TYPES.items()} | {_LOOPBACK: "loopback"}
_FUNCTION = re.compile(r"virtfn([0-9]{1,5})")
_NODE = re.compile(r"[A-Za-z0-9_]{1,32}")
_HEX = re.compile(r"0x[0-9a-f]{4}")
_NETWORK_CLASS = "0x02"
INTERFACES_MAX = 10_000
# The classes of the device files of an RDMA device.
_RDMA_CLASSES = ("infiniband_verbs", "infiniband_mad")


class NetDriver(WatchingDriver):
    """Allocates whole interfaces."""

    name = dranet.DRIVER
    subsystems = frozenset({"net", "infiniband", "pci"})

    def __init__(self, host: Host, *, with_sriov: bool = True) -> None:
        super().__init__(host)
        self._with_sriov = with_sriov

    def devices(self) -> list[Device]:
        """Return the current interfaces."""
        return [interface_device(self._host.place, each) for each in self._found().values()]

    def prepare(self, claim: Claim) -> Iterator[Prepared]:
        """Set the environment of containers to their interfaces."""
        found = self._found()
        check_present(claim, found)
        for device in claim.devices:
            fellows = [found[each.name] for each in devices_of_request(claim, device.request)]
            yield self._prepared(claim, device, found[device.name], fellows)

    def _prepared(
        self, claim: Claim, device: AllocatedDevice, own: Interface, fellows: list[Interface]
    ) -> Prepared:
        env = []
        for prefix, values in (
            (INTERFACES, join_unique(each.name for each in fellows if each.name)),
            (RDMA_DEVICES, join_unique(each.rdma_device for each in fellows if each.rdma_device)),
        ):
            if values:
                env.append(f"{binding_variable(prefix, claim.uid, device.request)}={values}")
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
    """Allocates virtual functions."""

    name = sriov.DRIVER
    subsystems = frozenset({"net", "pci"})

    def devices(self) -> list[Device]:
        """Return the current virtual functions."""
        return [function_device(self._host.place, each) for each in self._found().values()]

    def prepare(self, claim: Claim) -> Iterator[Prepared]:
        """Set the environment of containers to their virtual functions."""
        found = self._found()
        check_present(claim, found)
        for device in claim.devices:
            fellows = devices_of_request(claim, device.request)
            addresses = join_unique(found[each.name].address for each in fellows)
            env = (f"{binding_variable(FUNCTIONS, claim.uid, device.request)}={addresses}",)
            yield Prepared(device, ContainerEdits(env=env))

    def _found(self) -> dict[str, VirtualFunction]:
        return {each.device_name: each for each in functions_of(self._host)}


# --- sysfs ----------------------------------------------------------------------------------------


def interfaces_of(host: Host, *, with_sriov: bool = True) -> Iterator[Interface]:
    """Yield all interfaces except loopbacks, then RDMA devices without one.

    With `with_sriov`, NICs with virtual functions, and those, are left out: they belong to the
    SR-IOV driver.
    """
    rdma = _rdma(host)
    uplinks = _uplinks(host)
    met: set[str] = set()
    for name in folder_names(host.sys, "class/net")[:INTERFACES_MAX]:
        found = _interface(host, name, rdma)
        if found is None:
            continue
        found = found._replace(has_default_route=name in uplinks)
        # Two ports of a NIC can share an address; the second is identified by its name.
        found = found._replace(address="") if found.address in met else found
        met.add(found.address)
        if not with_sriov or not (found.is_function or found.functions):
            yield found
    for address, device in sorted(rdma.items()):
        if address not in met and not (with_sriov and _has_functions(host, address)):
            yield _of_pci(host, address, Interface(rdma_device=device, link="infiniband"))


def functions_of(host: Host) -> Iterator[VirtualFunction]:
    """Yield the virtual functions of all NICs."""
    rdma = _rdma(host)
    for parent in folder_names(host.sys, _PCI):
        if pci_address([parent]) and _is_network(host, parent):
            yield from _functions(host, parent, rdma)


def rdma_files(host: Host, device: str) -> list[str]:
    """Return the files under /dev that a program needs to use an RDMA device."""
    found = [
        f"/dev/infiniband/{node}"
        for class_ in _RDMA_CLASSES
        for node in folder_names(host.sys, f"class/{class_}")
        if _NODE.fullmatch(node) and read_text(host.sys, f"class/{class_}/{node}/ibdev") == device
    ]
    return [*found, "/dev/infiniband/rdma_cm"] if found else []


# --- interfaces ---------------------------------------------------------------------------


def _interface(host: Host, name: str, rdma: dict[str, str]) -> Interface | None:
    """Return an interface; None for a loopback, a file, or one that just disappeared."""
    folder = f"class/net/{name}"
    steps = link_steps(host.sys, folder)
    type_ = read_natural(host.sys, f"{folder}/type")
    if not steps or type_ is None or type_ == _LOOPBACK:
        return None
    address = pci_address(steps)
    found = Interface(
        name=name,
        mac=read_text(host.sys, f"{folder}/address") or "",
        mtu=read_natural(host.sys, f"{folder}/mtu"),
        link=_LINKS.get(type_, f"type-{type_}"),
        state=read_text(host.sys, f"{folder}/operstate") or "",
        sort=_sort(host, folder),
        is_virtual="virtual" in steps[:2],
        rdma_device=rdma.get(address, ""),
    )
    return _of_pci(host, address, found) if address else found


def _of_pci(host: Host, address: str, interface: Interface) -> Interface:
    folder = f"{_PCI}/{address}"
    vendor, product = _ids(host, address)
    vendor_name, product_name = pci_names(vendor, product) if vendor else ("", "")
    total = read_natural(host.sys, f"{folder}/sriov_totalvfs")
    return interface._replace(
        address=address,
        vendor=vendor_name,
        product=product_name,
        functions=(read_natural(host.sys, f"{folder}/sriov_numvfs") or 0) if total else None,
        is_function="physfn" in folder_names(host.sys, folder),
    )


def _sort(host: Host, folder: str) -> str:
    """Return the type of an interface, which the kernel reports for virtual ones."""
    for line in (read_text(host.sys, f"{folder}/uevent") or "").splitlines():
        if line.startswith("DEVTYPE="):
            return line.removeprefix("DEVTYPE=")
    return "device"


def _uplinks(host: Host) -> frozenset[str]:
    """Return the interfaces with a default route.

    route = interface destination …;  ipv6_route = destination length … interface
    """
    fourth = (read_text(host.proc, "net/route") or "").splitlines()
    sixth = (read_text(host.proc, "net/ipv6_route", LARGE_FILE_BYTES_MAX) or "").splitlines()
    rows = [row for row in map(str.split, fourth) if row[1:2] == ["00000000"]]
    found = {row[0] for row in rows}
    found.update(row[-1] for row in map(str.split, sixth) if row[:2] == ["0" * 32, "00"])
    return frozenset(found)


def _has_functions(host: Host, address: str) -> bool:
    return bool(read_natural(host.sys, f"{_PCI}/{address}/sriov_numvfs"))


def _rdma(host: Host) -> dict[str, str]:
    """Return the RDMA devices by PCI address; of two at one address, the first."""
    found: dict[str, str] = {}
    for name in folder_names(host.sys, "class/infiniband"):
        address = pci_address(link_steps(host.sys, f"class/infiniband/{name}"))
        if address:
            found.setdefault(address, name)
    return found


# --- virtual functions --------------------------------------------------------------------


def _functions(host: Host, parent: str, rdma: dict[str, str]) -> Iterator[VirtualFunction]:
    folder = f"{_PCI}/{parent}"
    entries = (_FUNCTION.fullmatch(each) for each in folder_names(host.sys, folder))
    matches = sorted((int(each[1]), each[0]) for each in entries if each is not None)
    if not matches:
        return
    vendor, parent_device = _ids(host, parent)
    interface = next(iter(folder_names(host.sys, f"{folder}/net")), "")
    type_ = read_natural(host.sys, f"{folder}/net/{interface}/type") if interface else None
    for number, entry in matches:
        # Only the last step of the link is the device.
        address = _end(host, f"{folder}/{entry}")
        device = _ids(host, address)[1] if address else ""
        if device:
            yield VirtualFunction(
                number=number,
                address=address,
                parent=parent,
                parent_name=interface,
                vendor_id=vendor,
                device_id=device,
                parent_device_id=parent_device,
                link=_LINKS.get(type_ or 1, "ether"),
                has_rdma=parent in rdma or address in rdma,
            )


def _end(host: Host, path: str) -> str:
    """Return the address of the PCI device that a link leads to."""
    folder, _, name = path.rpartition("/")
    steps = link_steps(host.sys, folder)
    real = "/".join(steps) if steps else folder
    return pci_address(link_steps(host.sys, f"{real}/{name}")[-1:])


def _ids(host: Host, address: str) -> tuple[str, str]:
    """Return the ids of vendor and device; empty if they cannot be read."""
    found = [read_text(host.sys, f"{_PCI}/{address}/{name}") or "" for name in ("vendor", "device")]
    vendor, device = (each if _HEX.fullmatch(each) else "" for each in found)
    return vendor, device


def _is_network(host: Host, address: str) -> bool:
    return (read_text(host.sys, f"{_PCI}/{address}/class") or "").startswith(_NETWORK_CLASS)


# --- names ----------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def pci_names(vendor_id: str, device_id: str) -> tuple[str, str]:
    """Return the names of a vendor and its device, or the ids if they have none.

    line = vendor "  " name  |  TAB device "  " name  |  TAB TAB …
    """
    vendor, device = vendor_id, device_id
    is_ours = False
    for line in _pci_ids_lines():
        if line[:1] not in ("\t", "#", ""):
            if is_ours:
                break
            is_ours = line.startswith(f"{vendor_id.removeprefix('0x')}  ")
            vendor = line[6:] if is_ours else vendor
        elif is_ours and line.startswith(f"\t{device_id.removeprefix('0x')}  "):
            device = line[7:]
    return vendor, device


def _pci_ids_lines() -> list[str]:
    for path in PCI_IDS_PATHS:
        try:
            with Path(path).open("rb") as file:
                return file.read(PCI_IDS_BYTES_MAX).decode(errors="replace").splitlines()
        except OSError:
            continue
    return []
