"""Changes of a small cluster."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from moorage.api.core import Node, Pod
from moorage.api.core.node import NodeSpec
from moorage.api.core.placement import Taint
from moorage.api.core.pod import PodCondition, PodSpec, PodStatus
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    DeviceTaint,
    ResourceClaim,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.api.timestamp import Timestamp
from moorage.insight.history import Change

START = Timestamp.parse("2026-03-01T12:00:00Z")
NO_ROOM = "0/1 nodes are available: 1 cannot allocate all claims."


def at(seconds: int) -> Timestamp:
    return Timestamp(START.instant + timedelta(seconds=seconds))


def change(revision: int, *written: Any, removed: tuple[tuple[str, str, str], ...] = ()) -> Change:
    """Return a change whose time has the revision as its seconds."""
    return Change(revision, at(revision), written, removed)


def pod(name: str = "web", *conditions: PodCondition, node: str = "", uid: str = "") -> Pod:
    metadata = ObjectMeta(
        name=name, namespace="team", uid=uid or f"uid-{name}", creation_timestamp=at(-60)
    )
    spec = PodSpec(node_name=node)
    return Pod(metadata=metadata, spec=spec, status=PodStatus(conditions=conditions))


def refused() -> PodCondition:
    return PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", message=NO_ROOM
    )


def evicted() -> PodCondition:
    return PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="DeletionByDeviceTaintManager",
        last_transition_time=at(-5),
    )


def claim(*devices: str) -> ResourceClaim:
    results = tuple(
        DeviceRequestAllocationResult(request="gpu", driver="gpu.x", pool="a", device=each)
        for each in devices
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return ResourceClaim(
        metadata=ObjectMeta(name="gpus", namespace="team", uid="uid-gpus"),
        status=ResourceClaimStatus(allocation=allocation if devices else None),
    )


def node(*taints: str) -> Node:
    found = tuple(Taint(key=each, effect="NoSchedule") for each in taints)
    return Node(metadata=ObjectMeta(name="a", uid="uid-a"), spec=NodeSpec(taints=found))


def slice_of(*taints: str) -> ResourceSlice:
    found = tuple(DeviceTaint(key=each, effect="NoExecute") for each in taints)
    spec = ResourceSliceSpec(
        driver="gpu.x",
        pool=ResourcePool(name="a", resource_slice_count=1),
        devices=(Device(name="gpu-0", taints=found),),
    )
    return ResourceSlice(metadata=ObjectMeta(name="a-gpu", uid="uid-slice"), spec=spec)
