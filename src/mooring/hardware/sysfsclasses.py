"""What sysfs shows of NICs and disks by class: their interfaces, RDMA devices and namespaces.

class/net/enp5s0              a link to …/0000:05:00.0/net/enp5s0: address, mtu, type, operstate
class/infiniband/rdma0        its RDMA device; class/infiniband_verbs/uverbs0 is the way to it
class/nvme/nvme0              a controller: model, serial, transport; below it nvme0n1
class/block/nvme0n1           a namespace: size, in sectors
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from mooring.api.quantity import Quantity
from mooring.hardware.board import PciDevice
from mooring.hardware.models import Nic, Nvme
from mooring.hardware.numbers import PciAddress
from mooring.hardware.tree import Link

LINK_TYPES = {"ether": 1, "infiniband": 32}  # ARPHRD_…
SECTOR_BYTES = 512
NVME_MAJOR = 259

Pairs = Iterator[tuple[str, str | Link]]


def interface_name(address: str, model: Nic) -> str:
    """Return the name that udev gives the interface by its place on PCI."""
    place = PciAddress.parse(address)
    kind = "ib" if model.link == "infiniband" else "en"
    domain = f"P{place.domain}" if place.domain else ""
    function = f"f{place.function}" if place.function else ""
    return f"{kind}{domain}p{place.bus}s{place.slot}{function}"


def nic_entries(folder: str, index: int, device: PciDevice, model: Nic) -> Pairs:
    """Give the interface of a NIC, and its RDMA device."""
    name = interface_name(device.address, model)
    place = f"{folder}/net/{name}"
    yield f"class/net/{name}", Link(f"../../{place}")
    yield f"{place}/address", f"{_mac(device.address)}\n"
    yield f"{place}/mtu", f"{model.mtu}\n"
    yield f"{place}/type", f"{LINK_TYPES[model.link]}\n"
    yield f"{place}/operstate", "up\n"
    if model.rdma:
        yield from _rdma_entries(folder, index)


def nvme_entries(folder: str, index: int, device: PciDevice, model: Nvme) -> Pairs:
    """Give a controller with one namespace."""
    name = f"nvme{index}"
    place = f"{folder}/nvme/{name}"
    yield f"class/nvme/{name}", Link(f"../../{place}")
    yield f"{place}/model", f"{model.product:40}\n"
    yield f"{place}/serial", f"{_digits(device.address)[:14].upper():20}\n"
    yield f"{place}/firmware_rev", "1.0\n"
    yield f"{place}/transport", "pcie\n"
    namespace = f"{place}/{name}n1"
    yield f"class/block/{name}n1", Link(f"../../{namespace}")
    yield f"{namespace}/size", f"{Quantity.parse(model.size).value // SECTOR_BYTES}\n"
    yield f"{namespace}/dev", f"{NVME_MAJOR}:{index}\n"
    yield f"{namespace}/queue/rotational", "0\n"
    yield f"{namespace}/ro", "0\n"


def _rdma_entries(folder: str, index: int) -> Pairs:
    yield f"class/infiniband/rdma{index}", Link(f"../../{folder}/infiniband/rdma{index}")
    yield f"{folder}/infiniband/rdma{index}/node_type", "1: CA\n"
    place = f"{folder}/infiniband_verbs/uverbs{index}"
    yield f"class/infiniband_verbs/uverbs{index}", Link(f"../../{place}")
    yield f"{place}/ibdev", f"rdma{index}\n"


def _mac(address: str) -> str:
    digits = _digits(address)
    return ":".join(("02", *(digits[index : index + 2] for index in range(0, 10, 2))))


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
