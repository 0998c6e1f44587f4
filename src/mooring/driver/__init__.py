"""The SDK: a class with `devices`, `prepare` and `unprepare` is a complete DRA driver.

driver        what a driver is, and what it hears and says
serving       a driver that runs, within another program or a test
program       `run`: a driver as a program
metadata      for workloads: what a container can read about its devices
attributes    the standard attributes, from sysfs

Behind them: `sockets` and `registration` towards the node, `nodeservice` and `healthservice` for
what it asks, `claims`, `preparing`, `checkpoint`, `cdifiles` and `metadatafiles` for claims,
`planning`, `cutting` and `publishing` for slices.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.cdi import ContainerEdits, DeviceNode, Hook, IntelRdt, Mount, NetDevice
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    NetworkDeviceData,
)
from mooring.driver.driver import (
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
from mooring.kit.extras import MissingExtraError, remedy

__all__ = [
    "AllocatedDevice",
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
    "Mount",
    "NetDevice",
    "NetworkDeviceData",
    "Pool",
    "PrepareError",
    "Prepared",
    "Quantity",
    "run",
]


def run(driver: Driver, arguments: Sequence[str] | None = None) -> None:
    """Run a driver as a program, until it is told to stop; does not return."""
    try:
        from mooring.driver.program import main  # gRPC and all: workloads that read do without
    except MissingExtraError as error:
        needed = f"the {error.extra} extra: {remedy(error.extra)}"
        raise SystemExit(f"error: a driver needs {needed}") from None

    raise SystemExit(main(driver, arguments))
