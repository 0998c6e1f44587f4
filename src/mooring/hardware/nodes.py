"""The Node of a machine, and the DeviceClasses of its drivers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.api.core.node import Node, NodeStatus, NodeSystemInfo
from mooring.api.gates import Gate
from mooring.api.meta import ObjectMeta
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)
from mooring.hardware.board import Board, Profile

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
# The classes that the drivers install, by driver.
CLASSES = {
    "compute-domain.nvidia.com": {
        "compute-domain-daemon.nvidia.com": f"{_DOMAIN_TYPE}'daemon'",
        "compute-domain-default-channel.nvidia.com": f"{_DOMAIN_TYPE}'channel'",
    },
    "dra.cpu": {"dra.cpu": "device.driver == 'dra.cpu'"},
    "dra.memory": {"dra.memory": "device.driver == 'dra.memory'"},
    "dra.net": {"dra.net": "device.driver == 'dra.net'"},
    "dra.nvme": {"dra.nvme": "device.driver == 'dra.nvme'"},
    "gpu.amd.com": {"gpu.amd.com": "device.driver == 'gpu.amd.com'"},
    "gpu.example.com": {"gpu.example.com": "device.driver == 'gpu.example.com'"},
    "gpu.nvidia.com": {
        "gpu.nvidia.com": f"{_NVIDIA}'gpu'",
        "mig.nvidia.com": f"{_NVIDIA}'mig'",
        "vfio.gpu.nvidia.com": f"{_NVIDIA}'vfio'",
    },
    "sriovnetwork.k8snetworkplumbingwg.io": {
        "sriovnetwork.k8snetworkplumbingwg.io": (
            "device.driver == 'sriovnetwork.k8snetworkplumbingwg.io'"
        )
    },
    "tpu.google.com": {"tpu.google.com": "device.driver == 'tpu.google.com'"},
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
