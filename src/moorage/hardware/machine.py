"""A machine as its drivers see it: its ResourceSlices, its Node, and the drivers' DeviceClasses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from moorage.api.core.node import Node, NodeStatus, NodeSystemInfo
from moorage.api.gates import Gate
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CELDeviceSelector,
    CounterSet,
    Device,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.hardware.attributes import Attributes, DeviceLocation, NumaNodeForm
from moorage.hardware.board import Board, PciDevice, PciModel, Profile
from moorage.hardware.sysfs import sysfs_tree
from moorage.hardware.sysfs_tree import SysfsTree

DEVICES_MAX = 128
HEAVY_DEVICES_MAX = 64  # if a device has taints, counters or a list
COUNTER_SETS_MAX = 8

M = TypeVar("M", bound=PciModel)
T = TypeVar("T")


class Sheet(NamedTuple):
    """Devices, or their shared counters, which a driver publishes together."""

    devices: tuple[Device, ...] = ()
    counters: tuple[CounterSet, ...] = ()


class Machine(NamedTuple):
    """One machine with a profile's board."""

    profile: Profile
    node_name: str
    tree: SysfsTree
    form: NumaNodeForm

    @property
    def board(self) -> Board:
        """The board of the machine."""
        return self.profile.board

    def devices(self, sort: type[M]) -> Iterator[tuple[PciDevice, M]]:
        """Yield the devices of one type with their models."""
        for device, model in self.profile.devices():
            if isinstance(model, sort):
                yield device, model

    @property
    def place(self) -> DeviceLocation:
        """What determines the standard attributes of its devices."""
        return DeviceLocation(self.tree, self.form)

    def pci_attributes(self, address: str) -> Attributes:
        """Return the standard attributes of a PCI device."""
        return self.place.pci_attributes(address)

    def scalar_numa_node(self, address: str) -> int | None:
        """Return the NUMA node of a PCI device, for the drivers' older attributes."""
        return self.place.scalar_numa_node(address)

    def digest(self, text: str) -> str:
        """Return hexadecimal digits that depend on this machine and the text."""
        return hashlib.sha256(f"{self.node_name}/{text}".encode()).hexdigest()

    def uuid(self, text: str) -> str:
        """Return a UUID that depends on this machine and the text."""
        digits = self.digest(text)
        parts = (digits[:8], digits[8:12], f"5{digits[13:16]}", f"8{digits[17:20]}", digits[20:32])
        return "-".join(parts)


def machine_of(
    profile: Profile, node_name: str, form: NumaNodeForm | bool = NumaNodeForm.SCALAR
) -> Machine:
    """Return a machine with the profile's board."""
    return Machine(profile, node_name, sysfs_tree(profile), NumaNodeForm(form))


# --- slices ---------------------------------------------------------------------------------------


def slices_of(node: str, driver: str, sheets: Iterable[Sheet]) -> Iterator[ResourceSlice]:
    """Yield the slices of a driver's sheets, in one pool for the node."""
    pieces = [piece for sheet in sheets for piece in _pieces(sheet)]
    for index, piece in enumerate(pieces):
        yield _slice(node, driver, index, len(pieces), piece)


def _pieces(sheet: Sheet) -> Iterator[Sheet]:
    """Cut a sheet into pieces that fit into a slice each; none for an empty one."""
    for counters in _cut(sheet.counters, COUNTER_SETS_MAX):
        yield Sheet(counters=tuple(counters))
    size = HEAVY_DEVICES_MAX if any(map(_is_heavy, sheet.devices)) else DEVICES_MAX
    for devices in _cut(sheet.devices, size):
        yield Sheet(tuple(devices))


def _cut(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _is_heavy(device: Device) -> bool:
    lists = (
        each.int_values or each.bool_values or each.string_values or each.version_values
        for each in device.attributes.values()
    )
    return bool(device.taints or device.consumes_counters) or any(lists)


def _slice(node: str, driver: str, index: int, count: int, piece: Sheet) -> ResourceSlice:
    # The prefix keeps slices in order, as real drivers do.
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{index:05x}-{driver}-{node}"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=node, generation=1, resource_slice_count=count),
            node_name=node,
            devices=piece.devices or None,
            shared_counters=piece.counters or None,
        ),
    )


