"""How long the topology picture takes and how large it is: linear in the devices."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from moorage.api.core import Node
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.hardware.attributes import NUMA_NODE, PCIE_ROOT
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.topology import svg, topology

DRIVER = "gpu.example.com"
DEVICES = 10  # of one node; four of them are held, by two claims


def main() -> None:
    """Print times and sizes for fleets that grow."""
    for nodes in (100, 125, 250, 500, 1000):
        snapshot = Snapshot.of(each for number in range(nodes) for each in _node(number))
        started = time.perf_counter()
        found = topology(snapshot)
        built = time.perf_counter()
        image = svg(found, title="Fleet")
        drawn = time.perf_counter()
        print(
            f"{nodes:5} nodes, {nodes * DEVICES:6,} devices: "
            f"topology {_ms(built - started)}, "
            f"svg {_ms(drawn - built)} {len(image) // 1024:,} KB"
        )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _node(number: int) -> Iterator[Any]:
    name = f"node-{number:04d}"
    yield Node(metadata=ObjectMeta(name=name))
    yield ResourceSlice(
        metadata=ObjectMeta(name=name),
        spec=ResourceSliceSpec(
            driver=DRIVER,
            pool=ResourcePool(name=name, generation=1, resource_slice_count=1),
            node_name=name,
            devices=tuple(map(_device, range(DEVICES))),
        ),
    )
    for first in (0, 2):
        yield _claim(f"job-{number}-{first}", name, first)


def _device(number: int) -> Device:
    return Device(
        name=f"gpu-{number}",
        attributes={
            NUMA_NODE: DeviceAttribute(int_value=number * 2 // DEVICES),
            PCIE_ROOT: DeviceAttribute(string_value=f"pci0000:{number // 2:02x}"),
        },
    )


def _claim(name: str, pool: str, first: int) -> ResourceClaim:
    results = tuple(
        DeviceRequestAllocationResult(request="gpus", driver=DRIVER, pool=pool, device=f"gpu-{n}")
        for n in (first, first + 1)
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return ResourceClaim(
        metadata=ObjectMeta(namespace="team", name=name),
        status=ResourceClaimStatus(allocation=allocation),
    )
