"""The SDK: a class with `devices`, `prepare` and `unprepare` is a complete DRA driver.

    driver               the base class of drivers, and the values they exchange
    serving              a running driver, within another program or a test
    program              `run`: a driver as a program
    settings             node, folders and sockets of a driver
    metadata             for workloads: device metadata that containers read
    errors               what can go wrong
    scaffold             the files of a new driver

Behind them:

    node_service         NodePrepareResources and NodeUnprepareResources
    claim_preparation    prepares claims, step by step
    checkpoint           what is prepared, across restarts
    claim_files          CDI specs and device metadata
    health_service       the health of devices, for the kubelet
    slice_controller     publishes ResourceSlices, and repairs them
    slice_plan           the writes that make slices as they should be (pure)
    slice_layout         a pool divided into slices (pure)
    driver_calls         calls of a driver's methods
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from moorage.api.cdi import ContainerEdits, DeviceNode, Hook, IntelRdt, Mount, NetDevice
from moorage.api.core.placement import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    NetworkDeviceData,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
)
from moorage.driver.driver import (
    AllocatedDevice,
    Claim,
    ClaimName,
    DeviceHealth,
    Driver,
    Health,
    Inventory,
    Pool,
    Prepared,
    PrepareError,
)
from moorage.driver.errors import InventoryError
from moorage.kit.extras import MissingExtraError, remedy
from moorage.kit.system import System, missing_system

__all__ = [
    "AllocatedDevice",
    "CapacityRequestPolicy",
    "CapacityRequestPolicyRange",
    "Claim",
    "ClaimName",
    "ContainerEdits",
    "Counter",
    "CounterSet",
    "Device",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceCounterConsumption",
    "DeviceHealth",
    "DeviceNode",
    "DeviceTaint",
    "Driver",
    "Health",
    "Hook",
    "IntelRdt",
    "Inventory",
    "InventoryError",
    "Mount",
    "NetDevice",
    "NetworkDeviceData",
    "NodeAllocatableMapping",
    "NodeAllocatableOverhead",
    "NodeAllocatableResource",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "Pool",
    "PrepareError",
    "Prepared",
    "Quantity",
    "run",
]


def run(driver: Driver, arguments: Sequence[str] | None = None) -> None:
    """Run a driver as a program until it is stopped; does not return."""
    if missing := missing_system(System.LINUX):
        print(f"error: {driver.name} {missing}", file=sys.stderr)
        raise SystemExit(2)
    try:
        from moorage.driver.program import main  # workloads that only read metadata need no gRPC
    except MissingExtraError as error:
        needed = f"the {error.extra} extra: {remedy(error.extra)}"
        raise SystemExit(f"error: a driver needs {needed}") from None

    raise SystemExit(main(driver, arguments))
