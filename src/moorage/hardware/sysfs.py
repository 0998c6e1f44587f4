"""The sysfs of a board: what drivers and the kernel's tools read of NUMA, PCI, NICs and disks.

devices/system/node/node0/   cpulist, distance, meminfo
devices/system/cpu/cpu0/     topology/physical_package_id …, a link to its node
devices/pci0000:00/…         nested folders for the bridges between the root and a device
bus/pci/devices/             a link to every device by its address
class/net/enp5s0             a link to …/0000:05:00.0/net/enp5s0: address, mtu, type, operstate
class/infiniband/rdma0       its RDMA device, used through class/infiniband_verbs/uverbs0
class/nvme/nvme0             a controller: model, serial, transport; below it nvme0n1
class/block/nvme0n1          a namespace: size, in sectors
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

from moorage.api.quantity import Quantity
from moorage.hardware.board import (
    PCI_CLASSES,
    Board,
    Model,
    Nic,
    NumaNode,
    Nvme,
    PciDevice,
    Profile,
)
from moorage.hardware.numbers import PciAddress, format_cpu_list
from moorage.hardware.sysfs_tree import Link, MemoryEntries, SysfsTree

LINK_TYPES = {"ether": 1, "infiniband": 32}  # ARPHRD_…
SECTOR_BYTES = 512
NVME_MAJOR = 259

Pairs = Iterator[tuple[str, str | Link]]
BRIDGE_CLASS = "0x060400"

Entries = dict[str, str | Link]


def sysfs_tree(profile: Profile) -> SysfsTree:
    """Return the sysfs of a machine with the profile's board."""
    return SysfsTree(MemoryEntries(sysfs_entries(profile)))


def sysfs_entries(profile: Profile) -> Entries:
    """Return the files and links of the sysfs."""
    entries: Entries = {}
    for node in profile.board.numa.nodes:
        entries.update(_node_entries(profile.board, node))
    ids = [node.id for node in profile.board.numa.nodes]
    entries["devices/system/node/online"] = f"{format_cpu_list(ids)}\n"
    cpus = [cpu for node in profile.board.numa.nodes for cpu in node.cpu_ids]
    entries["devices/system/cpu/online"] = f"{format_cpu_list(cpus)}\n"
    counts: Counter[type[Model]] = Counter()
    for device, model in profile.devices():
        entries.update(_device_entries(profile.board, device, model, counts[type(model)]))
        counts[type(model)] += 1
    return entries


# --- NUMA nodes and CPUs ------------------------------------------------------------------


def _node_entries(board: Board, node: NumaNode) -> Entries:
    folder = f"devices/system/node/node{node.id}"
    distances = " ".join(map(str, board.numa.distances[node.id]))
    kilobytes = Quantity.parse(node.memory).value // 1024
    entries: Entries = {
        f"{folder}/cpulist": f"{format_cpu_list(node.cpu_ids)}\n",
        f"{folder}/distance": f"{distances}\n",
        f"{folder}/meminfo": f"Node {node.id} MemTotal: {kilobytes} kB\n",
    }
    for cpu, siblings in _cores(node, board.cpu.threads_per_core):
        # The id of a core is its first CPU, which is unique on every board.
        place = f"devices/system/cpu/cpu{cpu}"
        entries[f"{place}/node{node.id}"] = Link(f"../../node/node{node.id}")
        entries[f"{place}/topology/physical_package_id"] = f"{node.socket}\n"
        entries[f"{place}/topology/core_id"] = f"{min(siblings)}\n"
        entries[f"{place}/topology/thread_siblings_list"] = f"{format_cpu_list(siblings)}\n"
    return entries


def _cores(node: NumaNode, threads: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each CPU with those of its core: Linux numbers all first threads before the second."""
    cpus = sorted(node.cpu_ids)
    cores = len(cpus) // threads
    for index, cpu in enumerate(cpus):
        yield cpu, tuple(cpus[index % cores :: cores])


# --- PCI ----------------------------------------------------------------------------------


def _device_entries(
    board: Board, device: PciDevice, model: Model, index: int
) -> Iterator[tuple[str, str | Link]]:
    node = board.pcie.roots[device.root]
    folder = f"devices/{device.root}"
    for bridge in device.bridges:
        folder = f"{folder}/{bridge}"
        yield from _function(folder, bridge, node)
        yield f"{folder}/class", f"{BRIDGE_CLASS}\n"
    parent, folder = folder, f"{folder}/{device.address}"
    yield from _function(folder, device.address, node)
    yield from _identity(folder, model, model.device_id)
    match model:
        case Nic():
            yield from nic_entries(folder, index, device, model)
        case Nvme():
            yield from nvme_entries(folder, index, device, model)
    if isinstance(model, Nic) and device.virtual_functions:
        yield f"{folder}/sriov_totalvfs", f"{device.virtual_functions}\n"
        count = device.virtual_functions if board.options.sriov else 0
        yield f"{folder}/sriov_numvfs", f"{count}\n"
        if count:
            yield from _virtual_functions(parent, device, model, node)


def _virtual_functions(
    parent: str, device: PciDevice, model: Nic, node: int
) -> Iterator[tuple[str, str | Link]]:
    for index, address in enumerate(map(str, device.virtual_addresses())):
        yield from _function(f"{parent}/{address}", address, node)
        yield from _identity(f"{parent}/{address}", model, model.virtual_device_id)
        yield f"{parent}/{address}/physfn", Link(f"../{device.address}")
        yield f"{parent}/{device.address}/virtfn{index}", Link(f"../{address}")


def _function(folder: str, address: str, node: int) -> Iterator[tuple[str, str | Link]]:
    yield f"{folder}/numa_node", f"{node}\n"
    yield f"bus/pci/devices/{address}", Link(f"../../../{folder}")


def _identity(folder: str, model: Model, device_id: str) -> Iterator[tuple[str, str]]:
    yield f"{folder}/class", f"{PCI_CLASSES[type(model)]}\n"
    yield f"{folder}/vendor", f"{model.vendor_id}\n"
    yield f"{folder}/device", f"{device_id or model.device_id}\n"


# --- classes --------------------------------------------------------------------------------------


def interface_name(address: str, model: Nic) -> str:
    """Return udev's name of an interface, from its PCI address."""
    place = PciAddress.parse(address)
    kind = "ib" if model.link == "infiniband" else "en"
    domain = f"P{place.domain}" if place.domain else ""
    function = f"f{place.function}" if place.function else ""
    return f"{kind}{domain}p{place.bus}s{place.slot}{function}"


def nic_entries(folder: str, index: int, device: PciDevice, model: Nic) -> Pairs:
    """Yield the interface of a NIC, and its RDMA device."""
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
    """Yield a controller with one namespace."""
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
