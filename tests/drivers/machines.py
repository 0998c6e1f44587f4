"""Machines for the tests of drivers: fake sysfs and proc, of boards or made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache

from moorage.api.catalogue import KINDS
from moorage.api.gates import Gates
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, ResourceSlice
from moorage.api.timestamp import Timestamp
from moorage.driver.driver import AllocatedDevice, Claim, Driver, Prepared
from moorage.drivers.catalogue import pools_of
from moorage.drivers.host import Host
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.board import Profile
from moorage.hardware.catalogue import Catalogue
from moorage.hardware.sysfs import sysfs_entries
from moorage.hardware.sysfs_tree import Link, MemoryEntries, SysfsTree
from moorage.validation.registry import RegistryResult, before_create
from moorage.validation.strategy import Context

Entries = dict[str, str | Link]
CATALOGUE = Catalogue()
NOW = Timestamp(datetime(2026, 6, 1, tzinfo=UTC))


def host_of(
    sys: Mapping[str, str | Link],
    proc: Mapping[str, str] | None = None,
    form: NumaNodeForm = NumaNodeForm.SCALAR,
) -> Host:
    return Host(SysfsTree(MemoryEntries(sys)), SysfsTree(MemoryEntries(proc or {})), form)


@cache
def profile(name: str) -> Profile:
    return CATALOGUE.profile(name)


@cache
def board_entries(name: str) -> Entries:
    return sysfs_entries(profile(name))


def board_host(name: str, form: NumaNodeForm = NumaNodeForm.SCALAR) -> Host:
    return host_of(board_entries(name), form=form)


def node(id_: int, cpus: str, memory_kb: int = 1 << 20, distances: str = "") -> Entries:
    """Return a NUMA node; its CPUs are told by `cpu`."""
    folder = f"devices/system/node/node{id_}"
    found: Entries = {
        f"{folder}/cpulist": f"{cpus}\n",
        f"{folder}/meminfo": f"Node {id_} MemTotal:       {memory_kb} kB\nNode {id_} MemFree: 1\n",
    }
    return found | ({f"{folder}/distance": f"{distances}\n"} if distances else {})


def cpu(id_: int, node: int | None = None, socket: int = 0, siblings: str = "") -> Entries:
    folder = f"devices/system/cpu/cpu{id_}"
    found: Entries = {
        f"{folder}/topology/physical_package_id": f"{socket}\n",
        f"{folder}/topology/core_id": f"{id_}\n",
        f"{folder}/topology/thread_siblings_list": f"{siblings or id_}\n",
    }
    return (
        found if node is None else found | {f"{folder}/node{node}": Link(f"../../node/node{node}")}
    )


def cpus(node: int | None, ids: range, socket: int = 0) -> Entries:
    found: Entries = {}
    for id_ in ids:
        found |= cpu(id_, node, socket)
    return found


def online(cpus: str, nodes: str = "") -> Entries:
    found: Entries = {"devices/system/cpu/online": f"{cpus}\n"}
    return found | ({"devices/system/node/online": f"{nodes}\n"} if nodes else {})


def nic(name: str, address: str, node: int = -1, root: str = "pci0000:00") -> Entries:
    folder = f"devices/{root}/{address}"
    return {
        f"bus/pci/devices/{address}": Link(f"../../../{folder}"),
        f"{folder}/numa_node": f"{node}\n",
        f"{folder}/class": "0x020000\n",
        f"{folder}/vendor": "0x15b3\n",
        f"{folder}/device": "0x1021\n",
        f"class/net/{name}": Link(f"../../{folder}/net/{name}"),
        f"{folder}/net/{name}/type": "1\n",
        f"{folder}/net/{name}/address": "02:00:00:00:00:01\n",
        f"{folder}/net/{name}/mtu": "9000\n",
        f"{folder}/net/{name}/operstate": "up\n",
    }


def devices_of(driver: Driver) -> dict[str, Device]:
    return {device.name: device for pool in pools_of(driver) for device in pool.devices}


def claim(uid: str, *devices: AllocatedDevice | str) -> Claim:
    """Return a claim of devices; those that are only named are of a request `one`."""
    given = tuple(
        each if isinstance(each, AllocatedDevice) else allocated(each) for each in devices
    )
    return Claim(uid=uid, namespace="default", name=f"claim-{uid}", devices=given)


def allocated(
    name: str, request: str = "one", *, share: str = "", admin: bool = False, **amounts: str | int
) -> AllocatedDevice:
    consumed = {key: Quantity.parse(str(value)) for key, value in amounts.items()}
    return AllocatedDevice(
        request, "node-1", name, share_id=share, consumed=consumed, has_admin_access=admin
    )


def some_cpus(
    name: str, count: str | int, request: str = "one", share: str = "s"
) -> AllocatedDevice:
    consumed = {"dra.cpu/cpu": Quantity.parse(str(count))}
    return AllocatedDevice(request, "node-1", name, share_id=share, consumed=consumed)


def prepared(driver: Driver, wanted: Claim) -> list[Prepared]:
    found = driver.prepare(wanted)
    assert not hasattr(found, "__await__")
    return list(found)


def variables(found: list[Prepared]) -> dict[str, str]:
    """Return the variables of a container that gets all of it."""
    lines = (line.partition("=") for each in found for line in each.edits.env)
    return {name: value for name, _, value in lines}


def admitted(value: ResourceSlice) -> RegistryResult:
    """Return what a server says of a slice."""
    kind = next(kind for kind in KINDS if kind.name == "ResourceSlice")
    return before_create(value, kind, Context(gates=Gates.parse(), now=NOW, extensions=False))
