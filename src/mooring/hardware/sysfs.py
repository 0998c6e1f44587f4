"""The sysfs that a board shows: what drivers and the kernel's tools read of NUMA and PCI.

devices/system/node/node0/   cpulist, distance, meminfo
devices/system/cpu/cpu0/     topology/physical_package_id …, a link to its node
devices/pci0000:00/…         a folder in a folder for every bridge on the way to a device
bus/pci/devices/             a link to every device by its address
class/net, class/nvme, …     links to what devices are used as: see sysfsclasses
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mooring.api.quantity import Quantity
from mooring.hardware.board import Board, NumaNode, PciDevice, Profile
from mooring.hardware.models import PCI_CLASSES, Model, Nic, Nvme
from mooring.hardware.numbers import format_cpu_list
from mooring.hardware.sysfsclasses import nic_entries, nvme_entries
from mooring.hardware.tree import Link, MemoryStore, Tree

BRIDGE_CLASS = "0x060400"

Entries = dict[str, str | Link]


def sysfs_tree(profile: Profile) -> Tree:
    """Return the sysfs of a machine with the profile's board."""
    return Tree(MemoryStore(sysfs_entries(profile)))


def sysfs_entries(profile: Profile) -> Entries:
    """Return the files and links of that sysfs."""
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
        # A core is called by its first CPU, which is unique on every board.
        place = f"devices/system/cpu/cpu{cpu}"
        entries[f"{place}/node{node.id}"] = Link(f"../../node/node{node.id}")
        entries[f"{place}/topology/physical_package_id"] = f"{node.socket}\n"
        entries[f"{place}/topology/core_id"] = f"{min(siblings)}\n"
        entries[f"{place}/topology/thread_siblings_list"] = f"{format_cpu_list(siblings)}\n"
    return entries


def _cores(node: NumaNode, threads: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Give each CPU with those of its core: Linux numbers all first threads before the second."""
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
