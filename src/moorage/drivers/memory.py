"""dra.memory: the memory of every NUMA node of this machine, ordinary and huge pages.

devices/system/node/online                  the online nodes
devices/system/node/node0/meminfo           Node 0 MemTotal: 1024 kB
devices/system/node/node0/hugepages/        hugepages-2048kB/nr_hugepages
kernel/mm/hugepages/, proc/meminfo          the same for a machine without NUMA

A container gets

    DRAMEMORY_<uid>_NUMANodes=0                      as dra-driver-memory sets it
    DRAMEMORY_<uid>_memory=numanode:0,size:1Gi
    MOORAGE_MEMS_<uid>_<request>=0                   a process uses memory of these nodes
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from moorage.api.cdi import ContainerEdits
from moorage.api.process_binding import MEMORY_NODES, binding_variable
from moorage.api.resource.v1 import Device
from moorage.driver.driver import AllocatedDevice, Claim, Prepared
from moorage.drivers.host import (
    Host,
    WatchingDriver,
    check_present,
    consumed,
    devices_of_request,
    folder_names,
    read_integer,
    read_text,
)
from moorage.hardware.attributes import bytes_of, online_nodes
from moorage.hardware.drivers.memory import CAPACITY, DRIVER, PAGE, SMALLEST, Pages, memory_device
from moorage.hardware.numbers import format_cpu_list
from moorage.hardware.sysfs_tree import SysfsTree

CLAIM_VARIABLE = "DRAMEMORY"

_NODES = "devices/system/node"
_TOTAL = re.compile(r"MemTotal:\s+([0-9]{1,15}) kB")
_HUGE = re.compile(r"hugepages-([0-9]{1,9})kB")


class MemoryDriver(WatchingDriver):
    """Allocates memory, without reserving it on the machine."""

    name = DRIVER
    subsystems = frozenset({"memory", "node"})

    def devices(self) -> list[Device]:
        """Return the memory by node and page size."""
        return [memory_device(self._host.place, pages) for pages in memory_of(self._host)]

    def prepare(self, claim: Claim) -> Iterator[Prepared]:
        """Set the environment of containers to the nodes of their memory."""
        known = {pages.name: pages for pages in memory_of(self._host)}
        check_present(claim, known)
        nodes = _nodes(known, claim.devices)
        for device in claim.devices:
            own = _nodes(known, devices_of_request(claim, device.request))
            env = [f"{CLAIM_VARIABLE}_{claim.uid}_NUMANodes={nodes}"] if nodes else []
            env.append(f"{CLAIM_VARIABLE}_{claim.uid}_{_share(known[device.name], device)}")
            if own:
                env.append(f"{binding_variable(MEMORY_NODES, claim.uid, device.request)}={own}")
            yield Prepared(device, ContainerEdits(env=tuple(env)))


def memory_of(host: Host) -> Iterator[Pages]:
    """Yield the memory of a machine; huge pages that do not exist yet are left out."""
    nodes = online_nodes(host.sys)
    if not nodes:
        total = _total(read_text(host.proc, "meminfo"))
        yield from _pages(host.sys, "kernel/mm/hugepages", total, None)
    for node in nodes:
        total = _total(read_text(host.sys, f"{_NODES}/node{node}/meminfo"))
        yield from _pages(host.sys, f"{_NODES}/node{node}/hugepages", total, node)


def _pages(tree: SysfsTree, folder: str, total: int | None, node: int | None) -> Iterator[Pages]:
    if total is None:
        return
    huge = list(_huge(tree, folder))
    ordinary = total - sum(page * count for page, count in huge)
    ordinary -= ordinary % PAGE.value
    if ordinary >= SMALLEST.value:
        yield Pages(bytes_of(ordinary), node=node)
    for page, count in huge:
        yield Pages(bytes_of(page * count), bytes_of(page), is_huge=True, node=node)


def _huge(tree: SysfsTree, folder: str) -> Iterator[tuple[int, int]]:
    """Yield each size of huge pages that exist, in bytes, and their number."""
    for name in folder_names(tree, folder):
        found = _HUGE.fullmatch(name)
        count = read_integer(tree, f"{folder}/{name}/nr_hugepages")
        if found is not None and count is not None and 0 < count < 1 << 40:
            yield int(found[1]) * 1024, count


def _total(text: str | None) -> int | None:
    found = _TOTAL.search(text or "")
    return int(found[1]) * 1024 if found is not None else None


def _nodes(known: dict[str, Pages], devices: tuple[AllocatedDevice, ...]) -> str:
    found = (known[device.name].node for device in devices)
    return format_cpu_list(node for node in found if node is not None)


def _share(pages: Pages, device: AllocatedDevice) -> str:
    size = consumed(device, CAPACITY) or pages.size
    node = 0 if pages.node is None else pages.node
    return f"{pages.resource.replace('-', '_')}=numanode:{node},size:{size}"
