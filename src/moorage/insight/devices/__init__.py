"""Device usage: the devices of a cluster with their states, and its claims.

snapshot ─► usage_of ─► ClusterUsage: devices, claims

model           devices and claims as values; counts by state
usage           the entry points; every claim with its devices
device_usage    every device with its state and its holders
changed_pools   the pools that a change concerns
availability    the allocator's result for each device
node_selection  the nodes that can use a device
document        devices and claims as JSON
"""

from __future__ import annotations

from moorage.insight.devices.model import (
    ClaimState,
    ClaimUsage,
    ClusterUsage,
    DeviceState,
    DeviceUsage,
)
from moorage.insight.devices.usage import devices_changed, devices_in, state_of, usage_in, usage_of

__all__ = [
    "ClaimState",
    "ClaimUsage",
    "ClusterUsage",
    "DeviceState",
    "DeviceUsage",
    "devices_changed",
    "devices_in",
    "state_of",
    "usage_in",
    "usage_of",
]
