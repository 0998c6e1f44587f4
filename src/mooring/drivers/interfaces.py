"""The network interfaces of a machine, from sysfs, and the virtual functions of its NICs.

class/net/eth0               a link that shows what it is below: a device on PCI, or `virtual`
class/infiniband/mlx5_0      RDMA devices; one below the same device on PCI is the interface's
class/infiniband_verbs/…     the files under /dev/infiniband of an RDMA device
bus/pci/devices/ADDRESS/     sriov_numvfs, virtfn0 …, and physfn in a virtual function
proc/net/route, ipv6_route   which interface leads to everywhere else
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mooring.drivers.host import LARGE_FILE_BYTES_MAX, Host, names, natural, pci_address, way, words
from mooring.drivers.pciids import names_of
from mooring.hardware.drivers.dranet import Interface
from mooring.hardware.drivers.sriov import VirtualFunction
from mooring.hardware.sysfsclasses import LINK_TYPES

_PCI = "bus/pci/devices"
_LOOPBACK = 772  # ARPHRD_LOOPBACK
_LINKS = {number: name for name, number in LINK_TYPES.items()} | {_LOOPBACK: "loopback"}
_FUNCTION = re.compile(r"virtfn([0-9]{1,5})")
_NODE = re.compile(r"[A-Za-z0-9_]{1,32}")
_HEX = re.compile(r"0x[0-9a-f]{4}")
_NETWORK_CLASS = "0x02"
INTERFACES_MAX = 10_000
# The classes of the files that lead to an RDMA device.
_RDMA_CLASSES = ("infiniband_verbs", "infiniband_mad")


def interfaces_of(host: Host, *, with_sriov: bool = True) -> Iterator[Interface]:
    """Give all interfaces but loopbacks, then RDMA devices that have none.

    Unless it is said otherwise, NICs that have virtual functions, and those, are left out: they
    are the SR-IOV driver's.
    """
    rdma = _rdma(host)
    uplinks = _uplinks(host)
    met: set[str] = set()
    for name in names(host.sys, "class/net")[:INTERFACES_MAX]:
        found = _interface(host, name, rdma)
        if found is None:
            continue
        found = found._replace(has_default_route=name in uplinks)
        # Two ports of a NIC can share an address; the second goes by its name.
        found = found._replace(address="") if found.address in met else found
        met.add(found.address)
        if not with_sriov or not (found.is_function or found.functions):
            yield found
    for address, device in sorted(rdma.items()):
        if address not in met and not (with_sriov and _has_functions(host, address)):
            yield _of_pci(host, address, Interface(rdma_device=device, link="infiniband"))


def functions_of(host: Host) -> Iterator[VirtualFunction]:
    """Give the virtual functions of all NICs."""
    rdma = _rdma(host)
    for parent in names(host.sys, _PCI):
        if pci_address([parent]) and _is_network(host, parent):
            yield from _functions(host, parent, rdma)


def rdma_files(host: Host, device: str) -> list[str]:
    """Return the files under /dev that a program needs to use an RDMA device."""
    found = [
        f"/dev/infiniband/{node}"
        for class_ in _RDMA_CLASSES
        for node in names(host.sys, f"class/{class_}")
        if _NODE.fullmatch(node) and words(host.sys, f"class/{class_}/{node}/ibdev") == device
    ]
    return [*found, "/dev/infiniband/rdma_cm"] if found else []


# --- interfaces ---------------------------------------------------------------------------


def _interface(host: Host, name: str, rdma: dict[str, str]) -> Interface | None:
    """Return an interface; None for a loopback, a file, and one that has just gone."""
    folder = f"class/net/{name}"
    steps = way(host.sys, folder)
    type_ = natural(host.sys, f"{folder}/type")
    if not steps or type_ is None or type_ == _LOOPBACK:
        return None
    address = pci_address(steps)
    found = Interface(
        name=name,
        mac=words(host.sys, f"{folder}/address") or "",
        mtu=natural(host.sys, f"{folder}/mtu"),
        link=_LINKS.get(type_, f"type-{type_}"),
        state=words(host.sys, f"{folder}/operstate") or "",
        sort=_sort(host, folder),
        is_virtual="virtual" in steps[:2],
        rdma_device=rdma.get(address, ""),
    )
    return _of_pci(host, address, found) if address else found


def _of_pci(host: Host, address: str, interface: Interface) -> Interface:
    folder = f"{_PCI}/{address}"
    vendor, product = _ids(host, address)
    vendor_name, product_name = names_of(vendor, product) if vendor else ("", "")
    total = natural(host.sys, f"{folder}/sriov_totalvfs")
    return interface._replace(
        address=address,
        vendor=vendor_name,
        product=product_name,
        functions=(natural(host.sys, f"{folder}/sriov_numvfs") or 0) if total else None,
        is_function="physfn" in names(host.sys, folder),
    )


def _sort(host: Host, folder: str) -> str:
    """Return what an interface is: the kernel says so of those that are made up."""
    for line in (words(host.sys, f"{folder}/uevent") or "").splitlines():
        if line.startswith("DEVTYPE="):
            return line.removeprefix("DEVTYPE=")
    return "device"


def _uplinks(host: Host) -> frozenset[str]:
    """Return the interfaces that have a route to everywhere.

    route = interface destination …;  ipv6_route = destination length … interface
    """
    fourth = (words(host.proc, "net/route") or "").splitlines()
    sixth = (words(host.proc, "net/ipv6_route", LARGE_FILE_BYTES_MAX) or "").splitlines()
    rows = [row for row in map(str.split, fourth) if row[1:2] == ["00000000"]]
    found = {row[0] for row in rows}
    found.update(row[-1] for row in map(str.split, sixth) if row[:2] == ["0" * 32, "00"])
    return frozenset(found)


def _has_functions(host: Host, address: str) -> bool:
    return bool(natural(host.sys, f"{_PCI}/{address}/sriov_numvfs"))


def _rdma(host: Host) -> dict[str, str]:
    """Return the RDMA devices by their places on PCI; of two at one place, the first."""
    found: dict[str, str] = {}
    for name in names(host.sys, "class/infiniband"):
        address = pci_address(way(host.sys, f"class/infiniband/{name}"))
        if address:
            found.setdefault(address, name)
    return found


# --- virtual functions --------------------------------------------------------------------


def _functions(host: Host, parent: str, rdma: dict[str, str]) -> Iterator[VirtualFunction]:
    folder = f"{_PCI}/{parent}"
    entries = (_FUNCTION.fullmatch(each) for each in names(host.sys, folder))
    matches = sorted((int(each[1]), each[0]) for each in entries if each is not None)
    if not matches:
        return
    vendor, parent_device = _ids(host, parent)
    interface = next(iter(names(host.sys, f"{folder}/net")), "")
    type_ = natural(host.sys, f"{folder}/net/{interface}/type") if interface else None
    for number, entry in matches:
        # The link is beside folders, so only its end says which device it is.
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
    """Return the address of a device on PCI that a link leads to."""
    folder, _, name = path.rpartition("/")
    steps = way(host.sys, folder)
    real = "/".join(steps) if steps else folder
    return pci_address(way(host.sys, f"{real}/{name}")[-1:])


def _ids(host: Host, address: str) -> tuple[str, str]:
    """Return the ids of vendor and device; empty if they cannot be read."""
    found = [words(host.sys, f"{_PCI}/{address}/{name}") or "" for name in ("vendor", "device")]
    vendor, device = (each if _HEX.fullmatch(each) else "" for each in found)
    return vendor, device


def _is_network(host: Host, address: str) -> bool:
    return (words(host.sys, f"{_PCI}/{address}/class") or "").startswith(_NETWORK_CLASS)