# --- node and classes -----------------------------------------------------------------------------

PODS = Quantity.from_int(110)
PROFILE_LABEL = "node.kubernetes.io/instance-type"
# A slice with node allocatable resources is rejected unless its node declares the first.
DECLARED_FEATURES = (
    Gate.DRA_NODE_ALLOCATABLE_RESOURCES.value,
    Gate.DRA_OPTIONAL_NODE_OPERATIONS.value,
)

_NVIDIA = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == "
_DOMAIN = "device.driver == 'compute-domain.nvidia.com'"
_DOMAIN_TYPE = f"{_DOMAIN} && device.attributes['compute-domain.nvidia.com'].type == "
_ONE_CLASS = (  # drivers with one class of their name
    "dra.cpu",
    "dra.memory",
    "dra.net",
    "dra.nvme",
    "gpu.amd.com",
    "gpu.example.com",
    "sriovnetwork.k8snetworkplumbingwg.io",
    "tpu.google.com",
)
# The classes that the drivers install, by driver.
CLASSES = {
    "compute-domain.nvidia.com": {
        "compute-domain-daemon.nvidia.com": f"{_DOMAIN_TYPE}'daemon'",
        "compute-domain-default-channel.nvidia.com": f"{_DOMAIN_TYPE}'channel'",
    },
    "gpu.nvidia.com": {
        "gpu.nvidia.com": f"{_NVIDIA}'gpu'",
        "mig.nvidia.com": f"{_NVIDIA}'mig'",
        "vfio.gpu.nvidia.com": f"{_NVIDIA}'vfio'",
    },
    **{driver: {driver: f"device.driver == '{driver}'"} for driver in _ONE_CLASS},
}
# The extended resources of classes in the drivers' charts.
EXTENDED_RESOURCES = {"gpu.nvidia.com": "nvidia.com/gpu"}
# For each class, a profile with devices of it.
EXAMPLE_PROFILES = {
    "compute-domain-daemon.nvidia.com": "gb200-nvl72",
    "compute-domain-default-channel.nvidia.com": "gb200-nvl72",
    "dra.cpu": "dgx-h100",
    "dra.memory": "dgx-h100",
    "dra.net": "dgx-h100",
    "dra.nvme": "xe8640",
    "gpu.amd.com": "xe9680-mi300x",
    "gpu.example.com": "example-gpu",
    "gpu.nvidia.com": "dgx-h100",
    "mig.nvidia.com": "dgx-h100-mig",
    "sriovnetwork.k8snetworkplumbingwg.io": "xe9680-mi300x-sriov",
    "tpu.google.com": "tpu-v6e",
    "vfio.gpu.nvidia.com": "r760xa-vfio",
}


def node_of(profile: Profile, name: str, labels: dict[str, str] | None = None) -> Node:
    """Return the Node of a machine with the profile's board."""
    board = profile.board
    resources = {
        "cpu": Quantity.from_int(sum(len(node.cpu_ids) for node in board.numa.nodes)),
        "memory": _memory(board),
        "pods": PODS,
    }
    return Node(
        metadata=ObjectMeta(
            name=name,
            labels={
                "kubernetes.io/arch": board.architecture,
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                PROFILE_LABEL: profile.name,
                **board.labels,
                **(labels or {}),
            },
        ),
        status=NodeStatus(
            capacity=resources,
            allocatable=resources,
            node_info=NodeSystemInfo(operating_system="linux", architecture=board.architecture),
            declared_features=DECLARED_FEATURES,
        ),
    )


def device_classes(drivers: Iterable[str]) -> Iterator[DeviceClass]:
    """Yield the classes of these drivers."""
    for driver in drivers:
        for name, expression in CLASSES[driver].items():
            selector = DeviceSelector(cel=CELDeviceSelector(expression=expression))
            yield DeviceClass(
                metadata=ObjectMeta(name=name),
                spec=DeviceClassSpec(
                    selectors=(selector,), extended_resource_name=EXTENDED_RESOURCES.get(name)
                ),
            )


def _memory(board: Board) -> Quantity:
    first, *others = (Quantity.parse(node.memory) for node in board.numa.nodes)
    return sum(others, first)
