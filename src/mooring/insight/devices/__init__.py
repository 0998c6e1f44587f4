"""Who has what: the devices of a cluster with their states, and its claims.

snapshot ─► holdings_of ─► Holdings: devices, claims ─► count, selected

model      what is told of a device and of a claim
places     for which nodes a device is
judging    what the allocator says of each device
shortage   who has what a blocked device needs
devices, claims   all of that together
counting   how many are in which state
selecting  the devices that a class or an expression means
"""

from __future__ import annotations

from mooring.insight.devices.model import (
    ClaimState,
    ClaimUsage,
    ClusterUsage,
    DeviceState,
    DeviceUsage,
)
from mooring.insight.devices.usage import usage_in, usage_of

__all__ = [
    "ClaimUsage",
    "ClaimState",
    "DeviceUsage",
    "ClusterUsage",
    "DeviceState",
    "usage_in",
    "usage_of",
]
